/* The roles, on a real server: everybody tries everything, and the server alone answers. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/base/clock.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "tests/security/raw.h"
#include "tests/security/site.h"

#define SECOND UINT64_C(1000000000)

/* --- The server's verdict --- */

static bool permitted(struct raw *r, bool publish, const char *subject) {
    char violation[1200];
    if (publish) {
        raw_publish(r, subject, NULL, "");
    } else {
        raw_subscribe(r, subject);
    }
    snprintf(violation, sizeof violation, "-ERR 'Permissions Violation for %s \"%s\"",
             publish ? "Publish to" : "Subscription to", subject);
    bool refused = strstr(r->text, violation) != NULL;
    CHECK_MSG(refused || !strstr(r->text, "-ERR"), "%s: %s", subject, r->text);
    return !refused;
}

/* --- Everybody tries what anybody may --- */

/* One subject that the pattern covers. */
static void example_of(char out[1000], const char *pattern, size_t len) {
    size_t at = 0;
    for (size_t i = 0; i < len && at < 990; i++) {
        if (pattern[i] == '*' || pattern[i] == '>') {
            out[at++] = 'z';
        } else {
            out[at++] = pattern[i];
        }
    }
    out[at] = 0;
}

static bool covered(const struct text *patterns, const char *subject) {
    const char *at = patterns->ptr;
    for (const char *end; at && (end = strchr(at, '\n')); at = end + 1) {
        char pattern[1000];
        snprintf(pattern, sizeof pattern, "%.*s", (int)(end - at), at);
        if (subject_matches(pattern, subject)) {
            return true;
        }
    }
    return false;
}

static void rights_of(struct text *out, const struct site *s, size_t holder, bool publish) {
    if (publish) {
        role_publishes(out, &s->fleet, &s->holders[holder]);
    } else {
        role_subscribes(out, &s->fleet, &s->holders[holder]);
    }
    CHECK_OK(text_done(out));
}

struct tally {
    unsigned allowed, refused;
};

static void try_rights_of(struct tally *tally, const struct site *s, struct raw *r, size_t who,
                          size_t whose, bool publish) {
    AUTO(text_free) struct text own = {0}, others = {0};
    char name[ROLE_TEXT_BYTES];
    role_holder_text(name, &s->holders[who]);
    rights_of(&own, s, who, publish);
    rights_of(&others, s, whose, publish);
    const char *at = others.ptr;
    for (const char *end; (end = strchr(at, '\n')); at = end + 1) {
        char subject[1000];
        example_of(subject, at, (size_t)(end - at));
        bool want = covered(&own, subject), got = permitted(r, publish, subject);
        CHECK_MSG(want == got, "%s %s %s: the server %s it", name,
                  publish ? "publishes to" : "subscribes to", subject, got ? "permits" : "refuses");
        tally->allowed += got;
        tally->refused += !got;
    }
}

static void claim_everybody_tries(void) {
    struct site s;
    struct tally tally = {0};
    site_start(&s);
    for (size_t who = 0; who < SITE_HOLDERS_COUNT; who++) {
        AUTO(raw_close) struct raw r;
        char name[ROLE_TEXT_BYTES];
        role_holder_text(name, &s.holders[who]);
        raw_open(&r, s.server.port, s.certs, name, false);
        for (size_t whose = 0; whose < SITE_HOLDERS_COUNT; whose++) {
            try_rights_of(&tally, &s, &r, who, whose, true);
            try_rights_of(&tally, &s, &r, who, whose, false);
        }
    }
    printf("    %u permitted, %u refused\n", tally.allowed, tally.refused);
    CHECK(tally.allowed > 200 && tally.refused > 500);
    site_stop(&s);
}

/* --- What must never be, whatever the table says --- */

struct row {
    const char *who;
    bool publish;
    const char *subject;
};

#define ADA  "submitter.acme.ada"
#define W0   "worker.w0"
#define C1   "coordinator.c1"
#define OP   "operator.op"
#define WALL "dashboard.wall"

static const struct row refused[] = {
    /* A tenant reads nothing of another: bodies, results, events, records, keys' places. */
    {ADA, true, "$JS.API.DIRECT.GET.OBJ_bellows-in-other"},
    {ADA, true, "$JS.API.DIRECT.GET.OBJ_bellows-in-other.$O.bellows-in-other.M.abc"},
    {ADA, true, "$JS.API.STREAM.MSG.GET.OBJ_bellows-in-other"},
    {ADA, true, "$JS.API.CONSUMER.CREATE.OBJ_bellows-in-other"},
    {ADA, true, "$JS.API.DIRECT.GET.BELLOWS_DONE"},
    {ADA, true, "$JS.API.DIRECT.GET.BELLOWS_DONE.bellows.done.other.j.1"},
    {ADA, true, "$JS.API.DIRECT.GET.BELLOWS_DONE.bellows.done.*.j.1"},
    {ADA, true, "$JS.API.DIRECT.GET.BELLOWS_DONE.bellows.done.>"},
    {ADA, true, "$JS.API.DIRECT.GET.BELLOWS_DONE.>"},
    {ADA, true, "$JS.API.DIRECT.GET.BELLOWS_PARTS.bellows.part.other.j.1.0"},
    {ADA, true, "$JS.API.DIRECT.GET.KV_bellows_jobs"},
    {ADA, true, "$JS.API.DIRECT.GET.KV_bellows_jobs.$KV.bellows_jobs.other.j"},
    {ADA, true, "$JS.API.DIRECT.GET.KV_bellows_jobs.$KV.bellows_jobs.*.j"},
    {ADA, true, "$JS.API.DIRECT.GET.KV_bellows_jobs.$KV.bellows_jobs.>"},
    {ADA, true, "$JS.API.DIRECT.GET.BELLOWS_JOBS"},
    {ADA, true, "$JS.API.DIRECT.GET.BELLOWS_LANES"},
    {ADA, true, "$JS.API.DIRECT.GET.BELLOWS_TEL"},
    {ADA, true, "$JS.API.STREAM.MSG.GET.KV_bellows_jobs"},
    {ADA, true, "$JS.API.STREAM.INFO.KV_bellows_jobs"},
    {ADA, true, "$JS.API.STREAM.NAMES"},
    {ADA, true, "$JS.API.CONSUMER.CREATE.BELLOWS_DONE"},
    {ADA, false, "bellows.done.other.>"},
    {ADA, false, "bellows.done.>"},
    {ADA, false, "bellows.evt.other.>"},
    {ADA, false, "bellows.evt.*.*.done"},
    {ADA, false, "bellows.hb.>"},
    {ADA, false, "bellows.tel.>"},
    {ADA, false, "$KV.bellows_jobs.>"},
    {ADA, false, "$O.bellows-in-other.>"},
    {ADA, false, ">"},
    {ADA, false, "_INBOX.>"},
    {ADA, false, "_INBOX.submitter.other.>"},
    {ADA, false, "_INBOX.worker.w0.>"},
    /* Nor does it write what is not its own, or make and purge streams. */
    {ADA, true, "bellows.job.2.0123456789abcdef.other.j"},
    {ADA, true, "$O.bellows-in-other.C.abc"},
    {ADA, true, "$O.bellows-keys.C.abc"},
    {ADA, true, "$KV.bellows_keys.abc"},
    {ADA, true, "$KV.bellows_jobs.acme.j"},
    {ADA, true, "bellows.done.acme.j.1"},
    {ADA, true, "bellows.lane.w0.0"},
    {ADA, true, "bellows.ctl.tenant.other.cancel"},
    {ADA, true, "bellows.ctl.all.drain"},
    {ADA, true, "bellows.ctl.cancel.other.j"},
    {ADA, true, "$JS.API.STREAM.CREATE.OBJ_bellows-in-acme"},
    {ADA, true, "$JS.API.STREAM.CREATE.x"},
    {ADA, true, "$JS.API.STREAM.UPDATE.OBJ_bellows-in-acme"},
    {ADA, true, "$JS.API.STREAM.PURGE.OBJ_bellows-in-other"},
    {ADA, true, "$JS.API.STREAM.DELETE.OBJ_bellows-in-other"},
    {ADA, true, "_INBOX.worker.w0.x"},
    /* A worker makes no jobs, purges nothing, and touches no other node. */
    {W0, true, "bellows.job.2.0123456789abcdef.acme.j"},
    {W0, true, "bellows.lane.w0.0"},
    {W0, true, "bellows.lane.w1.0"},
    {W0, true, "$JS.API.STREAM.PURGE.BELLOWS_LANES"},
    {W0, true, "$JS.API.STREAM.PURGE.OBJ_bellows-in-acme"},
    {W0, true, "$JS.API.STREAM.PURGE.BELLOWS_DONE"},
    {W0, true, "$JS.API.STREAM.DELETE.BELLOWS_DONE"},
    {W0, true, "$JS.API.STREAM.CREATE.x"},
    {W0, true, "$JS.API.STREAM.MSG.DELETE.BELLOWS_DONE"},
    {W0, true, "$JS.API.CONSUMER.MSG.NEXT.BELLOWS_LANES.L_w1_0"},
    {W0, true, "$JS.API.CONSUMER.CREATE.BELLOWS_LANES.L_w1_0.bellows.lane.w1.0"},
    {W0, true, "$JS.API.CONSUMER.CREATE.BELLOWS_LANES.L_w0_0.bellows.lane.w1.0"},
    {W0, true, "$JS.API.CONSUMER.CREATE.BELLOWS_LANES"},
    {W0, true, "$JS.API.CONSUMER.DURABLE.CREATE.BELLOWS_LANES.L_w0_0"},
    {W0, true, "$JS.API.CONSUMER.DELETE.BELLOWS_LANES.L_w1_0"},
    {W0, true, "$JS.ACK.BELLOWS_LANES.L_w1_0.1.1.1.1.0"},
    {W0, true, "$JS.ACK.BELLOWS_JOBS.J_P0.1.1.1.1.0"},
    {W0, true, "$JS.API.DIRECT.GET.BELLOWS_LANES"},
    {W0, true, "$JS.API.DIRECT.GET.BELLOWS_JOBS"},
    {W0, true, "$KV.bellows_lanes.w1.0"},
    {W0, true, "$KV.bellows_lead.leader"},
    {W0, true, "$KV.bellows_cancel.acme.j"},
    {W0, true, "$KV.bellows_keys.abc"},
    {W0, true, "$O.bellows-keys.C.abc"},
    {W0, true, "$O.bellows-in-acme.C.abc"},
    {W0, true, "bellows.hb.w1.0"},
    {W0, true, "bellows.tel.w1.0.device"},
    {W0, true, "bellows.ctl.all.drain"},
    {W0, true, "bellows.ctl.lane.w1.0.drain"},
    {W0, true, "bellows.ctl.cancel.acme.j"},
    {W0, true, "bellows.dead.acme.j"},
    {W0, true, "_INBOX.coordinator.c1.x"},
    {W0, true, "_INBOX.worker.w1.x"},
    {W0, false, "bellows.lane.>"},
    {W0, false, "bellows.job.>"},
    {W0, false, "bellows.ctl.lane.w1.>"},
    {W0, false, "bellows.hb.>"},
    {W0, false, "$O.>"},
    {W0, false, "$KV.>"},
    {W0, false, "_INBOX.worker.w1.>"},
    {W0, false, "_INBOX.>"},
    {W0, false, ">"},
    /* The coordinator needs no proving keys, no bodies of its own, and never deletes a stream. */
    {C1, true, "bellows.job.2.0123456789abcdef.acme.j"},
    {C1, true, "$O.bellows-keys.C.abc"},
    {C1, true, "$O.bellows-in-acme.C.abc"},
    {C1, true, "$JS.API.STREAM.DELETE.BELLOWS_DONE"},
    {C1, true, "$JS.API.STREAM.PURGE.BELLOWS_DONE"},
    {C1, true, "$JS.API.STREAM.PURGE.KV_bellows_jobs"},
    {C1, true, "$JS.API.STREAM.UPDATE.BELLOWS_DONE"},
    {C1, true, "bellows.hb.w0.0"},
    {C1, true, "bellows.tel.w0.0.device"},
    {C1, false, "_INBOX.>"},
    {C1, false, "bellows.job.>"},
    {C1, false, "$O.>"},
    /* An operator looks and steers; it writes no jobs, results or records. */
    {OP, true, "bellows.job.2.0123456789abcdef.acme.j"},
    {OP, true, "bellows.lane.w0.0"},
    {OP, true, "bellows.done.acme.j.1"},
    {OP, true, "$KV.bellows_jobs.acme.j"},
    {OP, true, "$KV.bellows_lead.leader"},
    {OP, true, "$JS.API.STREAM.DELETE.BELLOWS_DONE"},
    {OP, true, "$JS.API.STREAM.PURGE.BELLOWS_DONE"},
    {OP, true, "$JS.API.STREAM.CREATE.x"},
    {OP, true, "$JS.API.DIRECT.GET.OBJ_bellows-in-acme"},
    {OP, false, "$O.>"},
    {OP, false, "_INBOX.submitter.acme.>"},
    {OP, false, "_INBOX.>"},
    /* A dashboard writes nothing, and reads no records: they may hold a witness. */
    {WALL, true, "bellows.job.2.0123456789abcdef.acme.j"},
    {WALL, true, "bellows.tel.w0.0.device"},
    {WALL, true, "bellows.evt.acme.j.done"},
    {WALL, true, "bellows.hb.w0.0"},
    {WALL, true, "bellows.ctl.all.drain"},
    {WALL, true, "bellows.ctl.tenant.acme.cancel"},
    {WALL, true, "$KV.bellows_jobs.acme.j"},
    {WALL, true, "$O.bellows-in-acme.C.abc"},
    {WALL, true, "$JS.API.STREAM.PURGE.BELLOWS_TEL"},
    {WALL, true, "$JS.API.STREAM.DELETE.BELLOWS_TEL"},
    {WALL, true, "$JS.API.STREAM.CREATE.x"},
    {WALL, true, "$JS.API.CONSUMER.CREATE.BELLOWS_TEL"},
    {WALL, true, "$JS.API.CONSUMER.CREATE.BELLOWS_JOBS"},
    {WALL, true, "$JS.API.DIRECT.GET.KV_bellows_jobs"},
    {WALL, true, "$JS.API.DIRECT.GET.KV_bellows_jobs.$KV.bellows_jobs.acme.j"},
    {WALL, true, "$JS.API.DIRECT.GET.BELLOWS_JOBS"},
    {WALL, true, "$JS.API.DIRECT.GET.OBJ_bellows-in-acme"},
    {WALL, false, "bellows.done.>"},
    {WALL, false, "bellows.job.>"},
    {WALL, false, "$KV.bellows_jobs.>"},
    {WALL, false, "$O.>"},
    {WALL, false, "_INBOX.>"},
    {WALL, false, "_INBOX.submitter.acme.>"},
    {WALL, false, ">"},
};

static void claim_refused(void) {
    struct site s;
    site_start(&s);
    for (size_t i = 0; i < COUNT_OF(refused);) {
        AUTO(raw_close) struct raw r;
        const char *who = refused[i].who;
        raw_open(&r, s.server.port, s.certs, who, false);
        for (; i < COUNT_OF(refused) && !strcmp(refused[i].who, who); i++) {
            CHECK_MSG(!permitted(&r, refused[i].publish, refused[i].subject), "%s may %s %s", who,
                      refused[i].publish ? "publish to" : "subscribe to", refused[i].subject);
        }
    }
    printf("    %zu refused\n", COUNT_OF(refused));
    site_stop(&s);
}

/* --- The door --- */

static void claim_door(void) {
    struct site s;
    struct ran ran;
    char other[300];
    site_start(&s);
    AUTO(raw_close) struct raw nobody, stranger, late;
    raw_open(&nobody, s.server.port, s.certs, NULL, true);
    site_run(&ran, &s, NULL, "certs ca %%other");
    site_run(&ran, &s, NULL, "certs issue %%other operator.op");
    CHECK_EQ(0, ran.exit_code);
    snprintf(other, sizeof other, "%s/other", s.dir);
    raw_open(&stranger, s.server.port, other, "operator.op", true); /* the name alone is nothing */
    raw_open(&late, s.server.port, s.certs, "worker.late", true);   /* ours, but in no account */
    struct transport *t = NULL;
    CHECK_ERR(E_NET, transport_open(&t, &(struct transport_options){.url = s.server.url}));
    char ca[SITE_PATH_BYTES];
    snprintf(ca, sizeof ca, "%s/ca.pem", other);
    CHECK_ERR(E_NET,
              transport_open(&t, &(struct transport_options){.url = s.url, .tls.ca_file = ca}));
    site_stop(&s);
}

/* --- A fleet at work --- */

static void operator_prepares(struct site *s, const char *key) {
    struct ran ran;
    site_run(&ran, s, OP, "key push @%s --allow-insecure-keys", key);
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
}

/* A right that a daemon lacks is a line in its log. */
static void check_unrefused(const struct site *s, const char *log) {
    char path[SITE_PATH_BYTES];
    struct bytes_mut text;
    snprintf(path, sizeof path, "%s/%s", s->dir, log);
    CHECK_OK(file_read_all(&text, path, 64 << 20));
    const char *line = memmem(text.ptr, text.len, "transport.refused", 17);
    CHECK_MSG(!line, "%s: %.300s", log, line);
    mem_free(text.ptr);
}

static void check_other_tenant(struct site *s) {
    struct ran ran;
    site_run(&ran, s, "submitter.other.bob", "status one --tenant acme");
    CHECK_EQ(4, ran.exit_code);
    CHECK_HAS(ran.out, "does not permit");
    site_run(&ran, s, "submitter.other.bob", "status one --tenant other");
    CHECK_EQ(2, ran.exit_code);
    site_run(&ran, s, "submitter.other.bob", "cancel one --tenant acme");
    CHECK_EQ(4, ran.exit_code);
}

static void claim_job(void) {
    static const char submit[] = "submit @bn128/chain200/circuit.zkey "
                                 "@bn128/chain200/witness.wtns --allow-insecure-keys";
    struct site s;
    struct ran ran;
    site_start(&s);
    site_start_fleet(&s);
    struct transport *wall = site_connect(&s, WALL);
    struct subscription *events = NULL, *beats = NULL;
    struct message m = {0};
    CHECK_OK(transport_subscribe(&events, wall, "bellows.evt.>", NULL));
    CHECK_OK(transport_subscribe(&beats, wall, "bellows.hb.>", NULL));
    site_run(&ran, &s, ADA, "%s --tenant acme --wait --job early --out %%out", submit);
    CHECK_MSG(ran.exit_code != 0, "a submitter stored a proving key: %s", ran.out);
    CHECK_HAS(ran.out, "key push");
    operator_prepares(&s, "bn128/chain200/circuit.zkey");
    site_run(&ran, &s, ADA, "%s --tenant acme --wait --job one --out %%out", submit);
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    site_run(&ran, &s, NULL,
             "verify @bn128/chain200/verification_key.json %%out/public.json %%out/proof.json "
             "--allow-insecure-keys");
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    site_run(&ran, &s, ADA, "status one --tenant acme --json");
    CHECK_HAS(ran.out, "\"state\": \"done\"");
    site_run(&ran, &s, ADA, "fetch one --tenant acme --out %%again");
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    site_run(&ran, &s, OP, "list --tenant acme");
    CHECK_MSG(ran.exit_code == 0 && strstr(ran.out, "one"), "%s", ran.out);
    site_run(&ran, &s, OP, "nodes --json");
    CHECK_HAS(ran.out, "\"node\": \"w0\", \"gpu\": 0, \"state\": \"ready\"");
    site_run(&ran, &s, OP, "nodes");
    CHECK_HAS(ran.out, "1 of 1 lanes ready");
    site_run(&ran, &s, OP, "drain nobody");
    CHECK_EQ(2, ran.exit_code);
    CHECK_HAS(ran.out, "`bellows nodes`");
    site_run(&ran, &s, OP, "drain w0/7");
    CHECK_EQ(2, ran.exit_code);
    site_run(&ran, &s, ADA, "drain all");
    CHECK(ran.exit_code != 0);
    CHECK_OK(subscription_next(&m, events, 5 * SECOND));
    message_done(&m);
    CHECK_OK(subscription_next(&m, beats, 5 * SECOND));
    message_done(&m);
    /* Two partitions are joined by the coordinator. */
    site_run(&ran, &s, ADA, "%s @bn128/chain200/witness.wtns --tenant acme --wait --out %%two",
             submit);
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    /* The certificate says whose jobs and which node. */
    site_run(&ran, &s, ADA, "status one --json");
    CHECK_HAS(ran.out, "\"tenant\": \"acme\"");
    site_run(&ran, &s, "worker.w1", "node --name w2 --backend cpu");
    CHECK_EQ(2, ran.exit_code);
    CHECK_HAS(ran.out, "that of node w1");
    site_run(&ran, &s, OP, "node --backend cpu");
    CHECK_EQ(2, ran.exit_code);
    CHECK_HAS(ran.out, "its role is operator");
    check_other_tenant(&s); /* sees none of it */
    check_unrefused(&s, "coordinator.log");
    check_unrefused(&s, "node.log");
    subscription_close(&events);
    subscription_close(&beats);
    transport_close(&wall);
    site_stop(&s);
}

static void claim_body_and_cancel(void) {
    struct site s;
    struct ran ran;
    struct object_info info, found_info;
    bool found = false;
    struct stream_info bucket;
    static uint8_t body[300000];
    site_start(&s);
    site_start_fleet(&s);
    struct transport *ada = site_connect(&s, ADA), *op = site_connect(&s, OP);
    CHECK_OK(object_put_bytes(&info, ada, "bellows-in-acme", "b1", bytes_of(body, sizeof body)));
    CHECK_OK(object_info(&found_info, &found, ada, "bellows-in-acme", "b1"));
    CHECK(found && found_info.bytes == sizeof body);
    CHECK_ERR(E_NET, object_put_bytes(&info, ada, "bellows-in-other", "b", bytes_of(body, 10)));
    CHECK_OK(stream_info(&bucket, op, "OBJ_bellows-in-other"));
    CHECK_EQ(0, bucket.messages_count);
    operator_prepares(&s, "bn128/mul/circuit.zkey");
    child_stop(&s.node, 30 * SECOND); /* nobody works: the job waits */
    site_run(&ran, &s, ADA,
             "submit @bn128/mul/circuit.zkey @bn128/mul/witness.wtns --allow-insecure-keys "
             "--tenant acme --job c");
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    site_run(&ran, &s, ADA, "cancel c --tenant acme");
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    transport_close(&ada);
    transport_close(&op);
    site_stop(&s);
}

static void claim_quota(void) {
    struct site s;
    struct ran ran;
    struct object_info info;
    static uint8_t body[1 << 20];
    unsigned stored = 0;
    enum err code = OK;
    site_start(&s);
    site_start_fleet(&s);
    struct transport *ada = site_connect(&s, ADA);
    for (; stored < 20 && code == OK; stored += code == OK) {
        char name[16];
        snprintf(name, sizeof name, "b%u", stored);
        code = object_put_bytes(&info, ada, "bellows-in-acme", name, bytes_of(body, sizeof body));
    }
    CHECK_EQ(E_QUEUE, code); /* the bucket takes 16 MiB */
    CHECK(stored >= 14 && stored < 16);
    site_run(&ran, &s, OP, "tenant acme --quota 32MiB");
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    CHECK_OK(object_put_bytes(&info, ada, "bellows-in-acme", "more", bytes_of(body, sizeof body)));
    site_run(&ran, &s, OP, "tenant acme --json");
    CHECK_HAS(ran.out, "\"bucket\": \"bellows-in-acme\"");
    site_run(&ran, &s, OP, "tenant nobody");
    CHECK_EQ(2, ran.exit_code);
    site_run(&ran, &s, ADA, "tenant acme --quota 1TiB");
    CHECK(ran.exit_code != 0);
    transport_close(&ada);
    site_stop(&s);
}

/* The streams themselves refuse what is too large, whoever sends it. */
static void claim_sizes(void) {
    static const struct {
        const char *who, *subject;
        size_t bytes_max;
    } rows[] = {
        {ADA, "bellows.job.2.0123456789abcdef.acme.big", RECORD_BYTES_MAX},
        {W0, "bellows.done.acme.big.1", RESULT_BYTES_MAX},
        {W0, "bellows.part.acme.big.1.0", RESULT_BYTES_MAX},
        {W0, "$KV.bellows_jobs.acme.big", RECORD_BYTES_MAX},
        {W0, "$KV.bellows_lanes.w0.9", LANE_INFO_BYTES_MAX},
        {C1, "$KV.bellows_cancel.acme.big", CONTROL_BYTES_MAX},
        {C1, "bellows.lane.w1.0", RECORD_BYTES_MAX},
        {C1, "bellows.dead.acme.big", MESSAGE_BYTES_MAX},
        {OP, "$KV.bellows_keys.big", KEY_RECORD_BYTES_MAX},
    };
    static uint8_t data[MESSAGE_BYTES_MAX + 1];
    struct site s;
    site_start(&s);
    site_start_fleet(&s);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct transport *t = site_connect(&s, rows[i].who);
        struct publish_ack ack;
        enum err err = transport_publish(&ack, t, rows[i].subject,
                                         bytes_of(data, rows[i].bytes_max + 1), NULL);
        CHECK_MSG(err == E_LIMIT, "%s took %zu bytes: %s", rows[i].subject, rows[i].bytes_max + 1,
                  err_name(err));
        transport_close(&t);
    }
    site_stop(&s);
}

/* --- The answer as a weapon --- */

/* Whoever asks the server may name any subject for the answer. Here the answer would be a record or an object of the asker's own
 * making, on a subject that it may not publish to. */
static void claim_answers_stay(void) {
    static const char *const targets[] = {"bellows.ctl.all.drain", "bellows.lane.w0.0",
                                          "$KV.bellows_jobs.other.j", "bellows.done.other.j.1"};
    struct site s;
    struct stream_info before, after;
    site_start(&s);
    site_start_fleet(&s);
    AUTO(raw_close) struct raw ada, worker;
    struct object_info info;
    struct transport *t = site_connect(&s, ADA), *op = site_connect(&s, OP);
    char ask[400];
    CHECK_OK(object_put_bytes(&info, t, "bellows-in-acme", "evil", bytes_of("evil", 4)));
    raw_open(&worker, s.server.port, s.certs, W0, false);
    raw_subscribe(&worker, "bellows.ctl.all.*");
    raw_open(&ada, s.server.port, s.certs, ADA, false);
    raw_subscribe(&ada, "_INBOX.submitter.acme.ada.x");
    snprintf(ask, sizeof ask,
             "$JS.API.DIRECT.GET.OBJ_bellows-in-acme.$O.bellows-in-acme.M.ZXZpbA==");
    raw_publish(&ada, ask, "_INBOX.submitter.acme.ada.x", "");
    raw_listen(&ada, 500);
    CHECK_HAS(ada.text,
              "Nats-Subject: $O.bellows-in-acme.M.ZXZpbA=="); /* the request is a good one */
    CHECK_OK(stream_info(&before, op, "BELLOWS_LANES"));
    for (size_t i = 0; i < COUNT_OF(targets); i++) {
        raw_publish(&ada, ask, targets[i], "");
        CHECK_MSG(!strstr(ada.text, "-ERR"), "%s", ada.text); /* the server does not mind */
    }
    raw_listen(&worker, 1000);
    CHECK_MSG(!strstr(worker.text, "ZXZpbA"), "it came out of the tenant's account: %s",
              worker.text);
    CHECK_OK(stream_info(&after, op, "BELLOWS_LANES"));
    CHECK_EQ(before.last_sequence, after.last_sequence);
    struct message m;
    bool found = true;
    CHECK_OK(stream_get_last(&m, &found, op, "KV_bellows_jobs", "$KV.bellows_jobs.other.j"));
    CHECK(!found);
    CHECK_OK(stream_get_last(&m, &found, op, "BELLOWS_DONE", "bellows.done.other.j.1"));
    CHECK(!found);
    /* The same with the coordinator's answer, which may go to lanes: it answers to inboxes only. */
    AUTO(raw_close) struct raw eve;
    raw_open(&eve, s.server.port, s.certs, OP, false);
    raw_publish(&ada, "bellows.ctl.tenant.acme.cancel", "bellows.lane.w0.0", "x");
    raw_publish(&eve, "bellows.ctl.tenant.acme.cancel", "bellows.lane.w0.0", "x");
    raw_listen(&eve, 1000);
    CHECK_OK(stream_info(&after, op, "BELLOWS_LANES"));
    CHECK_EQ(before.last_sequence, after.last_sequence);
    transport_close(&t);
    transport_close(&op);
    site_stop(&s);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"without a certificate of the fleet's authority nobody comes in", claim_door},
        {"everybody tries what anybody may: the server permits exactly what the table says",
         claim_everybody_tries},
        {"what must never be permitted is refused by the server", claim_refused},
        {"a whole job goes through with all roles", claim_job},
        {"a body goes into the tenant's bucket only; cancel works", claim_body_and_cancel},
        {"a tenant's bodies take what its quota says, and an operator changes that", claim_quota},
        {"the streams refuse what is larger than its limit", claim_sizes},
        {"an answer of the server reaches nobody but its asker's account", claim_answers_stay},
    };
    signal(SIGPIPE, SIG_IGN); /* the server closes what it refuses */
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
