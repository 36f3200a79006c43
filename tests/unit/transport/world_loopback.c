/* The world with the twin. */
#include "node/transport/loopback.h"
#include "tests/unit/transport/world.h"

static struct loopback *broker;

struct transport *world_connect(void) {
    struct transport *t = NULL;
    if (!broker) {
        CHECK_OK(loopback_open(&broker));
    }
    CHECK_OK(loopback_connect(&t, broker, NULL));
    return t;
}

void world_restart(struct transport *t) {
    (void)t;
    loopback_restart(broker);
}

void world_end(void) {
    loopback_close(&broker);
}
