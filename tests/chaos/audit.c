/* A fault is printed at once with what is known of the job; only the first is kept for the claim's reason. */
#include "tests/chaos/audit.h"
#include "tests/chaos/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/file.h"
#include "node/transport/fleet.h"

#define SECOND UINT64_C(1000000000)

static void fault(struct audit *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fault(struct audit *a, const char *format, ...) {
    char text[700];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printf("FAULT    %s\n", text);
    if (a->faults_count++ == 0) {
        snprintf(a->first, sizeof a->first, "%.380s", text);
    }
}

/* --- Nothing open --- */

struct open_look {
    struct audit *audit; /* NULL: only count */
    unsigned open;
};

static enum err look_at_record(void *ctx, const struct kv_entry *entry) {
    struct open_look *look = ctx;
    AUTO(record_done) struct record r = {0};
    TRY(record_unpack(&r, entry->value));
    if (!job_state_is_open(r.state)) {
        return OK;
    }
    look->open++;
    if (look->audit) {
        char parts[400] = "";
        size_t at = 0;
        for (uint32_t i = 0; i < r.parts_count && at < sizeof parts; i++) {
            const struct record_part *p = &r.parts[i];
            int n = snprintf(parts + at, sizeof parts - at, " %u %s %s.%u epoch %llu tries %u;", i,
                             job_state_name(p->state), p->lane.node, p->lane.gpu,
                             (unsigned long long)p->epoch, p->tries_count);
            at += n > 0 ? (size_t)n : 0;
        }
        fault(look->audit, "%s is still %s:%s %s", entry->key, job_state_name(r.state), parts,
              r.reason);
    }
    return OK;
}

static unsigned open_records(struct host *h, struct audit *a) {
    struct open_look look = {.audit = a};
    struct subject bucket = kv_bucket_name(&h->user.space, "jobs");
    enum err code = kv_list(h->user.link, bucket.text, "*.*", look_at_record, &look);
    return code == OK ? look.open : 1;
}

static uint64_t waiting_at(struct host *h, const char *tail, struct subject consumer) {
    struct subject stream = stream_name(&h->user.space, tail);
    struct consumer_info info = {0};
    bool found = false;
    CHECK_OK(consumer_info(&info, &found, h->user.link, stream.text, consumer.text));
    return found ? info.pending_count + info.ack_pending_count : 1;
}

/* What the consumers of both work queues still have to deliver or to see acknowledged. */
static uint64_t waiting(struct host *h) {
    uint64_t count = 0;
    for (unsigned priority = 0; priority < JOB_PRIORITY_COUNT; priority++) {
        count += waiting_at(h, "JOBS", consumer_of_priority(priority));
    }
    for (unsigned node = 0; node < NODES; node++) {
        for (unsigned gpu = 0; gpu < LANES_PER_NODE; gpu++) {
            char name[16];
            snprintf(name, sizeof name, "w%u", node);
            count += waiting_at(h, "LANES", consumer_of_lane((struct lane_name){name, gpu}));
        }
    }
    return count;
}

/* The packaged server, killed, may forget that it has removed an acknowledged message: it lies in the stream, no consumer gets it. Its
 * job is in the book like any other, so nothing is lost by it. */
static void note_stranded(struct audit *a, struct host *h, const char *tail) {
    struct subject stream = stream_name(&h->user.space, tail);
    for (uint64_t sequence = 1;;) {
        AUTO(message_done) struct message m = {0};
        bool found = false;
        CHECK_OK(stream_get_next(&m, &found, h->user.link, stream.text, sequence, ">"));
        if (!found) {
            return;
        }
        printf("stranded %s, message %llu of %s\n", m.subject, (unsigned long long)m.sequence,
               stream.text);
        a->stranded_count++;
        sequence = m.sequence + 1;
    }
}

void audit_settle(struct audit *a, struct host *h, uint64_t wait_ns) {
    uint64_t start_ns = clock_ns();
    for (;;) {
        bool late = clock_ns() - start_ns > wait_ns;
        unsigned open = open_records(h, late ? a : NULL);
        uint64_t jobs = host_stream_count(h, "JOBS"), lanes = host_stream_count(h, "LANES");
        if (!open && ((!lanes && !jobs) || !waiting(h))) {
            note_stranded(a, h, "JOBS");
            note_stranded(a, h, "LANES");
            printf("settled  after %.1f s\n", (double)(clock_ns() - start_ns) / 1e9);
            return;
        }
        if (late) {
            if (jobs || lanes) {
                fault(a, "%llu messages stay in BELLOWS_JOBS, %llu in BELLOWS_LANES",
                      (unsigned long long)jobs, (unsigned long long)lanes);
            }
            return;
        }
        clock_sleep_ns(SECOND / 4);
    }
}

/* --- Each promise --- */

static bool is_allowed(const struct errand *e, const struct record *r, const result_message *m) {
    switch (r->state) {
    case JOB_DONE:
        return e->kind != ERRAND_UNSAT && e->kind != ERRAND_BAD &&
               !(e->cancel_confirmed && e->generation == 1);
    case JOB_CANCELLED:
        return e->kind == ERRAND_CANCEL && e->generation == 1;
    case JOB_EXPIRED:
        return e->kind == ERRAND_DEADLINE;
    case JOB_FAILED:
        return (e->kind == ERRAND_UNSAT || e->kind == ERRAND_BAD) && m->error &&
               m->error->detail[0];
    default:
        return false;
    }
}

static Bellows__V1__Status status_of_state(enum job_state state) {
    return state == JOB_DONE        ? BELLOWS__V1__STATUS__STATUS_OK
           : state == JOB_CANCELLED ? BELLOWS__V1__STATUS__STATUS_CANCELLED
           : state == JOB_EXPIRED   ? BELLOWS__V1__STATUS__STATUS_EXPIRED
                                    : BELLOWS__V1__STATUS__STATUS_FAILED;
}

static void count(struct audit *a, enum job_state state) {
    a->proved += state == JOB_DONE;
    a->failed += state == JOB_FAILED;
    a->cancelled += state == JOB_CANCELLED;
    a->expired += state == JOB_EXPIRED;
    a->dead += state == JOB_DEAD;
}

/* Of two works under one id the first that a coordinator meets is the job; where one was killed that need not be the first sent. */
static const char *case_of(const struct errand *e, const result_message *m) {
    struct file_map map = {0};
    struct sha256 digest;
    char tail[128];
    if (!e->other_case) {
        return e->case_name;
    }
    snprintf(tail, sizeof tail, "%s/circuit.zkey", e->other_case);
    CHECK_OK(file_map_open(&map, check_vectors(tail)));
    CHECK_OK(sha256_of(&digest, map.bytes));
    file_map_close(&map);
    bool other =
        m->key_digest.len == SHA256_BYTES && !memcmp(m->key_digest.data, digest.b, SHA256_BYTES);
    return other ? e->other_case : e->case_name;
}

static void look_at_errand(struct audit *a, struct host *h, const struct errand *e) {
    struct job_place at = {h->user.link, &h->user.space, {e->tenant, e->job}};
    AUTO(record_slot_done) struct record_slot slot = {0};
    AUTO(message_free) result_message *m = NULL;
    bool found = false;
    CHECK_OK(record_load(&slot, &found, &at));
    if (!found) {
        fault(a, "%s.%s was promised and has no record", e->tenant, e->job);
        return;
    }
    const struct record *r = &slot.record;
    if (r->generation != e->generation) {
        fault(a, "%s.%s: the record's generation is %llu, sent was %llu", e->tenant, e->job,
              (unsigned long long)r->generation, (unsigned long long)e->generation);
        return;
    }
    CHECK_OK(result_fetch(&m, &found, &at, e->generation));
    if (!found) {
        fault(a, "%s.%s is %s and has no result", e->tenant, e->job, job_state_name(r->state));
        return;
    }
    count(a, r->state);
    if (m->status != status_of_state(r->state)) {
        fault(a, "%s.%s: the record says %s, the result %s: %s", e->tenant, e->job,
              job_state_name(r->state), status_name(m->status), m->error ? m->error->detail : "");
    } else if (!is_allowed(e, r, m)) {
        fault(a, "%s.%s (%s%s%s) ended as %s: %s", e->tenant, e->job, errand_name(e->kind),
              e->cancel_confirmed ? ", cancel confirmed" : "", e->as_object ? ", object" : "",
              job_state_name(r->state), m->error ? m->error->detail : r->reason);
    } else if (r->state == JOB_DONE) {
        const char *case_name = case_of(e, m);
        check_proved(m, case_name, e->parts_count);
    }
}

/* --- Nothing left over --- */

/* Every generation promised has one message; a replaced one would leave a gap in the sequence. */
static void look_at_results(struct audit *a, struct host *h, const struct traffic *t) {
    struct stream_info info;
    struct subject name = stream_name(&h->user.space, "DONE");
    uint64_t promised = 0;
    for (size_t i = 0; i < t->errands_count; i++) {
        promised += t->errands[i].generation;
    }
    CHECK_OK(stream_info(&info, h->user.link, name.text));
    if (info.messages_count != promised) {
        fault(a, "%llu results are stored, promised were %llu",
              (unsigned long long)info.messages_count, (unsigned long long)promised);
    }
    if (info.messages_count &&
        info.last_sequence - info.first_sequence + 1 != info.messages_count) {
        fault(a, "a result was replaced: %llu messages in sequences %llu to %llu",
              (unsigned long long)info.messages_count, (unsigned long long)info.first_sequence,
              (unsigned long long)info.last_sequence);
    }
}

/* Chunks of promised bodies in a tenant's bucket; the names' entries may stay, marked as deleted. */
static unsigned chunks_in(struct audit *a, struct host *h, const struct traffic *t,
                          const char *tenant) {
    struct subject bucket = bucket_in(&h->user.space, tenant);
    char stream[SUBJECT_BYTES_MAX + 8], filter[SUBJECT_BYTES_MAX + 16];
    unsigned found_count = 0;
    snprintf(stream, sizeof stream, "OBJ_%s", bucket.text);
    snprintf(filter, sizeof filter, "$O.%s.C.>", bucket.text);
    for (uint64_t sequence = 1;;) {
        AUTO(message_done) struct message m = {0};
        bool found = false;
        if (stream_get_next(&m, &found, h->user.link, stream, sequence, filter) != OK || !found) {
            return found_count;
        }
        const char *nuid = strrchr(m.subject, '.');
        bool promised = nuid && traffic_owns_body(t, nuid + 1);
        found_count += promised;
        a->litter_count += !promised;
        sequence = m.sequence + 1;
    }
}

static void look_at_buckets(struct audit *a, struct host *h, const struct traffic *t,
                            uint64_t wait_ns) {
    uint64_t start_ns = clock_ns();
    for (;;) {
        unsigned all = 0;
        a->litter_count = 0;
        for (unsigned i = 0; i < TENANTS_COUNT; i++) {
            char tenant[8];
            snprintf(tenant, sizeof tenant, "t%u", i);
            all += chunks_in(a, h, t, tenant);
        }
        if (!all) {
            return;
        }
        if (clock_ns() - start_ns > wait_ns) {
            a->orphans_count = all;
            fault(a, "%u of %zu bodies stay in the buckets", all, t->nuids_count);
            return;
        }
        clock_sleep_ns(SECOND / 4);
    }
}

void audit_book(struct audit *a, struct host *h, const struct traffic *t) {
    for (size_t i = 0; i < t->errands_count; i++) {
        const struct errand *e = &t->errands[i];
        if (e->generation) {
            look_at_errand(a, h, e);
        } else {
            fault(a, "%s.%s was never taken by the server", e->tenant, e->job);
        }
    }
    look_at_results(a, h, t);
    look_at_buckets(a, h, t, 10 * SECOND);
}
