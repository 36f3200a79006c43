/* Every message becomes plain values at once; the picture holds no pointer into any of them. Its tables are allocated when it is made, and
 * a table that is full keeps what is newer: a new job takes the place of the one that was heard of longest ago.
 */
#include "node/cli/fleet_watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "proto/fleet.pb-c.h"
#include "proto/telemetry.pb-c.h"
#include "proto/unpack.h"

static const uint64_t MINUTE_NS = UINT64_C(60000000000);
static const uint64_t SILENT_MS = 8000, KEPT_MS = 10000 /* between reports that the stream keeps */;
enum { PAST_READ_MAX = 64, TAKE_MAX = 4096 };

struct fleet_watch {
    struct transport *transport; /* lent */
    struct subject_space space;
    struct subscription *telemetry, *events; /* owned */
    struct watch picture;
};

/* --- Texts --- */

/* Printable ASCII; what is not becomes '?'. */
static void copy_text(char *out, size_t out_bytes, const char *text) {
    size_t at = 0;
    for (; text[at] && at + 1 < out_bytes; at++) {
        out[at] = text[at] >= ' ' && text[at] < 0x7f ? text[at] : '?';
    }
    out[at] = 0;
}
#define COPY_TEXT(array, text) copy_text((array), sizeof(array), (text))

static bool copy_digest(struct sha256 *out, const ProtobufCBinaryData *data) {
    if (data->len != SHA256_BYTES) {
        memset(out, 0, sizeof *out);
        return false;
    }
    memcpy(out->b, data->data, SHA256_BYTES);
    return true;
}

/* --- The picture's tables --- */

enum err watch_picture_init(struct watch *p) {
    AUTO(watch_picture_done) struct watch made = {0};
    TRY(mem_new(&made.lanes, WATCH_LANES_MAX, sizeof *made.lanes));
    TRY(mem_new(&made.jobs, WATCH_JOBS_MAX, sizeof *made.jobs));
    *p = made;
    made = (struct watch){0};
    return OK;
}

void watch_picture_done(struct watch *p) {
    mem_free(p->lanes);
    mem_free(p->jobs);
    *p = (struct watch){0};
}

static int compare_lane(const struct watch_lane *a, const char *node, uint32_t gpu) {
    int order = strcmp(a->node, node);
    return order ? order : a->gpu < gpu ? -1 : a->gpu > gpu;
}

/* NULL: the table is full. */
static struct watch_lane *lane_of(struct watch *p, const struct subject_parts *parts) {
    size_t at = 0;
    while (at < p->lanes_count && compare_lane(&p->lanes[at], parts->node, parts->gpu) < 0) {
        at++;
    }
    if (at < p->lanes_count && compare_lane(&p->lanes[at], parts->node, parts->gpu) == 0) {
        return &p->lanes[at];
    }
    if (p->lanes_count == WATCH_LANES_MAX) {
        return NULL;
    }
    memmove(&p->lanes[at + 1], &p->lanes[at], (p->lanes_count++ - at) * sizeof *p->lanes);
    p->lanes[at] = (struct watch_lane){.gpu = parts->gpu, .known_ms = clock_unix_ns() / 1000000};
    COPY_TEXT(p->lanes[at].node, parts->node);
    return &p->lanes[at];
}

const struct watch_job *watch_find_job(const struct watch *p, const char *tenant, const char *job) {
    for (size_t i = 0; i < p->jobs_count; i++) {
        if (!strcmp(p->jobs[i].job, job) && !strcmp(p->jobs[i].tenant, tenant)) {
            return &p->jobs[i];
        }
    }
    return NULL;
}

static struct watch_job *job_of(struct watch *p, const char *tenant_said, const char *job_said) {
    char tenant[WATCH_ID_BYTES], job[WATCH_ID_BYTES];
    COPY_TEXT(tenant, tenant_said); /* as it is kept, or it would never be found again */
    COPY_TEXT(job, job_said);
    const struct watch_job *found = watch_find_job(p, tenant, job);
    if (found) {
        return &p->jobs[found - p->jobs];
    }
    size_t at = p->jobs_count;
    if (at == WATCH_JOBS_MAX) {
        at = 0;
        for (size_t i = 1; i < WATCH_JOBS_MAX; i++) {
            at = p->jobs[i].last_ms < p->jobs[at].last_ms ? i : at;
        }
    } else {
        p->jobs_count++;
    }
    p->jobs[at] = (struct watch_job){0};
    COPY_TEXT(p->jobs[at].tenant, tenant);
    COPY_TEXT(p->jobs[at].job, job);
    return &p->jobs[at];
}

/* --- Reports --- */

static size_t copy_counters(struct watch_number *out, size_t out_max,
                            Bellows__V1__Counter *const *counters, size_t count) {
    count = count < out_max ? count : out_max;
    for (size_t i = 0; i < count; i++) {
        COPY_TEXT(out[i].name, counters[i]->name);
        out[i].value = counters[i]->value;
    }
    return count;
}

static void add_sample(struct watch_lane *lane, const Bellows__V1__DeviceReport *m) {
    struct watch_sample s = {.at_ms = m->at_unix_ms, .wall_ns = m->wall_ns, .open_ns = m->open_ns};
    for (size_t i = 0; i < m->n_accounts; i++) {
        for (int k = 0; k < LEDGER_ACCOUNTS_COUNT; k++) {
            if (!strcmp(m->accounts[i]->name, ledger_account_name((enum ledger_account)k))) {
                s.ns[k] = m->accounts[i]->ns;
            }
        }
    }
    if (strcmp(lane->session, m->session) != 0) {
        lane->samples_count = 0; /* another process: its totals began at zero */
    }
    if (lane->samples_count && lane->samples[lane->samples_count - 1].wall_ns >= s.wall_ns) {
        return; /* heard before */
    }
    if (lane->samples_count == WATCH_SAMPLES_MAX) {
        memmove(lane->samples, lane->samples + 1, --lane->samples_count * sizeof s);
    }
    lane->samples[lane->samples_count++] = s;
}

/* What the stream keeps may be ten seconds old: it says nothing of this moment. */
static const char UNKNOWN[] = "?";

static void on_device(struct watch_lane *lane, const Bellows__V1__DeviceReport *m, bool live) {
    lane->spoke_device |= live;
    add_sample(lane, m);
    COPY_TEXT(lane->session, m->session);
    COPY_TEXT(lane->backend, m->backend);
    COPY_TEXT(lane->device, m->device);
    COPY_TEXT(lane->now, live ? m->now : UNKNOWN);
    lane->heard_ms = m->at_unix_ms > lane->heard_ms ? m->at_unix_ms : lane->heard_ms;
    lane->memory_count = m->n_memory < WATCH_MEMORY_MAX ? m->n_memory : WATCH_MEMORY_MAX;
    for (size_t i = 0; i < lane->memory_count; i++) {
        COPY_TEXT(lane->memory[i].name, m->memory[i]->name);
        lane->memory[i].value = m->memory[i]->used_bytes;
        lane->memory[i].limit = m->memory[i]->limit_bytes;
    }
    memset(lane->known, 0, sizeof lane->known);
    for (size_t i = 0; i < m->n_readings; i++) {
        unsigned sensor = (unsigned)m->readings[i]->sensor;
        if (sensor < WATCH_SENSORS_MAX) {
            lane->readings[sensor] = m->readings[i]->value;
            lane->known[sensor] = true;
        }
    }
    lane->counters_count =
        copy_counters(lane->counters, WATCH_COUNTERS_MAX, m->counters, m->n_counters);
}

static void on_lane(struct watch_lane *lane, const Bellows__V1__LaneReport *m, bool live) {
    lane->spoke_lane |= live;
    lane->state = m->state;
    lane->strikes = m->strikes;
    lane->depth_max = m->depth_max;
    lane->heard_ms = m->at_unix_ms > lane->heard_ms ? m->at_unix_ms : lane->heard_ms;
    COPY_TEXT(lane->reason, m->reason);
    COPY_TEXT(lane->version, m->bellows_version);
    lane->depth = live ? m->depth : 0;
    lane->hand_count = !live ? 0 : m->n_jobs < WATCH_HAND_MAX ? m->n_jobs : WATCH_HAND_MAX;
    for (size_t i = 0; i < lane->hand_count; i++) {
        const Bellows__V1__JobInHand *in = m->jobs[i];
        struct watch_hand *out = &lane->hand[i];
        COPY_TEXT(out->tenant, in->tenant);
        COPY_TEXT(out->job, in->job_id);
        COPY_TEXT(out->stage, in->stage);
        COPY_TEXT(out->step, in->step);
        copy_digest(&out->key, &in->key_digest);
        out->partition = in->partition_index;
        out->priority = in->priority;
        out->permille = in->permille < 1000 ? in->permille : 1000;
        out->age_ns = in->age_ns;
        out->stage_ns = in->stage_ns;
    }
}

static void on_keys(struct watch_lane *lane, const Bellows__V1__KeysReport *m) {
    lane->keys_count = m->n_keys < WATCH_KEYS_MAX ? m->n_keys : WATCH_KEYS_MAX;
    for (size_t i = 0; i < lane->keys_count; i++) {
        copy_digest(&lane->keys[i], &m->keys[i]->digest);
        lane->key_loaded[i] = m->keys[i]->loaded;
        lane->key_prove_ns[i] = m->keys[i]->prove_ns;
    }
}

static void on_error(struct watch_lane *lane, const Bellows__V1__ErrorReport *m) {
    COPY_TEXT(lane->error, m->name);
    COPY_TEXT(lane->error_detail, m->detail);
    COPY_TEXT(lane->error_job, m->job_id);
    lane->error_ms = m->at_unix_ms;
}

static void on_span(struct watch *p, const Bellows__V1__SpanReport *m) {
    struct watch_job *job = job_of(p, m->tenant, m->job_id);
    job->last_ms = m->at_unix_ms > job->last_ms ? m->at_unix_ms : job->last_ms;
    job->first_ms = job->first_ms ? job->first_ms : m->at_unix_ms;
    COPY_TEXT(job->node, m->node);
    job->gpu = m->gpu;
    job->priority = m->priority;
    job->has_key = copy_digest(&job->key, &m->key_digest);
    job->total_ns = m->total_ns;
    job->device_ns = m->device_ns;
    job->energy_mj = m->energy_millijoule;
    job->steps_count = m->n_spans < SPANS_MAX ? m->n_spans : SPANS_MAX;
    for (size_t i = 0; i < job->steps_count; i++) {
        const Bellows__V1__Span *in = m->spans[i];
        COPY_TEXT(job->steps[i].name, in->step);
        COPY_TEXT(job->steps[i].outcome, in->outcome);
        job->steps[i].start_ns = in->start_ns;
        job->steps[i].ns = in->ns;
        job->steps[i].bytes = in->bytes;
    }
}

static void on_event(struct watch *p, const Bellows__V1__Event *m) {
    struct watch_job *job = job_of(p, m->tenant, m->job_id);
    job->first_ms = job->first_ms && job->first_ms < m->at_unix_ms ? job->first_ms : m->at_unix_ms;
    if (m->key_digest.len == SHA256_BYTES) {
        job->has_key = copy_digest(&job->key, &m->key_digest);
        job->priority = m->priority;
        job->partitions = m->partitions_count;
        COPY_TEXT(job->label, m->label);
    }
    if (m->at_unix_ms < job->last_ms) {
        return; /* older news */
    }
    job->last_ms = m->at_unix_ms;
    COPY_TEXT(job->state, m->stage);
    COPY_TEXT(job->reason, m->reason);
    COPY_TEXT(job->error, m->error_name);
    if (m->node[0]) {
        COPY_TEXT(job->node, m->node);
        job->gpu = m->gpu;
    }
    job->failed = m->state == BELLOWS__V1__JOB_STATE__JOB_FAILED ||
                  m->state == BELLOWS__V1__JOB_STATE__JOB_DEAD ||
                  m->state == BELLOWS__V1__JOB_STATE__JOB_EXPIRED;
}

static void on_fleet(struct watch_fleet *f, const Bellows__V1__FleetReport *m) {
    f->known = true;
    f->ready = m->ready;
    COPY_TEXT(f->leader, m->leader);
    f->at_ms = m->at_unix_ms;
    f->jobs_open = m->jobs_open;
    f->queued = m->partitions_queued;
    f->placed = m->partitions_placed;
    f->running = m->partitions_running;
    f->lanes_open = m->lanes_open;
    f->lanes_known = m->lanes_known;
    f->deadlines_at_risk = m->deadlines_at_risk;
    f->backlog_ns = m->backlog_ns;
    f->backlog_wall_ns = m->backlog_wall_ns;
    f->queues_count = m->n_queues < WATCH_QUEUES_MAX ? m->n_queues : WATCH_QUEUES_MAX;
    for (size_t i = 0; i < f->queues_count; i++) {
        const Bellows__V1__Queue *in = m->queues[i];
        f->queues[i] = (struct watch_queue){.priority = in->priority,
                                            .partitions = in->partitions_count,
                                            .oldest_ns = in->oldest_ns,
                                            .work_ns = in->work_ns};
        copy_digest(&f->queues[i].key, &in->key_digest);
        COPY_TEXT(f->queues[i].label, in->label);
    }
    f->counters_count = copy_counters(f->counters, WATCH_COUNTERS_MAX, m->counters, m->n_counters);
}

/* --- Messages --- */

static bool hear_lane(struct watch *p, const struct subject_parts *parts, struct bytes data) {
    static const struct {
        const char *kind;
        const ProtobufCMessageDescriptor *type;
    } kinds[] = {
        {"device", &bellows__v1__device_report__descriptor},
        {"lane", &bellows__v1__lane_report__descriptor},
        {"keys", &bellows__v1__keys_report__descriptor},
        {"error", &bellows__v1__error_report__descriptor},
        {"span", &bellows__v1__span_report__descriptor},
    };
    size_t kind = 0;
    while (kind < COUNT_OF(kinds) && strcmp(kinds[kind].kind, parts->verb) != 0) {
        kind++;
    }
    AUTO(message_free) ProtobufCMessage *m = NULL;
    if (kind == COUNT_OF(kinds) ||
        message_unpack(&m, kinds[kind].type, data, MESSAGE_BYTES_MAX, parts->verb) != OK) {
        return false;
    }
    struct watch_lane *lane = lane_of(p, parts);
    if (!lane) {
        return false;
    }
    switch (kind) {
    case 0:
        on_device(lane, (const Bellows__V1__DeviceReport *)m, p->listens);
        break;
    case 1:
        on_lane(lane, (const Bellows__V1__LaneReport *)m, p->listens);
        break;
    case 2:
        on_keys(lane, (const Bellows__V1__KeysReport *)m);
        break;
    case 3:
        on_error(lane, (const Bellows__V1__ErrorReport *)m);
        break;
    default:
        on_span(p, (const Bellows__V1__SpanReport *)m);
    }
    return true;
}

bool watch_hear(struct watch *p, const struct subject_space *space, const char *subject,
                struct bytes data) {
    struct subject_parts parts;
    bool understood = false;
    if (subject_parse(&parts, space, subject) != OK) {
        p->dropped++;
        return false;
    }
    if (parts.kind == SUBJECT_TELEMETRY) {
        understood = hear_lane(p, &parts, data);
    } else if (parts.kind == SUBJECT_TELEMETRY_FLEET) {
        AUTO(message_free) Bellows__V1__FleetReport *m = NULL;
        understood = message_unpack(&m, &bellows__v1__fleet_report__descriptor, data,
                                    MESSAGE_BYTES_MAX, "fleet report") == OK;
        if (understood) {
            on_fleet(&p->fleet, m);
        }
    } else if (parts.kind == SUBJECT_EVENT) {
        AUTO(message_free) Bellows__V1__Event *m = NULL;
        understood = message_unpack(&m, &bellows__v1__event__descriptor, data, MESSAGE_BYTES_MAX,
                                    "event") == OK;
        if (understood) {
            on_event(p, m);
        }
    }
    p->dropped += !understood;
    return understood;
}

/* --- What the stream remembers --- */

static void hear(struct fleet_watch *w, const struct message *m) {
    (void)watch_hear(&w->picture, &w->space, m->subject, m->data);
}

static void read_last(struct fleet_watch *w, const char *stream, struct subject subject) {
    AUTO(message_done) struct message m = {0};
    bool found = false;
    if (stream_get_last(&m, &found, w->transport, stream, subject.text) == OK && found) {
        hear(w, &m);
    }
}

/* The first sequence stored at or after this time, by halving; the last one when there is none. */
static uint64_t sequence_at(struct fleet_watch *w, const char *stream, uint64_t first,
                            uint64_t last, uint64_t time_unix_ns) {
    while (first < last) {
        AUTO(message_done) struct message m = {0};
        bool found = false;
        uint64_t middle = first + (last - first) / 2;
        if (stream_get_next(&m, &found, w->transport, stream, middle, ">") != OK || !found) {
            return last;
        }
        if (m.time_unix_ns >= time_unix_ns) {
            last = middle;
        } else {
            first = m.sequence + 1 > middle ? m.sequence + 1 : middle + 1;
        }
    }
    return last;
}

struct past { /* of the telemetry stream */
    struct fleet_watch *watch;
    const char *stream;
    uint64_t minute_ago; /* sequence */
};

static enum err read_lane(void *ctx, const struct kv_entry *entry) {
    static const char *const kinds[] = {"device", "lane", "keys", "error"};
    struct past *past = ctx;
    struct fleet_watch *w = past->watch;
    char node[WATCH_ID_BYTES];
    struct lane_name name = {.node = node};
    AUTO(message_done) struct message m = {0};
    bool found = false;
    if (lane_key_parse(node, &name.gpu, entry->key) != OK) {
        return OK;
    }
    struct subject device = subject_telemetry(&w->space, name, kinds[0]);
    if (stream_get_next(&m, &found, w->transport, past->stream, past->minute_ago, device.text) ==
            OK &&
        found) {
        hear(w, &m);
    }
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        read_last(w, past->stream, subject_telemetry(&w->space, name, kinds[i]));
    }
    return OK;
}

/* From this sequence on, oldest first, a limited number. */
static void read_some(struct fleet_watch *w, const char *stream, uint64_t sequence,
                      const char *filter) {
    for (int n = 0; n < PAST_READ_MAX; n++) {
        AUTO(message_done) struct message m = {0};
        bool found = false;
        if (stream_get_next(&m, &found, w->transport, stream, sequence, filter) != OK || !found) {
            return;
        }
        hear(w, &m);
        sequence = m.sequence + 1;
    }
}

static enum err read_past(struct fleet_watch *w) {
    static const char *const failures[] = {"failed", "dead", "expired", "refused"};
    struct subject stream = stream_name(&w->space, "TEL"),
                   bucket = kv_bucket_name(&w->space, "lanes");
    AUTO(message_done) struct message oldest = {0}, newest = {0};
    bool found = false;
    /* Reads only: a dashboard's role may not ask for the stream's state. */
    TRY(stream_get_last(&newest, &found, w->transport, stream.text, ">"));
    if (found) {
        TRY(stream_get_next(&oldest, &found, w->transport, stream.text, 1, ">"));
    }
    if (!found) {
        return OK;
    }
    struct past past = {w, stream.text, 0};
    past.minute_ago =
        sequence_at(w, stream.text, oldest.sequence, newest.sequence, clock_unix_ns() - MINUTE_NS);
    TRY(kv_list(w->transport, bucket.text, ">", read_lane, &past));
    read_last(w, stream.text, subject_telemetry_fleet(&w->space));
    for (size_t i = 0; i < COUNT_OF(failures); i++) {
        struct subject ended = filter_events_state(&w->space, failures[i]);
        read_some(w, stream.text, oldest.sequence, ended.text);
    }
    struct subject spans = filter_telemetry_kind(&w->space, "span");
    read_some(w, stream.text, past.minute_ago, spans.text);
    return OK;
}

/* --- Life --- */

enum err watch_open(struct fleet_watch **out, struct transport *t,
                    const struct subject_space *space) {
    AUTO(watch_close) struct fleet_watch *w = NULL;
    TRY(mem_new(&w, 1, sizeof *w));
    w->transport = t;
    w->space = *space;
    TRY(watch_picture_init(&w->picture));
    struct subject telemetry = filter_telemetry(space), events = filter_events(space);
    TRY(transport_subscribe(&w->telemetry, t, telemetry.text, NULL));
    TRY(transport_subscribe(&w->events, t, events.text, NULL));
    enum err code =
        read_past(w); /* a fleet that never started has no stream: the picture fills as it comes */
    REQUIRE(code == OK || transport_flush(t, UINT64_C(2000000000)) == OK, E_NET,
            "the server does not answer");
    w->picture.listens = true;
    *out = TAKE(w);
    return OK;
}

void watch_close(struct fleet_watch **w) {
    if (*w) {
        subscription_close(&(*w)->telemetry);
        subscription_close(&(*w)->events);
        watch_picture_done(&(*w)->picture);
        mem_free_ptr(w);
    }
}

bool watch_take(struct fleet_watch *w, uint64_t wait_ns) {
    struct subscription *const all[] = {w->telemetry, w->events};
    bool any = false;
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        for (int n = 0; n < TAKE_MAX; n++) {
            AUTO(message_done) struct message m = {0};
            if (subscription_next(&m, all[i], any || i ? 0 : wait_ns) != OK) {
                break;
            }
            hear(w, &m);
            any = true;
        }
    }
    return any;
}

const struct watch *watch_picture(const struct fleet_watch *w) {
    return &w->picture;
}

/* --- Reading it --- */

bool watch_is_silent(const struct watch_lane *lane, uint64_t now_ms) {
    uint64_t heard_ms = lane->heard_ms, next_ms = heard_ms + KEPT_MS;
    if (!lane->spoke_device && !lane->spoke_lane && heard_ms < lane->known_ms) {
        heard_ms = lane->known_ms < next_ms ? lane->known_ms : next_ms;
    }
    return now_ms > heard_ms + SILENT_MS;
}

struct watch_minute watch_minute_of(const struct watch_lane *lane) {
    struct watch_minute out = {0};
    if (lane->samples_count == 0) {
        return out;
    }
    static const struct watch_sample start; /* of the session: all zeros */
    const struct watch_sample *new = &lane->samples[lane->samples_count - 1], *old = &start;
    if (new->wall_ns > MINUTE_NS) {
        old = &lane->samples[0];
        for (size_t i = 0;
             i < lane->samples_count && lane->samples[i].wall_ns + MINUTE_NS <= new->wall_ns; i++) {
            old = &lane->samples[i];
        }
    }
    uint64_t waits_ns = 0;
    out.wall_ns = new->wall_ns - old->wall_ns;
    for (int i = 0; i < LEDGER_ACCOUNTS_COUNT; i++) {
        out.ns[i] = new->ns[i] > old->ns[i] ? new->ns[i] - old->ns[i] : 0;
        waits_ns += ledger_account_is_compute((enum ledger_account)i) ? 0 : out.ns[i];
    }
    out.compute_ns = out.wall_ns > waits_ns ? out.wall_ns - waits_ns : 0;
    return out;
}

uint64_t watch_counter(const struct watch_number *numbers, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (!strcmp(numbers[i].name, name)) {
            return numbers[i].value;
        }
    }
    return 0;
}

/* One letter a cause, computing first, idleness last. */
static const struct {
    enum ledger_account account;
    char letter;
} letters[] = {
    {LEDGER_UPLOAD, '^'},       {LEDGER_WAIT_FETCH, 'f'}, {LEDGER_WAIT_DECODE, 'd'},
    {LEDGER_WAIT_PINNED, 'p'},  {LEDGER_WAIT_KEY, 'k'},   {LEDGER_WAIT_RECORD, 'r'},
    {LEDGER_WAIT_FINISH, 'n'},  {LEDGER_WAIT_LOCK, 'l'},  {LEDGER_FENCED, 'x'},
    {LEDGER_WAIT_NO_WORK, '.'},
};

char watch_letter(enum ledger_account account) {
    for (size_t i = 0; i < COUNT_OF(letters); i++) {
        if (letters[i].account == account) {
            return letters[i].letter;
        }
    }
    return '#';
}

/* Cell i shows the cause in which the i-th part of the time, sorted by cause, begins: so the lengths are right within one cell. */
void watch_bar(char *out, size_t cells, const struct watch_minute *minute) {
    uint64_t ends_ns[COUNT_OF(letters) + 1], sum_ns = minute->compute_ns;
    ends_ns[0] = sum_ns;
    for (size_t i = 0; i < COUNT_OF(letters); i++) {
        ends_ns[i + 1] = sum_ns += minute->ns[letters[i].account];
    }
    for (size_t cell = 0; cell < cells; cell++) {
        uint64_t at_ns = (uint64_t)((unsigned __int128)sum_ns * (2 * cell + 1) / (2 * cells));
        size_t i = 0;
        while (i < COUNT_OF(letters) && ends_ns[i] <= at_ns) {
            i++;
        }
        out[cell] = sum_ns == 0 ? ' ' : i == 0 ? '#' : letters[i - 1].letter;
    }
    out[cells] = 0;
}
