/* A machine without NVIDIA's library reads nothing and fails nothing. */
#include "node/telemetry/sensor.h"
#include "tests/check/check.h"

static void claim_absent(void) {
    AUTO(sensors_close) struct sensors *s = NULL;
    struct readings r;
    uint64_t energy = 7;
    sensors_open(&s, "cpu: 2 threads, portable");
    CHECK(!s);
    sensors_read(&r, s);
    for (int i = 0; i < SENSORS_COUNT; i++) {
        CHECK(!r.known[i]);
    }
    CHECK_EQ(0, r.memory_bytes);
    CHECK(!sensors_energy(&energy, s));
    CHECK_EQ(7, energy);
}

static enum err open_and_close(void *ctx) {
    (void)ctx;
    AUTO(sensors_close) struct sensors *s = NULL;
    sensors_open(&s, "cuda: nothing GPU-00000000-0000-0000-0000-000000000000");
    return s ? OK : E_LIMIT;
}

static void claim_unknown_card(void) {
    CHECK_EQ(E_LIMIT, open_and_close(NULL)); /* no library here, or no such card */
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"without a card nothing is known and nothing fails", claim_absent},
        {"a card that is not there has no sensors", claim_unknown_card},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
