/* Names: what is built is parsed back, and what is no name is refused. */
#include "proto/subjects.h"

#include "tests/check/check.h"

#include <string.h>

static struct subject_space space;
static const struct job_name job = {"acme", "J-1_x"};
static const struct lane_name lane = {"w1", 3};
static const uint8_t digest[32] = {0xde, 0xad, 0xbe, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89};

static struct subject_parts parse(struct subject s) {
    struct subject_parts p;
    CHECK_OK(subject_parse(&p, &space, s.text));
    return p;
}

static void claim_texts(void) {
    CHECK_STR("bellows.job.2.deadbeef01234567.acme.J-1_x",
              subject_job(&space, 2, digest, job).text);
    CHECK_STR("bellows.lane.w1.3", subject_lane(&space, lane).text);
    CHECK_STR("bellows.part.acme.J-1_x.7.9", subject_part(&space, job, 7, 9).text);
    CHECK_STR("bellows.done.acme.J-1_x.18446744073709551615",
              subject_done(&space, job, UINT64_MAX).text);
    CHECK_STR("bellows.dead.acme.J-1_x", subject_dead(&space, job).text);
    CHECK_STR("bellows.tel.w1.3.ledger", subject_telemetry(&space, lane, "ledger").text);
    CHECK_STR("bellows.evt.acme.J-1_x.queued", subject_event(&space, job, "queued").text);
    CHECK_STR("bellows.hb.w1.3", subject_heartbeat(&space, lane).text);
    CHECK_STR("bellows.ctl.lane.w1.3.drain", subject_ctl_lane(&space, lane, "drain").text);
    CHECK_STR("bellows.ctl.node.w1.drain", subject_ctl_node(&space, "w1", "drain").text);
    CHECK_STR("bellows.ctl.all.drain", subject_ctl_all(&space, "drain").text);
    CHECK_STR("bellows.ctl.coordinator.cancel", subject_ctl_coordinator(&space, "cancel").text);
    CHECK_STR("bellows.ctl.tenant.acme.cancel", subject_ctl_tenant(&space, "acme", "cancel").text);
    CHECK_STR("bellows.ctl.tenant.*.cancel", filter_tenant_requests(&space, "cancel").text);
    CHECK_STR("bellows.ctl.cancel.acme.J-1_x", subject_ctl_cancel(&space, job).text);
    CHECK_STR("bellows.job.*.*.*.*", filter_jobs(&space, -1).text);
    CHECK_STR("bellows.job.0.*.*.*", filter_jobs(&space, 0).text);
    CHECK_STR("bellows.part.acme.J-1_x.7.*", filter_parts_of(&space, job, 7).text);
    CHECK_STR("bellows.done.acme.*.*", filter_done_tenant(&space, "acme").text);
    CHECK_STR("BELLOWS_JOBS", stream_name(&space, "JOBS").text);
    CHECK_STR("bellows_jobs", kv_bucket_name(&space, "jobs").text);
    CHECK_STR("bellows-in-acme", bucket_in(&space, "acme").text);
    CHECK_STR("bellows-keys", bucket_keys(&space).text);
    CHECK_STR("acme.J-1_x", key_of_job(job).text);
    CHECK_STR("L_w1_3", consumer_of_lane(lane).text);
    CHECK_STR("acme.J-1_x.1.2.0", message_id_of_assignment(job, 1, 2, 0).text);
}

static void claim_round_trip(void) {
    struct subject_parts p = parse(subject_job(&space, 3, digest, job));
    CHECK(p.kind == SUBJECT_JOB && p.priority == 3);
    CHECK_STR("acme", p.tenant);
    CHECK_STR("J-1_x", p.job);
    CHECK_STR("deadbeef01234567", p.circuit);
    p = parse(subject_part(&space, job, UINT64_MAX, UINT32_MAX));
    CHECK(p.kind == SUBJECT_PART && p.generation == UINT64_MAX && p.index == UINT32_MAX);
    p = parse(subject_lane(&space, (struct lane_name){"all", 0}));
    CHECK(p.kind == SUBJECT_LANE && p.gpu == 0);
    CHECK_STR("all", p.node);
    CHECK_EQ(SUBJECT_DONE, parse(subject_done(&space, job, 1)).kind);
    CHECK_EQ(SUBJECT_DEAD, parse(subject_dead(&space, job)).kind);
    CHECK_EQ(SUBJECT_HEARTBEAT, parse(subject_heartbeat(&space, lane)).kind);
    p = parse(subject_telemetry(&space, lane, "span"));
    CHECK_EQ(SUBJECT_TELEMETRY, p.kind);
    CHECK_STR("span", p.verb);
    p = parse(subject_telemetry_fleet(&space));
    CHECK_EQ(SUBJECT_TELEMETRY_FLEET, p.kind);
    CHECK_STR("bellows.evt.*.*.failed", filter_events_state(&space, "failed").text);
    CHECK_STR("bellows.tel.*.*.span", filter_telemetry_kind(&space, "span").text);
    CHECK(subject_matches(filter_telemetry(&space).text, subject_telemetry_fleet(&space).text));
    CHECK(subject_matches(filter_telemetry(&space).text,
                          subject_telemetry(&space, lane, "span").text));
    p = parse(subject_event(&space, job, "done"));
    CHECK_EQ(SUBJECT_EVENT, p.kind);
    CHECK_STR("done", p.verb);
    CHECK_EQ(SUBJECT_CTL_LANE, parse(subject_ctl_lane(&space, lane, "stop")).kind);
    CHECK_EQ(SUBJECT_CTL_NODE, parse(subject_ctl_node(&space, "all", "stop")).kind);
    CHECK_EQ(SUBJECT_CTL_ALL, parse(subject_ctl_all(&space, "stop")).kind);
    CHECK_EQ(SUBJECT_CTL_COORDINATOR, parse(subject_ctl_coordinator(&space, "status")).kind);
    p = parse(subject_ctl_tenant(&space, "acme", "cancel"));
    CHECK_EQ(SUBJECT_CTL_TENANT, p.kind);
    CHECK_STR("acme", p.tenant);
    CHECK_EQ(SUBJECT_CTL_CANCEL, parse(subject_ctl_cancel(&space, job)).kind);
    char tenant[ID_BYTES_MAX + 1], name[ID_BYTES_MAX + 1];
    uint32_t gpu;
    CHECK_OK(job_key_parse(tenant, name, "acme.J-1_x"));
    CHECK_STR("acme", tenant);
    CHECK_STR("J-1_x", name);
    CHECK_OK(lane_key_parse(name, &gpu, "w1.3"));
    CHECK_STR("w1", name);
    CHECK_EQ(3, gpu);
}

static void claim_longest(void) {
    char id[ID_BYTES_MAX + 1];
    struct subject_space wide;
    memset(id, 'x', ID_BYTES_MAX);
    id[ID_BYTES_MAX] = '\0';
    CHECK_OK(subject_space_init(&wide, "abcdefghijklmnopqrstuvwxyz-_0123"));
    struct job_name longest = {id, id};
    struct subject_parts p;
    CHECK_OK(subject_parse(&p, &wide, subject_part(&wide, longest, UINT64_MAX, UINT32_MAX).text));
    CHECK_STR(id, p.job);
    CHECK_OK(subject_parse(&p, &wide, subject_job(&wide, 0, digest, longest).text));
    CHECK(strlen(message_id_of_assignment(longest, UINT64_MAX, UINT64_MAX, UINT32_MAX).text) > 150);
}

static void claim_refused_subjects(void) {
    static const char *const bad[] = {
        "",
        "bellows",
        "bellows.",
        "bellows.job",
        "other.lane.w1.3",
        "bellows.lane.w1",
        "bellows.lane.w1.3.4",
        "bellows.lane.w1.",
        "bellows.lane..3",
        "bellows.lane.w 1.3",
        "bellows.lane.*.3",
        "bellows.lane.w1.03",
        "bellows.lane.w1.-1",
        "bellows.lane.w1.4294967296",
        "bellows.job.4.deadbeef01234567.acme.j",
        "bellows.job.2.DEADBEEF01234567.acme.j",
        "bellows.job.2.deadbeef0123456.acme.j",
        "bellows.job.2.deadbeef01234567.ac.me.j",
        "bellows.done.acme.j.18446744073709551616",
        "bellows.part.acme.j.1.99999999999999999999",
        "bellows.done.acme.j\xc3\xbc.1",
        "bellows.ctl.nobody.x",
        "bellows.a.b.c.d.e.f.g.h.i.j",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct subject_parts p;
        enum err err = subject_parse(&p, &space, bad[i]);
        CHECK_MSG(err == E_FORMAT, "\"%s\" gave %s", bad[i], err_name(err));
    }
    char longest[1000];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    struct subject_parts p;
    CHECK_ERR(E_FORMAT, subject_parse(&p, &space, longest));
}

static void claim_ids(void) {
    char id[80];
    CHECK_OK(id_check("A-z_09", "tenant"));
    CHECK_ERR(E_FORMAT, id_check("", "tenant"));
    CHECK_ERR(E_FORMAT, id_check(NULL, "tenant"));
    CHECK_ERR(E_FORMAT, id_check("a.b", "tenant"));
    CHECK_HAS(err_detail(), "tenant has byte 0x2e at position 1");
    memset(id, 'a', sizeof id);
    id[64] = '\0';
    CHECK_OK(id_check(id, "job"));
    id[64] = 'a';
    id[65] = '\0';
    CHECK_ERR(E_FORMAT, id_check(id, "job"));
    CHECK_HAS(err_detail(), "65 characters");
    struct subject_space s;
    CHECK_ERR(E_FORMAT, subject_space_init(&s, "a.b"));
    CHECK_ERR(E_FORMAT, subject_space_init(&s, "abcdefghijklmnopqrstuvwxyz0123456"));
}

static void claim_foreign(void) {
    CHECK_OK(subject_check_foreign("_INBOX.abc.1", "reply"));
    static const char *const bad[] = {"",   "$JS.API.x", "a b",  "a.*",  "a.>",
                                      ".a", "a.",        "a..b", "a\tb", "a\x7f"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        CHECK_ERR(E_FORMAT, subject_check_foreign(bad[i], "reply"));
    }
}

static void claim_replies(void) {
    static const char *const good[] = {"_INBOX.abc.1", "_INBOX.me", "_INBOX.submitter.acme.x",
                                       "_INBOX.submitters.other.x", "_INBOX.work.er"};
    static const char *const bad[] = {"bellows.lane.w1.0",
                                      "bellows.ctl.all.drain",
                                      "bellows.done.other.j.1",
                                      "_INBOX",
                                      "_INBOX.>",
                                      "_INBOXES.a",
                                      "_R_.abc",
                                      "_INBOX.worker.w1.x",
                                      "_INBOX.coordinator.c1.x",
                                      "_INBOX.operator.ada.x",
                                      "_INBOX.dashboard.wall.x",
                                      "_INBOX.worker",
                                      "_INBOX.submitter",
                                      "_INBOX.submitter.other.x",
                                      "_INBOX.submitter.acme2.x",
                                      "_INBOX.submitter.acme",
                                      "$JS.API.x"};
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        CHECK_MSG(subject_check_reply(good[i], "acme") == OK, "%s: %s", good[i], err_detail());
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        CHECK_MSG(subject_check_reply(bad[i], "acme") == E_FORMAT, "%s is accepted", bad[i]);
    }
    CHECK(subject_is_inbox("_INBOX.a") && subject_is_inbox("_R_.a.b"));
    CHECK(!subject_is_inbox("bellows.ctl.all.drain") && !subject_is_inbox("$KV.bellows_jobs.a.b"));
}

static void claim_matches(void) {
    static const struct {
        const char *filter, *subject;
        bool yes;
    } table[] = {
        {"a.b", "a.b", true},   {"a.b", "a.c", false},  {"a.b", "a.b.c", false},
        {"a.*", "a.b", true},   {"a.*", "a", false},    {"a.*", "a.b.c", false},
        {"a.>", "a.b.c", true}, {"a.>", "a", false},    {">", "a", true},
        {">", "a.b", true},     {"*", "a", true},       {"*.b", "a.b", true},
        {"a*", "ab", false},    {"a.b", "a", false},    {"a", "a.b", false},
        {"a.b", "a.bc", false}, {"ab.c", "a.c", false},
    };
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        CHECK_MSG(subject_matches(table[i].filter, table[i].subject) == table[i].yes,
                  "%s against %s", table[i].filter, table[i].subject);
    }
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"subjects, filters and names read as the table says", claim_texts},
        {"what is built is parsed back", claim_round_trip},
        {"the longest names fit", claim_longest},
        {"subject_parse refuses what is no subject of ours", claim_refused_subjects},
        {"id_check names the offending byte", claim_ids},
        {"foreign subjects hold no wildcard, space or server name", claim_foreign},
        {"a job's result goes to an inbox, never to another role's or tenant's", claim_replies},
        {"wildcards match token by token", claim_matches},
    };
    if (subject_space_init(&space, NULL) != OK) {
        return 1;
    }
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
