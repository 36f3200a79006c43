/* The world with a real nats-server. */
#include "tests/check/server.h"
#include "tests/unit/transport/world.h"

#include "node/base/clock.h"

static struct check_server server;

struct transport *world_connect(void) {
    struct transport *t = NULL;
    if (server.pid == 0) {
        check_server_start(&server, NULL);
    }
    CHECK_OK(transport_open(&t, &(struct transport_options){.url = server.url,
                                                            .name = "test",
                                                            .request_wait_ns = 2000000000,
                                                            .send_asap = true}));
    return t;
}

void world_restart(struct transport *t) {
    struct transport_health h;
    check_server_kill(&server);
    check_server_up(&server, false);
    for (int i = 0; i < 500; i++) {
        transport_health(&h, t);
        if (h.connected && h.reconnects_count > 0) {
            return;
        }
        clock_sleep_ns(10 * 1000000);
    }
    CHECK_MSG(false, "not connected again within 5 s");
}

void world_end(void) {
    check_server_stop(&server);
}
