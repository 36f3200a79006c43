/* What lanes tell: a job's story, what went wrong, the books of the device; and that jobs do not wait for any of it. */
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/cpu/cpu.h"
#include "proto/fleet.pb-c.h"
#include "proto/telemetry.pb-c.h"
#include "proto/unpack.h"
#include "tests/unit/daemon/fleet.h"

#define SECOND UINT64_C(1000000000)
static const char MUL[] = "bn128/mul";

/* The next message of this kind within five seconds; message_free. */
static void *next(struct subscription *sub, const ProtobufCMessageDescriptor *type) {
    AUTO(message_done) struct message m = {0};
    void *out = NULL;
    CHECK_OK(subscription_next(&m, sub, 5 * SECOND));
    CHECK_OK(message_unpack(&out, type, m.data, MESSAGE_BYTES_MAX, "telemetry"));
    return out;
}

static struct subscription *listen_to(struct fleet *f, struct subject subject) {
    struct subscription *sub = NULL;
    CHECK_OK(transport_subscribe(&sub, f->user.link, subject.text, NULL));
    return sub;
}

static void prove_one(struct fleet *f, const char *job_id) {
    submit_job(&f->user,
               &(struct job_order){.case_name = MUL, .job_id = job_id, .body_as_object = true});
    AUTO(message_free) result_message *r = job_result(&f->user, job_id, 1);
    check_proved(r, MUL, 1);
}

static const Bellows__V1__Span *span_named(const Bellows__V1__SpanReport *m, const char *step) {
    for (size_t i = 0; i < m->n_spans; i++) {
        if (!strcmp(m->spans[i]->step, step)) {
            return m->spans[i];
        }
    }
    check_fail(__FILE__, __LINE__, "the story has no step %s", step);
}

static enum err open_processor(struct backend **out) {
    return cpu_backend_open(out,
                            &(struct backend_options){.kind = BACKEND_CPU, .threads_count = 1});
}

static void claim_story(void) {
    enum err (*const reference)(struct backend **) = fleet_backend_open;
    fleet_backend_open = open_processor; /* which measures its sums */
    struct fleet *f = fleet_new(1);
    struct subscription *spans = listen_to(f, filter_telemetry_kind(&f->user.space, "span"));
    prove_one(f, "j1");
    AUTO(message_free)
    Bellows__V1__SpanReport *m = next(spans, &bellows__v1__span_report__descriptor);
    static const char *const order[] = {"record",   "key_fetch", "fetch",    "decode",   "queue",
                                        "key_load", "witness",   "evaluate", "quotient", "msm_b2",
                                        "msm_a",    "msm_b1",    "msm_l",    "msm_h",    "assemble",
                                        "verify",   "store"}; /* sums as they are computed */
    CHECK_STR("j1", m->job_id);
    CHECK_STR("acme", m->tenant);
    CHECK_STR("done", m->outcome);
    CHECK_STR("", m->error_name);
    CHECK_EQ(1, m->attempt);
    CHECK(m->device_ns > 0 && m->device_ns < m->total_ns);
    CHECK(m->wire_bytes > 0 && m->raw_bytes == 4 * 32);
    uint64_t start_ns = 0;
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        const Bellows__V1__Span *span = span_named(m, order[i]);
        CHECK_STR("ok", span->outcome);
        CHECK_MSG(span->start_ns >= start_ns, "%s begins before %s", order[i],
                  i ? order[i - 1] : "");
        CHECK(span->start_ns + (strcmp(order[i], "decode") ? span->ns : 0) <= m->total_ns);
        start_ns = span->start_ns;
    }
    CHECK_STR("network", span_named(m, "fetch")->device);
    CHECK_EQ(m->wire_bytes, span_named(m, "fetch")->bytes);
    subscription_close(&spans);
    fleet_free(&f);
    fleet_backend_open = reference;
}

static void claim_inline(void) {
    struct fleet *f = fleet_new(1);
    struct subscription *spans = listen_to(f, filter_telemetry_kind(&f->user.space, "span"));
    fleet_prove(f, "within", MUL);
    AUTO(message_free)
    Bellows__V1__SpanReport *within = next(spans, &bellows__v1__span_report__descriptor);
    prove_one(f, "object");
    AUTO(message_free)
    Bellows__V1__SpanReport *object = next(spans, &bellows__v1__span_report__descriptor);
    CHECK_STR("within", within->job_id);
    CHECK_EQ(object->wire_bytes, within->wire_bytes); /* the same frames, wherever they lie */
    CHECK_EQ(4 * 32, within->raw_bytes);
    CHECK_EQ(object->raw_bytes, within->raw_bytes);
    CHECK_EQ(span_named(object, "decode")->bytes, span_named(within, "decode")->bytes);
    for (size_t i = 0; i < within->n_spans; i++) {
        CHECK(strcmp("fetch", within->spans[i]->step) != 0);
    }
    subscription_close(&spans);
    fleet_free(&f);
}

static void claim_events(void) {
    static const char *const states[] = {"queued", "placed", "running", "done"};
    struct fleet *f = fleet_new(1);
    struct subscription *events = listen_to(f, filter_events(&f->user.space));
    unsigned seen = 0;
    prove_one(f, "j1");
    while (seen != 15) {
        AUTO(message_free) Bellows__V1__Event *m = next(events, &bellows__v1__event__descriptor);
        for (unsigned i = 0; i < COUNT_OF(states); i++) {
            seen |= strcmp(states[i], m->stage) ? 0 : 1u << i;
        }
        if (!strcmp("running", m->stage)) {
            CHECK_EQ(SHA256_BYTES, m->key_digest.len);
            CHECK_EQ(1, m->partitions_count);
            CHECK(m->node[0]);
        }
    }
    subscription_close(&events);
    fleet_free(&f);
}

static bool device_has_one(void *none) {
    (void)none;
    return fleet_device_runs(0) == 1;
}

/* The record may say earlier that it runs, so that a job that kills its worker at once is known; people are told when it is so. */
static void claim_told_when_it_runs(void) {
    struct fleet *f = fleet_new(1);
    struct subscription *running = NULL;
    struct subject filter = filter_events_state(&f->user.space, "running");
    struct message m = {0};
    CHECK_OK(transport_subscribe(&running, f->user.link, filter.text, NULL));
    fleet_trouble(0, TROUBLE_HANG, 0);
    submit_job(&f->user, &(struct job_order){.case_name = MUL, .job_id = "j0"});
    CHECK_OK(subscription_next(&m, running, 5 * SECOND));
    CHECK_HAS(m.subject, "j0");
    wait_until(device_has_one, NULL, "the device has taken the first job");
    message_done(&m);
    submit_job(&f->user, &(struct job_order){.case_name = MUL, .job_id = "j1"});
    CHECK_ERR(E_TIMEOUT, subscription_next(&m, running, SECOND / 2));
    fleet_trouble(0, TROUBLE_NONE, 0);
    CHECK_OK(subscription_next(&m, running, 5 * SECOND));
    CHECK_HAS(m.subject, "j1");
    message_done(&m);
    subscription_close(&running);
    fleet_free(&f);
}

static void claim_error(void) {
    struct fleet *f = fleet_new(1);
    struct subscription *errors = listen_to(f, filter_telemetry_kind(&f->user.space, "error"));
    struct subscription *spans = listen_to(f, filter_telemetry_kind(&f->user.space, "span"));
    fleet_trouble(0, TROUBLE_DEVICE, 1);
    prove_one(f, "j1"); /* the second try */
    AUTO(message_free)
    Bellows__V1__ErrorReport *e = next(errors, &bellows__v1__error_report__descriptor);
    CHECK_STR("E_DEVICE", e->name);
    CHECK_STR("j1", e->job_id);
    CHECK_STR("evaluate", e->step);
    CHECK_HAS(e->detail, "is in trouble");
    AUTO(message_free)
    Bellows__V1__SpanReport *first = next(spans, &bellows__v1__span_report__descriptor);
    AUTO(message_free)
    Bellows__V1__SpanReport *second = next(spans, &bellows__v1__span_report__descriptor);
    CHECK_STR("given_back", first->outcome);
    CHECK_STR("E_DEVICE", first->error_name);
    CHECK_STR("E_DEVICE", span_named(first, "evaluate")->outcome);
    CHECK_STR("done", second->outcome);
    CHECK_EQ(2, second->attempt);
    subscription_close(&errors);
    subscription_close(&spans);
    fleet_free(&f);
}

static uint64_t account(const Bellows__V1__DeviceReport *m, const char *name) {
    for (size_t i = 0; i < m->n_accounts; i++) {
        if (!strcmp(m->accounts[i]->name, name)) {
            return m->accounts[i]->ns;
        }
    }
    check_fail(__FILE__, __LINE__, "there is no account %s", name);
}

static uint64_t counter(const Bellows__V1__DeviceReport *m, const char *name) {
    for (size_t i = 0; i < m->n_counters; i++) {
        if (!strcmp(m->counters[i]->name, name)) {
            return m->counters[i]->value;
        }
    }
    check_fail(__FILE__, __LINE__, "there is no counter %s", name);
}

static void check_books(const Bellows__V1__DeviceReport *m) {
    uint64_t sum_ns = m->open_ns;
    CHECK_EQ(LEDGER_ACCOUNTS_COUNT, m->n_accounts);
    for (size_t i = 0; i < m->n_accounts; i++) {
        sum_ns += m->accounts[i]->ns;
    }
    CHECK_EQ(m->wall_ns, sum_ns);
}

static void claim_books(void) {
    struct fleet *f = fleet_new(1);
    struct subscription *devices = listen_to(f, filter_telemetry_kind(&f->user.space, "device"));
    AUTO(message_free)
    Bellows__V1__DeviceReport *before = next(devices, &bellows__v1__device_report__descriptor);
    check_books(before);
    fleet_trouble(0, TROUBLE_SLOW, 0); /* 100 ms in each proof that the prover does not measure */
    for (int i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof name, "j%d", i);
        prove_one(f, name);
    }
    for (;;) {
        AUTO(message_free)
        Bellows__V1__DeviceReport *m = next(devices, &bellows__v1__device_report__descriptor);
        check_books(m);
        CHECK_STR(before->session, m->session);
        CHECK(m->sequence > before->sequence && m->wall_ns > before->wall_ns);
        if (counter(m, "jobs_done") == 3 && m->open_ns == 0) {
            CHECK(account(m, "compute.other") >= 3 * SECOND / 10);
            CHECK(account(m, "wait.no_work") > 0 && account(m, "wait.key") > 0);
            break;
        }
    }
    subscription_close(&devices);
    fleet_free(&f);
}

static void claim_drained(void) {
    struct fleet *f = fleet_new(1);
    struct subscription *devices = listen_to(f, filter_telemetry_kind(&f->user.space, "device"));
    struct subscription *lanes = listen_to(f, filter_telemetry_kind(&f->user.space, "lane"));
    lane_drain(f->lanes[0].lane, 0, "for the test");
    for (int told = 0; told != 3;) {
        AUTO(message_free)
        Bellows__V1__DeviceReport *m = next(devices, &bellows__v1__device_report__descriptor);
        AUTO(message_free)
        Bellows__V1__LaneReport *l = next(lanes, &bellows__v1__lane_report__descriptor);
        told |= account(m, "fenced") > 0 && !strcmp("fenced", m->now) ? 1 : 0;
        told |=
            l->state == BELLOWS__V1__LANE_STATE__LANE_DRAINING && !strcmp("for the test", l->reason)
                ? 2
                : 0;
    }
    subscription_close(&devices);
    subscription_close(&lanes);
    fleet_free(&f);
}

static void claim_cut(void) {
    struct fleet *f = fleet_new(1);
    struct subscription *devices = listen_to(f, filter_telemetry_kind(&f->user.space, "device"));
    loopback_partition(f->lanes[0].links.telemetry, true);
    uint64_t start_ns = clock_ns();
    for (int i = 0; i < 10; i++) {
        char name[8];
        snprintf(name, sizeof name, "j%d", i);
        prove_one(f, name);
    }
    CHECK(clock_ns() - start_ns < 20 * SECOND);
    clock_sleep_ns(SECOND / 2); /* what was said last has been tried, too */
    loopback_partition(f->lanes[0].links.telemetry, false);
    uint64_t dropped = 0;
    for (int n = 0; n < 10 && dropped < 10;
         n++) { /* each told of its start, its spans and its end */
        AUTO(message_free)
        Bellows__V1__DeviceReport *m = next(devices, &bellows__v1__device_report__descriptor);
        dropped = counter(m, "telemetry_dropped");
        check_books(m); /* nothing is lost of what is told as totals */
    }
    CHECK(dropped >= 10);
    subscription_close(&devices);
    fleet_free(&f);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a job's story has its steps in order, with starts, bytes and outcome", claim_story},
        {"a body within the descriptor has the bytes of the same body as an object", claim_inline},
        {"its states are events, the running one with what the job is", claim_events},
        {"a job is told to run when the device has it", claim_told_when_it_runs},
        {"what went wrong is told with its step, and the next try is another story", claim_error},
        {"the books of a working device are its wall time in every report", claim_books},
        {"a drained lane says so, and its time is booked as that", claim_drained},
        {"jobs do not wait for telemetry that nobody takes, and what was lost is counted",
         claim_cut},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
