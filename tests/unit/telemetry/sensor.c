/* A machine without NVIDIA's library reads nothing and fails nothing; with one, here one of the test's own, every reading is what the card
 * says, in the unit of its name. */
#include "node/telemetry/sensor.h"
#include "node/base/clock.h"
#include "tests/check/check.h"

#include <dlfcn.h>

#define SECOND UINT64_C(1000000000)
#define CARD   "cuda: Test Card GPU-5ca1ab1e-0000-4000-8000-000000000001"

static void claim_absent(void) {
    AUTO(sensors_close) struct sensors *s = NULL;
    struct readings r;
    sensors_open(&s, "cpu: 2 threads, portable");
    CHECK(!s);
    sensors_read(&r, s);
    for (int i = 0; i < SENSORS_COUNT; i++) {
        CHECK(!r.known[i]);
    }
    CHECK_EQ(0, r.memory_bytes);
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

static void claim_card(void) {
    AUTO(sensors_close) struct sensors *s = NULL;
    struct readings r;
    static const uint64_t want[SENSORS_COUNT] = {
        [SENSOR_UTILISATION_PERMILLE] = 970,
        [SENSOR_MEMORY_UTILISATION_PERMILLE] = 120,
        [SENSOR_POWER_MILLIWATT] = 412345,
        [SENSOR_ENERGY_MILLIJOULE] = 412345,
        [SENSOR_TEMPERATURE_CELSIUS] = 61,
        [SENSOR_CLOCK_CORE_MEGAHERTZ] = 1980,
        [SENSOR_PCIE_RECEIVE_BYTES_PER_SECOND] = 3000 * 1024,
        [SENSOR_PCIE_TRANSMIT_BYTES_PER_SECOND] = 7 * 1024,
        [SENSOR_PCIE_GENERATION] = 4,
        [SENSOR_PCIE_WIDTH] = 8,
        [SENSOR_PCIE_GENERATION_MAX] = 5,
    };
    clock_hold(SECOND);
    sensors_open(&s, CARD);
    if (!s) {
        check_skip("libnvidia-ml.so.1 of the tests is not on the library path");
    }
    clock_sleep_ns(SECOND);
    sensors_read(&r, s);
    clock_release();
    for (int i = 0; i < SENSORS_COUNT; i++) {
        bool given = i != SENSOR_CLOCK_MEMORY_MEGAHERTZ && i != SENSOR_PCIE_WIDTH_MAX;
        CHECK_EQ(given, r.known[i]); /* one is refused, one the library does not even have */
        CHECK_EQ(want[i], r.values[i]);
    }
    CHECK_EQ(1000, r.memory_bytes);
    CHECK_EQ(600, r.memory_used_bytes);
    struct sensors *other = NULL;
    sensors_open(&other, "cuda: Test Card GPU-5ca1ab1e-0000-4000-8000-000000000002");
    CHECK(!other);
    sensors_read(&r, s); /* and the library is still in use */
    CHECK(r.known[SENSOR_POWER_MILLIWATT]);
}

static unsigned asked(const char *what) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_NOLOAD);
    unsigned *count = library ? dlsym(library, what) : NULL;
    CHECK(count != NULL);
    return *count;
}

/* A minute and a second, read each second. */
static void claim_sparing(void) {
    AUTO(sensors_close) struct sensors *s = NULL;
    struct readings r;
    clock_hold(SECOND);
    sensors_open(&s, CARD);
    if (!s) {
        check_skip("libnvidia-ml.so.1 of the tests is not on the library path");
    }
    unsigned energy = asked("card_asked_energy"), link = asked("card_asked_link"),
             rates = asked("card_asked_rates");
    for (uint64_t i = 1; i <= 61; i++) {
        clock_sleep_ns(SECOND);
        sensors_read(&r, s);
        CHECK_EQ(412345, r.values[SENSOR_POWER_MILLIWATT]);
        CHECK(r.known[SENSOR_PCIE_RECEIVE_BYTES_PER_SECOND] &&
              r.known[SENSOR_PCIE_TRANSMIT_BYTES_PER_SECOND]);
        CHECK_EQ(4, r.values[SENSOR_PCIE_GENERATION]);
        /* The power summed up, until the card's own count says less: then it stays. */
        uint64_t sum_mj = 412345 * (i < 60 ? i : 59), mj = r.values[SENSOR_ENERGY_MILLIJOULE];
        CHECK(mj <= sum_mj && mj + 2 >= sum_mj);
    }
    clock_release();
    CHECK_EQ(1, asked("card_asked_energy") - energy);
    CHECK_EQ(7, asked("card_asked_link") - link);
    CHECK_EQ(62, asked("card_asked_rates") - rates); /* both at first, then in turn */
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"without a card nothing is known and nothing fails", claim_absent},
        {"a card's readings have the units of their names, and what it does not give is absent",
         claim_card},
        {"a card that is not there has no sensors", claim_unknown_card},
        {"what is dear or changes seldom is not asked for each second", claim_sparing},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
