/* The fleet as processes, with a real nats-server, and with things being killed. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/base/clock.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/transport/fleet.h"
#include "proto/fleet.pb-c.h"
#include "tests/e2e/host.h"

#define SECOND UINT64_C(1000000000)

static const char *const mixed[] = {"bn128/mul", "bls12381/mul-contrib", "bn128/unused",
                                    "bls12381/min", "bn128/nopub"};

static void submit_more(struct host *h, unsigned first, unsigned count) {
    for (unsigned i = first; i < first + count; i++) {
        char job_id[16];
        snprintf(job_id, sizeof job_id, "j%u", i);
        submit_job(&h->user, &(struct job_order){.case_name = mixed[i % COUNT_OF(mixed)],
                                                 .job_id = job_id,
                                                 .priority = i % 4,
                                                 .body_as_object = i % 7 == 0});
    }
}

static void submit_many(struct host *h, unsigned count) {
    submit_more(h, 0, count);
}

/* Every job has its result, it verifies, and there is no other but so many of other jobs. */
static void check_many_beside(struct host *h, unsigned count, unsigned others) {
    for (unsigned i = 0; i < count; i++) {
        char job_id[16];
        snprintf(job_id, sizeof job_id, "j%u", i);
        AUTO(message_free) result_message *r = job_result(&h->user, job_id, 1);
        check_proved(r, mixed[i % COUNT_OF(mixed)], 1);
    }
    CHECK_EQ(count + others, host_stream_count(h, "DONE"));
}

static void check_many(struct host *h, unsigned count) {
    check_many_beside(h, count, 0);
}

static bool intake_is_empty(void *ctx) {
    return host_stream_count(ctx, "JOBS") == 0 && host_stream_count(ctx, "LANES") == 0;
}

static void claim_two_hundred_jobs(void) {
    struct host h;
    host_start(&h);
    host_start_node(&h, 0, 2, NULL);
    submit_many(&h, 200);
    check_many(&h, 200);
    wait_until(intake_is_empty, &h, "everything is acknowledged");
    host_stop(&h);
}

static void claim_killed_lane(void) {
    struct host h;
    host_start(&h);
    host_start_node(&h, 0, 2, NULL);
    host_wait_for_lanes(&h, 2);
    submit_many(&h, 100);
    pid_t pid = host_lane_pid(&h, 0, 1);
    host_kill_lane(&h, 0, 1);
    uint64_t start_ns = clock_ns();
    check_many(&h, 100);
    CHECK(clock_ns() - start_ns < 20 * SECOND);
    host_wait_for_lanes(&h, 2); /* the supervisor has started it again */
    for (int n = 0; n < 1000 && host_lane_pid(&h, 0, 1) == pid; n++) {
        clock_sleep_ns(SECOND / 100);
    }
    CHECK(host_lane_pid(&h, 0, 1) != pid);
    host_stop(&h);
}

/* Lanes keep dying at random while they work; so does the coordinator, with another one standing by. */
static void claim_storm(void) {
    struct host h;
    struct child second;
    struct rng *rng = check_rng();
    host_start(&h);
    host_start_node(&h, 0, 2, NULL);
    host_start_node(&h, 1, 1, NULL);
    host_wait_for_lanes(&h, 3);
    second = h.coordinator;
    host_start_coordinator(&h); /* stands by; the first one leads */
    submit_many(&h, 120);
    for (int n = 0; n < 12; n++) {
        unsigned which = (unsigned)rng_below(rng, 3);
        host_kill_lane(&h, which == 2, which % 2);
        clock_sleep_ns(SECOND / 8 + rng_below(rng, SECOND / 4));
        if (n == 5) {
            child_signal(&second, SIGKILL);
            child_stop(&second, SECOND);
        }
    }
    check_many(&h, 120);
    host_stop(&h);
}

/* How long after the signal a job that is sent then is proved, by a fleet with a stand-by. */
static uint64_t failover_ns(struct host *h, int signal_number, const char *job_id) {
    struct child leader = h->coordinator;
    host_start_coordinator(h);
    clock_sleep_ns(2 * SECOND); /* it stands by */
    child_signal(&leader, signal_number);
    uint64_t start_ns = clock_ns();
    submit_job(&h->user, &(struct job_order){.case_name = "bn128/mul", .job_id = job_id});
    AUTO(message_free) result_message *r = job_result(&h->user, job_id, 1);
    uint64_t took_ns = clock_ns() - start_ns;
    check_proved(r, "bn128/mul", 1);
    printf("# result %.2f s after the leader's signal %d\n", (double)took_ns / 1e9, signal_number);
    if (signal_number == SIGSTOP) { /* awake again, it stands by and does no harm */
        child_signal(&leader, SIGCONT);
        clock_sleep_ns(SECOND);
        submit_many(h, 20);
        check_many_beside(h, 20, 1);
        child_signal(&leader, SIGKILL);
    }
    child_stop(&leader, SECOND);
    return took_ns;
}

static void claim_stand_by_after_kill(void) {
    struct host h;
    host_start(&h);
    host_start_node(&h, 0, 1, NULL);
    host_wait_for_lanes(&h, 1);
    CHECK(failover_ns(&h, SIGKILL, "after-kill") < 6 * SECOND);
    host_stop(&h);
}

static void claim_stand_by_after_stop(void) {
    struct host h;
    host_start(&h);
    host_start_node(&h, 0, 1, NULL);
    host_wait_for_lanes(&h, 1);
    CHECK(failover_ns(&h, SIGSTOP, "after-stop") < 6 * SECOND);
    host_stop(&h);
}

static void claim_two_nodes(void) {
    struct host h;
    struct ran ran;
    bool worked[2] = {false, false};
    host_start(&h);
    host_start_node(&h, 0, 1, NULL);
    host_start_node(&h, 1, 1, NULL);
    host_wait_for_lanes(&h, 2);
    host_run(&ran, &h, "key push @bn128/chain200/circuit.zkey --allow-insecure-keys");
    CHECK_EQ(0, ran.exit_code);
    CHECK_HAS(ran.out, "stored");
    host_run(&ran, &h, "key push @bn128/chain200/circuit.zkey --allow-insecure-keys");
    CHECK_HAS(ran.out, "was there already");
    for (int i = 0; i < 12; i++) {
        char job_id[16];
        snprintf(job_id, sizeof job_id, "j%d", i);
        submit_job(&h.user, &(struct job_order){.case_name = "bn128/chain200",
                                                .job_id = job_id,
                                                .key_unregistered = true,
                                                .parts_count = 6});
    }
    for (int i = 0; i < 12; i++) {
        char job_id[16];
        snprintf(job_id, sizeof job_id, "j%d", i);
        AUTO(message_free) result_message *r = job_result(&h.user, job_id, 1);
        check_proved(r, "bn128/chain200", 6);
        for (size_t k = 0; k < 6; k++) {
            worked[r->partitions[k]->node[1] - '0'] = true;
        }
    }
    CHECK(worked[0] && worked[1]);
    host_stop(&h);
}

static void claim_commands(void) {
    static const char submit[] =
        "submit @bn128/mul/circuit.zkey --allow-insecure-keys --tenant acme";
    struct host h;
    struct ran ran;
    host_start(&h);
    host_start_node(&h, 0, 1, NULL);
    host_run(&ran, &h,
             "%s @bn128/mul/witness.wtns @bn128/mul/witness.wtns @bn128/mul/witness.wtns --wait "
             "--job three --out %%/out",
             submit);
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    CHECK_HAS(ran.out, "three\n");
    CHECK_HAS(ran.out, "3 proofs");
    for (int i = 0; i < 3; i++) {
        host_run(&ran, &h,
                 "verify @bn128/mul/verification_key.json %%/out/public_%d.json "
                 "%%/out/proof_%d.json --allow-insecure-keys",
                 i, i);
        CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    }
    host_run(&ran, &h, "status three --tenant acme --json");
    CHECK_HAS(ran.out, "\"state\": \"done\"");
    host_run(&ran, &h, "fetch three --tenant acme --out %%/again");
    CHECK_EQ(0, ran.exit_code);
    host_run(&ran, &h, "list --tenant acme");
    CHECK_HAS(ran.out, "three");
    host_run(&ran, &h, "status nobody --tenant acme");
    CHECK_EQ(2, ran.exit_code);
    host_run(&ran, &h, "fetch three"); /* another tenant's */
    CHECK_EQ(2, ran.exit_code);
    host_stop(&h);
}

/* What cannot be sent, waited for or written is said before anything is sent, and leaves nothing behind. */
static void claim_refused_before(void) {
    static const char submit[] =
        "submit @bn128/mul/circuit.zkey --allow-insecure-keys --tenant acme";
    struct host h;
    struct ran ran;
    char path[600];
    host_start(&h);
    host_start_node(&h, 0, 1, NULL);
    host_run(&ran, &h,
             "%s @bn128/mul/witness.wtns @bn128/mul/witness.wtns --wait --job two --out %%/out",
             submit);
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    host_run(&ran, &h, "%s @bn128/mul/witness.wtns --wait --timeout soon --job four", submit);
    CHECK_EQ(2, ran.exit_code);
    CHECK_HAS(ran.out, "--timeout soon");
    host_run(&ran, &h, "%s @bn128/mul/witness.wtns --wait --out /dev/null/out --job four", submit);
    CHECK_EQ(2, ran.exit_code);
    CHECK_HAS(ran.out, "/dev/null");
    host_run(&ran, &h, "%s @bn128/mul/witness.wtns --label \xff --job four", submit);
    CHECK_EQ(2, ran.exit_code);
    CHECK_HAS(ran.out, "not UTF-8 text");
    host_run(&ran, &h, "status four --tenant acme");
    CHECK_EQ(2, ran.exit_code);
    CHECK_HAS(ran.out, "has no job four");
    snprintf(path, sizeof path, "%s/full/public_1.json", h.dir);
    CHECK_OK(dir_make(path));
    host_run(&ran, &h, "fetch two --tenant acme --out %%/full");
    CHECK_EQ(2, ran.exit_code);
    CHECK_HAS(ran.out, "public_1.json is a folder");
    snprintf(path, sizeof path, "%s/full/proof_0.json", h.dir);
    CHECK(!file_exists(path));
    host_stop(&h);
}

/* A reason too long for its place is cut, and what is written of it can be read, wherever the cut falls. */
static void claim_cut_reasons(void) {
    static const char submit[] =
        "submit @bn128/mul/circuit.zkey --allow-insecure-keys --tenant acme";
    struct host h;
    struct ran ran;
    host_start(&h);
    host_start_node(&h, 0, 1, NULL);
    host_wait_for_lanes(&h, 1);
    for (int i = 0; i < 2; i++) {
        char reason[400] = "a";
        for (size_t at = (size_t)i; at < 300; at += 2) {
            memcpy(reason + at, "\xc3\xa9", 3);
        }
        host_run(&ran, &h, "drain w0/0 --reason %s", reason);
        CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
        host_run(&ran, &h, "nodes");
        CHECK_EQ(0, ran.exit_code);
        CHECK_HAS(ran.out, "of 1 lanes ready");
        host_run(&ran, &h, "%s @bn128/mul/witness.wtns --job waits%d", submit, i);
        CHECK_EQ(0, ran.exit_code);
        host_run(&ran, &h, "cancel waits%d --tenant acme --reason %s", i, reason);
        CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
        host_run(&ran, &h, "status waits%d --tenant acme", i);
        CHECK_HAS(ran.out, "cancelled: ");
        host_run(&ran, &h, "resume w0/0");
        CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    }
    host_stop(&h);
}

static void claim_unreadable_entries(void) {
    static const struct {
        const char *bucket, *key;
    } entries[] = {{"jobs", "acme.broken"}, {"lanes", "w9.0"}};
    static const struct {
        const char *words, *want;
    } rows[] = {{"list", "sound"},
                {"jobs", "acme"},
                {"nodes", "1 of 1 lanes ready"},
                {"drain all", "draining"},
                {"resume all", "again"}};
    struct host h;
    struct ran ran;
    host_start(&h);
    host_start_node(&h, 0, 1, NULL);
    host_wait_for_lanes(&h, 1);
    host_run(&ran, &h,
             "submit @bn128/mul/circuit.zkey @bn128/mul/witness.wtns --allow-insecure-keys "
             "--tenant acme --job sound --wait --out %%/out");
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    host_connect(&h);
    for (size_t i = 0; i < COUNT_OF(entries); i++) {
        uint64_t revision = 0;
        struct subject bucket = kv_bucket_name(&h.user.space, entries[i].bucket);
        CHECK_OK(
            kv_put(&revision, h.user.link, bucket.text, entries[i].key, bytes_of("\xff\xff", 2)));
    }
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        host_run(&ran, &h, "%s", rows[i].words);
        CHECK_MSG(ran.exit_code == 0, "%s: %s", rows[i].words, ran.out);
        CHECK_HAS(ran.out, rows[i].want);
        CHECK_HAS(ran.out, "warning");
    }
    host_stop(&h);
}

/* Bellman parameters with their circuit become a key that lanes fetch; two partitions, of a witness and of its evaluations, 192 bytes
 * each, in order. */
static void claim_bellman(void) {
    struct host h;
    struct ran ran;
    char path[600];
    uint8_t proofs[1000];
    host_start(&h);
    host_start_node(&h, 0, 2, NULL);
    host_run(&ran, &h, "key push @bls12381/bits/circuit.params");
    CHECK_EQ(2, ran.exit_code);
    CHECK_HAS(ran.out, "--circuit FILE");
    host_run(&ran, &h, "submit @bls12381/bits/circuit.params @bls12381/bits/witness.wtns");
    CHECK_EQ(2, ran.exit_code);
    CHECK_HAS(ran.out, "--circuit FILE");
    host_run(&ran, &h,
             "key import @bls12381/bits/circuit.params %%/bits.key --circuit "
             "@bls12381/bits/circuit.r1cs");
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    host_run(&ran, &h, "key push %%/bits.key");
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    CHECK_HAS(ran.out, " stored");
    host_run(&ran, &h, "key push %%/bits.key");
    CHECK_HAS(ran.out, "was there already");
    host_run(&ran, &h,
             "submit %%/bits.key @bls12381/bits/witness.wtns @bls12381/bits/witness.evaluations "
             "--wait --format bellman --out %%/out --job two");
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    CHECK_HAS(ran.out, "out/proof.bin");
    snprintf(path, sizeof path, "%s/out/proof.bin", h.dir);
    CHECK_EQ(2 * 192, check_file(proofs, sizeof proofs, path));
    host_run(&ran, &h, "key export-vkey %%/bits.key %%/vkey.json");
    CHECK_EQ(0, ran.exit_code);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/one.bin", h.dir);
        CHECK_OK(file_write_all(path, bytes_of(proofs + 192 * i, 192)));
        host_run(&ran, &h, "verify --format bellman %%/vkey.json %%/out/public_%d.json %%/one.bin",
                 i);
        CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    }
    host_run(&ran, &h, "fetch two --format bellman --out %%/again");
    CHECK_EQ(0, ran.exit_code);
    snprintf(path, sizeof path, "%s/again/proof.bin", h.dir);
    uint8_t again[1000];
    CHECK_EQ(2 * 192, check_file(again, sizeof again, path));
    CHECK_MEM(proofs, again, 2 * 192);
    host_stop(&h);
}

static void claim_repeats_and_refusals(void) {
    static const char submit[] = "submit @bn128/mul/circuit.zkey --allow-insecure-keys --wait";
    struct host h;
    struct ran first, ran;
    host_start(&h);
    host_start_node(&h, 0, 1, NULL);
    host_run(&first, &h, "%s @bn128/mul/witness.wtns --job one --out %%/a", submit);
    CHECK_MSG(first.exit_code == 0, "%s", first.out);
    host_run(&ran, &h, "%s @bn128/mul/witness.wtns --job one --out %%/b", submit);
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    CHECK_EQ(1, host_stream_count(&h, "DONE"));
    char path[600], a[4096] = "", b[4096] = "";
    snprintf(path, sizeof path, "%s/a/proof.json", h.dir);
    CHECK(check_file(a, sizeof a, path) > 0);
    snprintf(path, sizeof path, "%s/b/proof.json", h.dir);
    CHECK(check_file(b, sizeof b, path) > 0);
    CHECK_STR(a, b); /* the first result, not a second proof */
    host_run(&ran, &h,
             "submit @bls12381/mul/circuit.zkey @bls12381/mul/witness.wtns --allow-insecure-keys "
             "--job one");
    CHECK_EQ(2, ran.exit_code);
    CHECK_HAS(ran.out, "taken by other work");
    host_run(&ran, &h, "%s @bn128/bad/unsatisfied.wtns --job unsat", submit);
    CHECK_EQ(1, ran.exit_code);
    CHECK_HAS(ran.out, "does not satisfy");
    host_run(&ran, &h, "%s @bn128/bad/noncanonical.wtns --job bad", submit);
    CHECK_EQ(2, ran.exit_code);
    host_run(
        &ran, &h,
        "submit @bn128/bad/truncated.zkey @bn128/mul/witness.wtns --wait --allow-insecure-keys");
    CHECK_EQ(2, ran.exit_code);
    host_run(
        &ran, &h,
        "submit @bn128/mul/circuit.zkey @bn128/mul/witness.wtns --wait"); /* the key is insecure on purpose */
    CHECK_EQ(2, ran.exit_code);
    CHECK_HAS(ran.out, "--allow-insecure-keys");
    host_stop(&h);
}

static void claim_no_server(void) {
    struct host h;
    struct ran ran;
    host_start(&h);
    check_server_kill(&h.server);
    host_run(&ran, &h, "status one");
    CHECK_EQ(4, ran.exit_code);
    CHECK_HAS(ran.out, "BELLOWS_SERVER");
    host_kill_coordinator(&h);
    check_server_up(&h.server, true);
    host_run(&ran, &h, "status one");
    CHECK_EQ(4, ran.exit_code);
    CHECK_HAS(ran.out, "bellows coordinator");
    host_stop(&h);
}

static void claim_killed_coordinator(void) {
    struct host h;
    host_start(&h);
    host_start_node(&h, 0, 2, NULL);
    host_wait_for_lanes(&h, 2);
    submit_many(&h, 60);
    host_kill_coordinator(&h);
    host_start_coordinator(&h);
    check_many(&h, 60);
    host_stop(&h);
}

static bool all_queued(void *ctx) {
    return host_stream_count(ctx, "JOBS") == 0;
}

/* The same server, with what it stored, after some time without. */
static void restart_server(struct host *h, uint64_t away_ns) {
    check_server_kill(&h->server);
    clock_sleep_ns(away_ns);
    check_server_up(&h->server, false);
    transport_close(&h->user.link);
    host_connect(h);
}

static void claim_restarted_server(void) {
    struct host h;
    host_start(&h);
    submit_many(&h, 100);
    wait_until(all_queued, &h, "all jobs are taken in");
    restart_server(&h, SECOND);
    host_start_node(&h, 0, 2, NULL);
    check_many(&h, 100);
    host_stop(&h);
}

static void claim_server_restarts_while_working(void) {
    struct host h;
    host_start(&h);
    host_start_node(&h, 0, 2, NULL);
    host_wait_for_lanes(&h, 2);
    submit_many(&h, 60);
    restart_server(&h, SECOND / 2);
    check_many(&h, 60);
    host_stop(&h);
}

static void claim_lost_storage(void) {
    struct host h;
    host_start(&h);
    host_start_node(&h, 0, 1, NULL);
    host_wait_for_lanes(&h, 1);
    submit_many(&h, 5);
    check_many(&h, 5);
    transport_close(&h.user.link);
    check_server_kill(&h.server);
    check_server_up(&h.server, true);
    host_connect(&h);
    submit_many(&h, 5); /* to a fleet that has made its streams anew */
    check_many(&h, 5);
    host_stop(&h);
}

static void *make_streams_later(void *ctx) {
    struct host *h = ctx;
    clock_sleep_ns(2 * SECOND);
    return fleet_ensure(h->user.link, &h->user.space, NULL) == OK ? ctx : NULL;
}

/* As in a cluster that has lost the stream's leader: until another is elected, nobody takes the subject. */
static void claim_stream_away(void) {
    struct host h;
    struct ran ran;
    pthread_t maker;
    void *made;
    host_start(&h);
    host_kill_coordinator(&h);
    CHECK_OK(stream_delete(h.user.link, "BELLOWS_JOBS"));
    uint64_t start_ns = clock_ns();
    CHECK(pthread_create(&maker, NULL, make_streams_later, &h) == 0);
    host_run(&ran, &h,
             "submit @bn128/mul/circuit.zkey @bn128/mul/witness.wtns --allow-insecure-keys");
    uint64_t took_ns = clock_ns() - start_ns;
    CHECK(pthread_join(maker, &made) == 0 && made);
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    CHECK_MSG(took_ns > 2 * SECOND, "published after %.1f s, to what?", (double)took_ns / 1e9);
    CHECK_EQ(1, host_stream_count(&h, "JOBS"));
    host_stop(&h);
}

static void claim_cancel(void) {
    struct host h;
    struct ran ran;
    host_start(&h);
    host_run(
        &ran, &h,
        "submit @bn128/mul/circuit.zkey @bn128/mul/witness.wtns --allow-insecure-keys --job c");
    CHECK_EQ(0, ran.exit_code);
    host_run(&ran, &h, "cancel c --reason enough");
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    host_run(&ran, &h, "wait c");
    CHECK_EQ(4, ran.exit_code);
    CHECK_HAS(ran.out, "enough");
    host_start_node(&h, 0, 1, NULL);
    host_run(&ran, &h,
             "submit @bn128/mul/circuit.zkey @bn128/mul/witness.wtns --allow-insecure-keys --job c "
             "--wait --out %%/c");
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out); /* a cancelled job may be sent again */
    host_run(&ran, &h, "cancel c");
    CHECK_EQ(2, ran.exit_code); /* success is final */
    host_run(&ran, &h, "cancel nobody");
    CHECK_EQ(2, ran.exit_code);
    host_run(&ran, &h,
             "submit @bn128/mul/circuit.zkey @bn128/mul/witness.wtns --allow-insecure-keys --job "
             "late --wait --out %%/c --deadline 1ms");
    CHECK_EQ(4, ran.exit_code);
    host_stop(&h);
}

static void claim_drain(void) {
    struct host h;
    host_start(&h);
    host_start_node(&h, 0, 1, NULL);
    host_wait_for_lanes(&h, 1);
    submit_many(&h, 80);
    uint64_t start_ns = clock_ns();
    CHECK_EQ(0, host_drain_node(&h, 0));
    CHECK(clock_ns() - start_ns < 5 * SECOND);
    host_start_node(&h, 1, 1, NULL);
    check_many(&h, 80);
    host_stop(&h);
}

struct told {
    struct host *h;
    struct lane_name lane;
    Bellows__V1__LaneState state;
};

static bool says(void *ctx) {
    struct told *t = ctx;
    char reason[200];
    return lane_state_told(reason, &t->h->user, t->lane) == (int)t->state;
}

static void wait_for_state(struct host *h, unsigned gpu, Bellows__V1__LaneState state) {
    struct told told = {h, {"w0", gpu}, state};
    wait_until(says, &told, "the lane's entry says its state");
}

static void claim_orders(void) {
    struct host h;
    host_start(&h);
    host_start_node(&h, 0, 1, NULL);
    host_wait_for_lanes(&h, 1);
    struct subject_space *space = &h.user.space;
    struct subject drain = subject_ctl_node(space, "w0", "drain");
    struct subject resume = subject_ctl_node(space, "w0", "resume");
    struct subject stop = subject_ctl_node(space, "w0", "stop");
    CHECK_OK(give_order(&h.user, drain.text, 0));
    wait_for_state(&h, 0, BELLOWS__V1__LANE_STATE__LANE_DRAINING);
    pid_t pid = host_lane_pid(&h, 0, 0);
    host_kill_lane(&h, 0, 0); /* what takes its place is drained too */
    for (int n = 0; n < 1000 && host_lane_pid(&h, 0, 0) == pid; n++) {
        clock_sleep_ns(SECOND / 100);
    }
    CHECK(host_lane_pid(&h, 0, 0) != pid);
    wait_for_state(&h, 0, BELLOWS__V1__LANE_STATE__LANE_DRAINING);
    submit_many(&h, 3);
    clock_sleep_ns(SECOND);
    CHECK_EQ(0, host_stream_count(&h, "DONE"));
    CHECK_OK(give_order(&h.user, resume.text, 0));
    check_many(&h, 3);
    CHECK_OK(give_order(&h.user, stop.text, 0));
    bool ended = false;
    struct child_end end = {.exit_code = -2};
    for (int n = 0; n < 1000 && !ended; n++) {
        child_poll(&ended, &end, &h.nodes[0]);
        clock_sleep_ns(SECOND / 100);
    }
    CHECK_EQ(0, end.exit_code);
    wait_for_state(&h, 0, BELLOWS__V1__LANE_STATE__LANE_STOPPED);
    host_stop(&h);
}

/* One of two devices begins to lie while both work: it is fenced, and what it had is proved by the other. */
static void claim_fenced_device(void) {
    struct host h;
    char path[300];
    host_start(&h);
    snprintf(path, sizeof path, "%s/lying", h.dir);
    setenv("BELLOWS_LYING", path, 1);
    host_start_node(&h, 0, 2, NULL);
    unsetenv("BELLOWS_LYING");
    host_wait_for_lanes(&h, 2);
    unsigned jobs = 40;
    struct told fenced = {&h, {"w0", 1}, BELLOWS__V1__LANE_STATE__LANE_FENCED};
    submit_many(&h, jobs);
    CHECK_OK(file_write_all(path, bytes_of("1", 1)));
    for (; !says(&fenced) && jobs < 600; jobs += 10) { /* it takes three of them to find it out */
        submit_more(&h, jobs, 10);
        clock_sleep_ns(SECOND / 2);
    }
    CHECK(says(&fenced));
    check_many(&h, jobs);
    CHECK_EQ(0, unlink(path)); /* repaired */
    struct subject resume = subject_ctl_lane(&h.user.space, (struct lane_name){"w0", 1}, "resume");
    CHECK_OK(give_order(&h.user, resume.text, 0));
    wait_for_state(&h, 1, BELLOWS__V1__LANE_STATE__LANE_READY);
    host_stop(&h);
}

enum { FROZEN_JOBS = 16 };

static bool all_have_results(void *ctx) {
    return host_stream_count(ctx, "DONE") == FROZEN_JOBS;
}

/* However a lane falls silent, what it had runs elsewhere within 4 s: what it had begun, and what it was given before its silence was
 * noticed. The clock stops at the last result; looking at the proofs is the claim's own time. */
static void claim_dead_lanes_work_moves(void) {
    struct host h;
    unsigned moved = 0;
    host_start(&h);
    host_start_node(&h, 0, 1, NULL);
    host_start_node(&h, 1, 1, NULL);
    host_wait_for_lanes(&h, 2);
    submit_many(&h, FROZEN_JOBS / 2);
    host_signal_lane(&h, 0, 0, SIGSTOP); /* neither dead for its supervisor nor alive */
    uint64_t start_ns = clock_ns();
    submit_more(&h, FROZEN_JOBS / 2, FROZEN_JOBS / 2);
    wait_until(all_have_results, &h, "every job has its result");
    uint64_t took_ns = clock_ns() - start_ns;
    check_many(&h, FROZEN_JOBS);
    for (unsigned i = 0; i < FROZEN_JOBS; i++) {
        char job_id[16];
        snprintf(job_id, sizeof job_id, "j%u", i);
        AUTO(message_free) result_message *r = job_result(&h.user, job_id, 1);
        moved += r->partitions[0]->epoch > 1;
    }
    CHECK_MSG(moved > 0, "the frozen lane had nothing");
    CHECK_MSG(took_ns < 4 * SECOND + SECOND / 2, "it took %.2f s", /* and the proofs themselves */
              (double)took_ns / 1e9);
    host_signal_lane(&h, 0, 0, SIGKILL);
    host_stop(&h);
}

static void claim_no_device(void) {
    struct host h;
    struct ran ran;
    host_start(&h);
    setenv("CUDA_VISIBLE_DEVICES", "", 1); /* no machine has one for this claim */
    host_run(&ran, &h, "node --name w0 --backend cuda --server %s", h.server.url);
    unsetenv("CUDA_VISIBLE_DEVICES");
    CHECK_EQ(3, ran.exit_code);
    CHECK_HAS(ran.out, "CUDA"); /* the cause, and what to do */
    host_stop(&h);
}

static void claim_one_node_of_a_name(void) {
    struct host h;
    struct ran ran;
    host_start(&h);
    host_start_node(&h, 0, 1, NULL);
    host_wait_for_lanes(&h, 1);
    host_run(&ran, &h, "node --name w0 --backend cpu --server %s", h.server.url);
    CHECK_EQ(2, ran.exit_code);
    CHECK_HAS(ran.out, "runs already");
    child_signal(&h.nodes[0], SIGKILL); /* leaves its lock file behind */
    child_stop(&h.nodes[0], SECOND);
    host_start_node(&h, 0, 1, NULL);
    submit_many(&h, 3);
    check_many(&h, 3);
    host_stop(&h);
}

static bool nothing_left(void *dir) {
    return processes_with(dir) == 0;
}

static void claim_dev(void) {
    struct host h;
    struct ran ran;
    char dir[400], path[440];
    host_start(&h); /* for its folder */
    snprintf(dir, sizeof dir, "%s/dev", h.dir);
    host_run(&ran, &h, "dev --dir %s --run exit\t7", dir);
    CHECK_MSG(ran.exit_code == 7, "%s", ran.out); /* the command's own exit code */
    CHECK_EQ(0, processes_with(dir));
    struct bytes_mut node_log; /* dev's settings are those of its processes, too */
    host_run(&ran, &h, "dev --dir %s2 --log-level error --run true", dir);
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    snprintf(path, sizeof path, "%s2/node.log", dir);
    CHECK_OK(file_read_all(&node_log, path, 1 << 20));
    CHECK(!memmem(node_log.ptr, node_log.len, "level=info", 10));
    mem_free(node_log.ptr);
    struct child dev;
    char url[500], out[500], dir_arg[500];
    const char *build = getenv("BELLOWS_BUILD");
    char program[512];
    snprintf(program, sizeof program, "%s/bellows", build ? build : "build");
    snprintf(dir_arg, sizeof dir_arg, "--dir=%s", dir);
    snprintf(out, sizeof out, "%s/dev.out", h.dir);
    snprintf(url, sizeof url, "%s/url", dir);
    const char *argv[] = {program, "dev", dir_arg, NULL};
    char runtime[500];
    snprintf(runtime, sizeof runtime, "XDG_RUNTIME_DIR=%s", h.dir);
    CHECK_OK(child_start(&dev,
                         &(struct child_options){.argv = argv, .log_path = out, .env = {runtime}}));
    for (int n = 0; n < 1500 && access(url, R_OK) != 0; n++) {
        clock_sleep_ns(SECOND / 50);
    }
    CHECK_EQ(0, access(url, R_OK));
    CHECK(processes_with(dir) >= 2);
    child_signal(&dev, SIGKILL); /* even then nobody stays behind */
    child_stop(&dev, SECOND);
    wait_until(nothing_left, dir, "nothing of the fleet is left");
    host_stop(&h);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"200 small jobs on both curves: every result exactly once, and it verifies",
         claim_two_hundred_jobs},
        {"a lane killed -9 in the middle: every result exactly once", claim_killed_lane},
        {"lanes killed at random, the leader too, with a stand-by: every result exactly once",
         claim_storm},
        {"a stand-by takes over within 6 s of the leader's kill -9", claim_stand_by_after_kill},
        {"a stand-by takes over within 6 s of the leader's freeze; thawed, it does no harm",
         claim_stand_by_after_stop},
        {"two nodes that share nothing but the fleet prove under one key", claim_two_nodes},
        {"submit, wait, status, fetch, list: several witnesses, proofs in order", claim_commands},
        {"what cannot be sent or written is refused before anything is sent", claim_refused_before},
        {"a reason cut within a character leaves records that can be read", claim_cut_reasons},
        {"an entry that cannot be read hides no other", claim_unreadable_entries},
        {"a bellman key with its circuit goes into the fleet and proves, 192 bytes a partition",
         claim_bellman},
        {"repeats get the first result; other work, bad keys and bad witnesses are refused",
         claim_repeats_and_refusals},
        {"without a server, or without a fleet on it, a command says so and exits with 4",
         claim_no_server},
        {"a coordinator killed -9 and started again: every result exactly once",
         claim_killed_coordinator},
        {"a server killed with 100 queued jobs: every result exactly once", claim_restarted_server},
        {"a server killed while lanes work: every result exactly once",
         claim_server_restarts_while_working},
        {"a server that comes back with empty storage gets its streams again", claim_lost_storage},
        {"a job whose stream is away for a moment is published when it is back", claim_stream_away},
        {"cancel and deadline from the command line", claim_cancel},
        {"SIGTERM drains a node, another one goes on", claim_drain},
        {"a node is drained, resumed and stopped by order, also across a lane's death",
         claim_orders},
        {"one of two devices begins to lie and is fenced: the other one takes over, every result "
         "exactly once",
         claim_fenced_device},
        {"the work of a frozen lane runs elsewhere within 4 s", claim_dead_lanes_work_moves},
        {"a node that is to use CUDA and cannot ends with 3 and says why", claim_no_device},
        {"one node of a name, and a stale lock is no obstacle", claim_one_node_of_a_name},
        {"dev starts and stops without leftovers, even when killed", claim_dev},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
