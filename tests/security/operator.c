/* What operators do, with the rights that their role has: steer nodes, look at jobs, ask what is wrong. */
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "tests/security/site.h"

#define SECOND UINT64_C(1000000000)
#define ADA    "submitter.acme.ada"
#define OP     "operator.op"

static const char submit[] = "submit @bn128/mul/circuit.zkey @bn128/mul/witness.wtns "
                             "--allow-insecure-keys --tenant acme";

/* Until `command` prints `text`, at most ten seconds. */
static void await(struct site *s, const char *command, const char *text) {
    struct ran ran;
    for (int n = 0; n < 100; n++) {
        site_run(&ran, s, OP, "%s", command);
        if (ran.exit_code == 0 && strstr(ran.out, text)) {
            return;
        }
        clock_sleep_ns(SECOND / 10);
    }
    CHECK_MSG(false, "`bellows %s` does not come to print \"%s\": %s", command, text, ran.out);
}

static void drain_and_resume(struct site *s, const char *target) {
    struct ran ran;
    site_run(&ran, s, OP, "drain %s --wait --timeout 30s --reason repair", target);
    CHECK_MSG(ran.exit_code == 0, "drain %s: %s", target, ran.out);
    CHECK_HAS(ran.out, "nothing is left on it");
    await(s, "nodes --json", "\"state\": \"draining\"");
    site_run(&ran, s, OP, "resume %s", target);
    CHECK_MSG(ran.exit_code == 0, "resume %s: %s", target, ran.out);
    await(s, "nodes", "1 of 1 lanes ready");
}

/* A key whose chunks are gone is stored anew; one that is whole stays as it is. */
static void claim_push(void) {
    static const char command[] = "key push @bn128/mul/circuit.zkey --allow-insecure-keys";
    struct site s;
    struct ran ran;
    struct message m = {0};
    site_start(&s);
    site_start_fleet(&s);
    site_run(&ran, &s, OP, command);
    CHECK_MSG(ran.exit_code == 0 && strstr(ran.out, "stored"), "%s", ran.out);
    site_run(&ran, &s, OP, command);
    CHECK_MSG(ran.exit_code == 0 && strstr(ran.out, "was there already"), "%s", ran.out);
    struct transport *op = site_connect(&s, OP);
    CHECK_OK(transport_request(&m, op, "$JS.API.STREAM.PURGE.OBJ_bellows-keys",
                               bytes_of("{\"filter\":\"$O.bellows-keys.C.>\"}", 32), 10 * SECOND));
    message_done(&m);
    transport_close(&op);
    site_run(&ran, &s, OP, command);
    CHECK_MSG(ran.exit_code == 0 && strstr(ran.out, "stored"), "%s", ran.out);
    site_run(&ran, &s, ADA, "%s --job mended --wait --timeout 60s --out %%out", submit);
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    site_stop(&s);
}

static void claim_drain(void) {
    struct site s;
    struct ran ran;
    site_start(&s);
    site_start_fleet(&s);
    site_run(&ran, &s, OP, "key push @bn128/mul/circuit.zkey --allow-insecure-keys");
    CHECK_EQ(0, ran.exit_code);
    drain_and_resume(&s, "w0");
    drain_and_resume(&s, "w0/0");
    drain_and_resume(&s, "all");
    site_run(&ran, &s, OP, "drain w0 --json");
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    CHECK_HAS(ran.out, "{\"target\": \"w0\", \"state\": \"draining\"}");
    site_run(&ran, &s, ADA, "%s --job waits", submit);
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    await(&s, "jobs --json", "\"tenant\": \"acme\", \"queued\": 1");
    site_run(&ran, &s, ADA, "wait waits --tenant acme --timeout 1s --out %%out");
    CHECK_EQ(4, ran.exit_code);
    site_run(&ran, &s, OP, "resume w0");
    CHECK_EQ(0, ran.exit_code);
    site_run(&ran, &s, ADA, "wait waits --tenant acme --timeout 60s --out %%out");
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    await(&s, "jobs", "acme");
    site_run(&ran, &s, OP, "drain w0 --grace soon");
    CHECK_EQ(2, ran.exit_code);
    site_run(&ran, &s, OP, "drain w0/x");
    CHECK_EQ(2, ran.exit_code);
    site_run(&ran, &s, OP, "resume nobody");
    CHECK_EQ(2, ran.exit_code);
    child_stop(&s.node, 30 * SECOND);
    site_run(&ran, &s, OP, "drain w0");
    CHECK_EQ(4, ran.exit_code); /* it stands in the directory for a while, but does not answer */
    CHECK_HAS(ran.out, "does not answer");
    site_stop(&s);
}

static void claim_doctor(void) {
    static const char *const holders[] = {ADA, "submitter.other.bob", "worker.w0",
                                          OP,  "coordinator.c1",      "dashboard.wall"};
    struct site s;
    struct ran ran;
    site_start(&s);
    site_start_fleet(&s);
    for (size_t i = 0; i < COUNT_OF(holders); i++) {
        site_run(&ran, &s, holders[i], "doctor --part network --json");
        CHECK_MSG(ran.exit_code == 0, "%s: %s", holders[i], ran.out);
        CHECK_HAS(ran.out, "\"check\": \"permissions\", \"state\": \"good\"");
        CHECK_HAS(ran.out, "\"check\": \"clock\", \"state\": \"good\"");
        CHECK_HAS(ran.out, "\"check\": \"jetstream\", \"state\": \"good\"");
        CHECK(!strstr(ran.out, "\"check\": \"accounts\""));
    }
    site_run(&ran, &s, OP, "doctor --part network --prefix other");
    CHECK_EQ(4, ran.exit_code);
    CHECK_HAS(ran.out, "bad      fleet");
    site_run(&ran, &s, "worker.late", "doctor --part network");
    CHECK_EQ(4, ran.exit_code);
    CHECK_HAS(ran.out, "bad      login");
    CHECK_HAS(ran.out, "accounts.conf");
    site_weaken(&s); /* the coordinator's right to hear heartbeats is gone */
    site_run(&ran, &s, "coordinator.c1", "doctor --part network");
    CHECK_EQ(4, ran.exit_code);
    CHECK_HAS(ran.out, "bad      permissions");
    CHECK_HAS(ran.out, "bellows.hb.*.*");
    child_stop(&s.coordinator, 5 * SECOND);
    clock_sleep_ns(6 * SECOND); /* the lease ends */
    site_run(&ran, &s, OP, "doctor --part network");
    CHECK_EQ(4, ran.exit_code);
    CHECK_HAS(ran.out, "no coordinator leads");
    check_server_down(&s.server);
    site_run(&ran, &s, OP, "doctor --part network --json");
    CHECK_EQ(4, ran.exit_code);
    CHECK_HAS(ran.out, "\"check\": \"server\", \"state\": \"bad\"");
    site_stop(&s);
}

static void claim_top(void) {
    static const char *const holders[] = {OP, "dashboard.wall"};
    struct site s;
    struct ran ran;
    site_start(&s);
    site_start_fleet(&s);
    clock_sleep_ns(3 * SECOND); /* a report or two */
    for (size_t i = 0; i < COUNT_OF(holders); i++) {
        site_run(&ran, &s, holders[i], "top --once --json");
        CHECK_MSG(ran.exit_code == 0, "%s: %s", holders[i], ran.out);
        CHECK_HAS(ran.out, "\"w0\"");
        CHECK(!strstr(ran.out, "does not permit"));
    }
    site_run(&ran, &s, ADA, "top --once --json");
    CHECK_MSG(!strstr(ran.out, "w0"), "a tenant sees devices: %s", ran.out);
    site_stop(&s);
}

/* A stream of the fleet lies on all three; without one of them everything goes on. */
static void claim_cluster(void) {
    struct site s;
    struct ran ran;
    struct message m = {0};
    char *info = NULL;
    site_start_cluster(&s);
    site_start_fleet(&s);
    site_run(&ran, &s, OP, "key push @bn128/mul/circuit.zkey --allow-insecure-keys");
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    struct transport *op = site_connect(&s, OP);
    CHECK_OK(transport_request(&m, op, "$JS.API.STREAM.INFO.KV_bellows_jobs", bytes_of(NULL, 0),
                               10 * SECOND));
    CHECK_OK(mem_new_raw(&info, 1, m.data.len + 1));
    memcpy(info, m.data.ptr, m.data.len);
    info[m.data.len] = 0;
    CHECK_HAS(info, "\"num_replicas\":3");
    mem_free(info);
    message_done(&m);
    transport_close(&op);
    site_run(&ran, &s, ADA, "%s --wait --timeout 50s --out %%a", submit);
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    check_server_kill(&s.others[0]);
    site_run(&ran, &s, ADA, "%s --wait --timeout 50s --out %%b", submit);
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    check_server_up(&s.others[0], false);
    check_server_kill(&s.server);
    site_run(&ran, &s, ADA, "%s --wait --timeout 50s --out %%c", submit);
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    site_stop(&s);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a key that is not whole any more is pushed anew", claim_push},
        {"drain and resume: a node, a lane, all; what waits goes on", claim_drain},
        {"a cluster of three goes on when one server is killed, and when another is",
         claim_cluster},
        {"top shows the fleet to an operator and to a dashboard, not to a tenant", claim_top},
        {"doctor finds nothing with any role, and finds what is broken", claim_doctor},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
