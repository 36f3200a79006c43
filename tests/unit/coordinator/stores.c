/* The stores' figures against what was put in, on the broker inside the process. */
#include "node/coordinator/stores.h"

#include <string.h>

#include "node/base/clock.h"
#include "node/transport/loopback.h"
#include "tests/check/check.h"

static struct metric_block metrics;

static bool shows(int store, uint64_t used_least, uint64_t limit) {
    uint64_t used = metric_get(&metrics, METRIC_STORE_USED, store);
    return used != METRIC_UNKNOWN && used >= used_least &&
           metric_get(&metrics, METRIC_STORE_LIMIT, store) == limit;
}

static void wait_for(int store, uint64_t used_least, uint64_t limit) {
    for (int n = 0; n < 1000 && !shows(store, used_least, limit); n++) {
        clock_sleep_ns(10000000);
    }
    CHECK(shows(store, used_least, limit));
}

static void claim_figures(void) {
    struct loopback *broker = NULL;
    struct transport *t = NULL;
    struct stores *s = NULL;
    struct subject_space space;
    struct object_info object;
    static const uint8_t data[5000];
    metric_block_init(&metrics);
    CHECK_OK(subject_space_init(&space, NULL));
    CHECK_OK(loopback_open(&broker));
    CHECK_OK(loopback_connect(&t, broker, NULL));
    CHECK_OK(fleet_ensure(t, &space, NULL));
    CHECK_OK(fleet_ensure_tenant(t, &space, "acme",
                                 &(struct fleet_options){.tenant_bytes_max = 1 << 20}));
    CHECK_OK(object_put_bytes(&object, t, bucket_in(&space, "acme").text, "b",
                              bytes_of(data, sizeof data)));
    CHECK_OK(stores_open(&s, t, &space, &metrics));
    wait_for(METRIC_STORE_JOBS, 0, UINT64_C(4) << 30);
    wait_for(METRIC_STORE_BODIES, 0, 0); /* nobody has been seen */
    stores_note(s, "acme");
    stores_note(s, "acme");
    wait_for(METRIC_STORE_BODIES, sizeof data, 1 << 20);
    stores_note(s, "nobody"); /* has no bucket, and takes nothing from the others */
    wait_for(METRIC_STORE_BODIES, sizeof data, 1 << 20);
    CHECK_OK(
        fleet_ensure_tenant(t, &space, "big", NULL)); /* no limit: nobody knows how much is left */
    stores_note(s, "big");
    wait_for(METRIC_STORE_BODIES, sizeof data, METRIC_UNKNOWN);
    stores_close(&s);
    transport_close(&t);
    loopback_close(&broker);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"what streams and buckets hold and may hold is shown", claim_figures},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
