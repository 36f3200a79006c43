/* Streams are vectors of messages in sequence order; consumers are a cursor and a list of what is held.
 *
 * Time is never waited for: ages and ack waits are looked at whenever somebody asks. A held message whose wait has ended is
 * due again, in sequence order, before anything new. Everything is found by walking: a test holds a few thousand
 * messages at most.
 */
#include "node/transport/broker.h"

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "proto/subjects.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DUPLICATE_WINDOW_NS (120 * SECOND_NS)
#define ACK_WAIT_NS         (30 * SECOND_NS)
enum { ACK_PENDING_MAX = 1000, MESSAGE_OVERHEAD_BYTES = 32 };

struct seen_id { /* a message id within its window */
    char *id;    /* owned */
    uint64_t sequence, at_ns;
};

struct held {
    uint64_t sequence, deliveries;
    uint64_t due_ns; /* delivered again from then on */
    bool exhausted;  /* deliveries are used up */
};

struct consumer {
    struct consumer *next;
    char *name, *filter; /* owned; filter NULL: all */
    struct consumer_config config;
    uint64_t next_sequence, delivered_count, redelivered_count, delivered_sequence;
    struct held *held; /* owned, in sequence order */
    size_t held_count, held_cap;
};

struct stream {
    struct stream *next;
    char *name, *subjects[4]; /* owned */
    struct stream_config config;
    struct broker_message **messages; /* owned references, in sequence order */
    size_t messages_count, messages_cap;
    uint64_t bytes, last_sequence;
    struct seen_id *ids; /* owned */
    size_t ids_count, ids_cap;
    struct consumer *consumers; /* owned */
};

struct broker {
    struct stream *streams; /* owned */
};

FALLIBLE broker_new(struct broker **out) {
    return mem_new(out, 1, sizeof **out);
}

/* --- Messages --- */

static char *place(uint8_t **at, const char *s) {
    if (!s) {
        return NULL;
    }
    size_t len = strlen(s) + 1;
    char *copy = (char *)*at;
    memcpy(copy, s, len);
    *at += len;
    return copy;
}

FALLIBLE broker_message_new(struct broker_message **out, const char *subject, const char *reply,
                            struct bytes data, const char *header_name, const char *header_value) {
    const char *const texts[] = {subject, reply, header_name, header_value};
    struct broker_message *m = NULL;
    size_t len = sizeof *m + data.len;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        len += texts[i] ? strlen(texts[i]) + 1 : 0;
    }
    REQUIRE(data.len <= BROKER_PAYLOAD_BYTES_MAX, E_LIMIT,
            "publish to %s: larger than the server's max_payload", subject);
    TRY(mem_new(&m, 1, len));
    uint8_t *at = (uint8_t *)(m + 1);
    m->refs = 1;
    if (data.len > 0) {
        memcpy(at, data.ptr, data.len);
    }
    m->data = bytes_of(at, data.len);
    at += data.len;
    m->subject = place(&at, subject);
    m->reply = place(&at, reply);
    m->header_name = place(&at, header_name);
    m->header_value = place(&at, header_value);
    *out = m;
    return OK;
}

struct broker_message *broker_message_ref(struct broker_message *m) {
    __atomic_add_fetch(&m->refs, 1, __ATOMIC_RELAXED);
    return m;
}

void broker_message_unref(struct broker_message **m) {
    if (*m && __atomic_sub_fetch(&(*m)->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        mem_free(*m);
    }
    *m = NULL;
}

static uint64_t size_of(const struct broker_message *m) {
    return m->data.len + strlen(m->subject) + MESSAGE_OVERHEAD_BYTES;
}

/* Room for one more in a vector. */
static FALLIBLE grow(void *vector, size_t *cap, size_t count, size_t item_bytes) {
    if (count < *cap) {
        return OK;
    }
    size_t more = *cap ? 2 * *cap : 16;
    void *moved = mem_grow(*(void **)vector, more * item_bytes);
    REQUIRE(moved, E_LIMIT, "no memory for %zu entries of %zu bytes", more, item_bytes);
    *(void **)vector = moved;
    *cap = more;
    return OK;
}

/* --- Streams --- */

static struct stream *find_stream(struct broker *b, const char *name) {
    struct stream *s = b->streams;
    while (s && strcmp(s->name, name) != 0) {
        s = s->next;
    }
    return s;
}

static FALLIBLE need_stream(struct stream **out, struct broker *b, const char *name) {
    *out = find_stream(b, name);
    REQUIRE(*out, E_NET, "stream %s: server says 10059: stream not found", name);
    return OK;
}

static bool takes_subject(const struct stream *s, const char *subject) {
    for (size_t i = 0; i < COUNT_OF(s->subjects) && s->subjects[i]; i++) {
        if (subject_matches(s->subjects[i], subject)) {
            return true;
        }
    }
    return false;
}

static void remove_at(struct stream *s, size_t i) {
    s->bytes -= size_of(s->messages[i]);
    broker_message_unref(&s->messages[i]);
    memmove(&s->messages[i], &s->messages[i + 1],
            (s->messages_count - i - 1) * sizeof *s->messages);
    s->messages_count--;
}

/* Index of the first message with a sequence at or above `sequence`. */
static size_t lower_bound(const struct stream *s, uint64_t sequence) {
    size_t low = 0, high = s->messages_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->messages[middle]->sequence < sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool index_of(size_t *out, const struct stream *s, uint64_t sequence) {
    *out = lower_bound(s, sequence);
    return *out < s->messages_count && s->messages[*out]->sequence == sequence;
}

static void free_consumer(struct consumer *c) {
    mem_free(c->name);
    mem_free(c->filter);
    mem_free(c->held);
    mem_free(c);
}

static void free_stream(struct stream *s) {
    while (s->messages_count > 0) {
        remove_at(s, s->messages_count - 1);
    }
    for (size_t i = 0; i < s->ids_count; i++) {
        mem_free(s->ids[i].id);
    }
    while (s->consumers) {
        struct consumer *c = s->consumers;
        s->consumers = c->next;
        free_consumer(c);
    }
    for (size_t i = 0; i < COUNT_OF(s->subjects); i++) {
        mem_free(s->subjects[i]);
    }
    mem_free(s->messages);
    mem_free(s->ids);
    mem_free(s->name);
    mem_free(s);
}

void broker_free(struct broker **b) {
    if (*b) {
        while ((*b)->streams) {
            struct stream *s = (*b)->streams;
            (*b)->streams = s->next;
            free_stream(s);
        }
        mem_free(*b);
        *b = NULL;
    }
}

static FALLIBLE check_same(const struct stream *s, const struct stream_config *c) {
    REQUIRE(s->config.retention == c->retention, E_FORMAT,
            "stream %s exists with another retention: delete it or choose another prefix", c->name);
    for (size_t i = 0; i < COUNT_OF(c->subjects); i++) {
        const char *want = c->subjects[i] ? c->subjects[i] : "";
        REQUIRE(strcmp(s->subjects[i] ? s->subjects[i] : "", want) == 0, E_FORMAT,
                "stream %s exists with other subjects than %s…: delete it or choose another prefix",
                c->name, c->subjects[0]);
    }
    return OK;
}

FALLIBLE broker_stream_ensure(struct broker *b, const struct stream_config *config) {
    struct stream *s = find_stream(b, config->name);
    if (s) {
        TRY(check_same(s, config));
        if (config->replace_limits) {
            s->config.messages_max = config->messages_max;
            s->config.bytes_max = config->bytes_max;
            s->config.messages_per_subject_max = config->messages_per_subject_max;
            s->config.message_bytes_max = config->message_bytes_max;
            s->config.age_max_ns = config->age_max_ns;
        }
        return OK;
    }
    TRY(mem_new(&s, 1, sizeof *s));
    s->config = *config;
    s->config.name = NULL; /* names are lent by the caller; ours are copies */
    memset(s->config.subjects, 0, sizeof s->config.subjects);
    s->name = mem_strdup(config->name);
    bool whole = s->name != NULL;
    for (size_t i = 0; i < COUNT_OF(s->subjects) && config->subjects[i]; i++) {
        s->subjects[i] = mem_strdup(config->subjects[i]);
        whole = whole && s->subjects[i];
    }
    if (!whole) {
        free_stream(s);
        FAIL(E_LIMIT, "no memory for stream %s", config->name);
    }
    s->next = b->streams;
    b->streams = s;
    return OK;
}

void broker_stream_delete(struct broker *b, const char *name) {
    for (struct stream **at = &b->streams; *at; at = &(*at)->next) {
        if (strcmp((*at)->name, name) == 0) {
            struct stream *s = *at;
            *at = s->next;
            free_stream(s);
            return;
        }
    }
}

/* Removes what is older than the stream's age; forgets ids outside their window. */
static void sweep(struct stream *s, uint64_t now_ns) {
    uint64_t age = s->config.age_max_ns;
    uint64_t window = s->config.duplicate_window_ns      ? s->config.duplicate_window_ns
                      : age && age < DUPLICATE_WINDOW_NS ? age
                                                         : DUPLICATE_WINDOW_NS;
    while (age && s->messages_count > 0 && now_ns - s->messages[0]->stored_ns >= age) {
        remove_at(s, 0);
    }
    size_t kept = 0;
    for (size_t i = 0; i < s->ids_count; i++) {
        if (now_ns - s->ids[i].at_ns >= window) {
            mem_free(s->ids[i].id);
        } else {
            s->ids[kept++] = s->ids[i];
        }
    }
    s->ids_count = kept;
}

FALLIBLE broker_stream_info(struct stream_info *out, struct broker *b, const char *name,
                            uint64_t now_ns) {
    struct stream *s;
    TRY(need_stream(&s, b, name));
    sweep(s, now_ns);
    *out = (struct stream_info){
        .messages_count = s->messages_count,
        .bytes = s->bytes,
        .first_sequence = s->messages_count ? s->messages[0]->sequence : s->last_sequence + 1,
        .last_sequence = s->last_sequence,
        .bytes_max = s->config.bytes_max > 0 ? (uint64_t)s->config.bytes_max : 0,
    };
    for (struct consumer *c = s->consumers; c; c = c->next) {
        out->consumers_count++;
    }
    return OK;
}

FALLIBLE broker_stream_purge(uint64_t *purged_count, struct broker *b, const char *name,
                             const char *filter) {
    struct stream *s;
    TRY(need_stream(&s, b, name));
    *purged_count = 0;
    for (size_t i = s->messages_count; i-- > 0;) {
        if (!filter || subject_matches(filter, s->messages[i]->subject)) {
            remove_at(s, i);
            ++*purged_count;
        }
    }
    return OK;
}

FALLIBLE broker_stream_delete_message(bool *found, struct broker *b, const char *name,
                                      uint64_t sequence) {
    struct stream *s;
    size_t i;
    TRY(need_stream(&s, b, name));
    REQUIRE(!s->config.deny_delete, E_NET, "stream %s does not allow messages to be deleted", name);
    *found = index_of(&i, s, sequence);
    if (*found) {
        remove_at(s, i);
    }
    return OK;
}

static struct broker_message *last_on(const struct stream *s, const char *filter) {
    for (size_t i = s->messages_count; i-- > 0;) {
        if (subject_matches(filter, s->messages[i]->subject)) {
            return s->messages[i];
        }
    }
    return NULL;
}

FALLIBLE broker_stream_get(struct broker_message **out, struct broker *b, const char *name,
                           uint64_t sequence, const char *filter, uint64_t now_ns) {
    struct stream *s;
    struct broker_message *m = NULL;
    size_t i;
    TRY(need_stream(&s, b, name));
    sweep(s, now_ns);
    if (sequence == 0) {
        m = last_on(s, filter);
    } else if (!filter) {
        m = index_of(&i, s, sequence) ? s->messages[i] : NULL;
    } else {
        for (i = lower_bound(s, sequence); i < s->messages_count && !m; i++) {
            m = subject_matches(filter, s->messages[i]->subject) ? s->messages[i] : NULL;
        }
    }
    *out = m ? broker_message_ref(m) : NULL;
    return OK;
}

/* --- Storing --- */

static size_t count_on(const struct stream *s, const char *subject, size_t *first) {
    size_t count = 0;
    for (size_t i = s->messages_count; i-- > 0;) {
        if (strcmp(s->messages[i]->subject, subject) == 0) {
            *first = i;
            count++;
        }
    }
    return count;
}

static bool is_full(const struct stream *s, const struct broker_message *m) {
    const struct stream_config *c = &s->config;
    return (c->messages_max > 0 && s->messages_count >= (uint64_t)c->messages_max) ||
           (c->bytes_max > 0 && s->bytes + size_of(m) > (uint64_t)c->bytes_max);
}

/* The limits before storing: refuse, or make room. A message that replaces others of its subject needs none of theirs. */
static FALLIBLE make_room(struct stream *s, const struct broker_message *m) {
    const struct stream_config *c = &s->config;
    size_t first = 0, count = count_on(s, m->subject, &first);
    bool subject_full =
        c->messages_per_subject_max > 0 && count >= (uint64_t)c->messages_per_subject_max;
    REQUIRE(!subject_full || !c->discard_new_per_subject, E_QUEUE,
            "publish to %s: maximum messages per subject exceeded", m->subject);
    if (subject_full) {
        remove_at(s, first);
    }
    REQUIRE(!is_full(s, m) || !(c->discard_new || c->discard_new_per_subject), E_QUEUE,
            "publish to %s: maximum messages or bytes exceeded", m->subject);
    while (s->messages_count > 0 && is_full(s, m)) {
        remove_at(s, 0);
    }
    return OK;
}

static bool find_id(uint64_t *sequence, const struct stream *s, const char *id) {
    for (size_t i = 0; i < s->ids_count; i++) {
        if (strcmp(s->ids[i].id, id) == 0) {
            *sequence = s->ids[i].sequence;
            return true;
        }
    }
    return false;
}

static FALLIBLE append(struct stream *s, struct broker_message *m, const char *id,
                       uint64_t now_ns) {
    TRY(grow(&s->messages, &s->messages_cap, s->messages_count, sizeof *s->messages));
    if (id) {
        TRY(grow(&s->ids, &s->ids_cap, s->ids_count, sizeof *s->ids));
        char *copy = mem_strdup(id);
        REQUIRE(copy, E_LIMIT, "no memory for a message id");
        s->ids[s->ids_count++] = (struct seen_id){copy, s->last_sequence + 1, now_ns};
    }
    m->sequence = ++s->last_sequence;
    m->stored_ns = now_ns;
    m->time_unix_ns = clock_unix_ns();
    s->messages[s->messages_count++] = broker_message_ref(m);
    s->bytes += size_of(m);
    return OK;
}

static FALLIBLE store_in(struct publish_ack *out, struct stream *s, struct broker_message *m,
                         const struct publish_options *o, uint64_t now_ns) {
    uint64_t earlier;
    sweep(s, now_ns);
    if (o->message_id && find_id(&earlier, s, o->message_id)) {
        *out = (struct publish_ack){PUBLISH_DUPLICATE, earlier};
        return OK;
    }
    const struct broker_message *last = last_on(s, m->subject);
    if (o->expect_last && (last ? last->sequence : 0) != o->expect_last_sequence) {
        *out = (struct publish_ack){.outcome = PUBLISH_CONFLICT};
        return OK;
    }
    REQUIRE(s->config.message_bytes_max <= 0 || m->data.len <= (size_t)s->config.message_bytes_max,
            E_LIMIT, "publish to %s: message size exceeds maximum allowed", m->subject);
    REQUIRE(!o->rollup || s->config.allow_rollup, E_NET, "publish to %s: rollup not permitted",
            m->subject);
    if (o->rollup) {
        for (size_t i = s->messages_count; i-- > 0;) {
            if (strcmp(s->messages[i]->subject, m->subject) == 0) {
                remove_at(s, i);
            }
        }
    }
    TRY(make_room(s, m));
    TRY(append(s, m, o->message_id, now_ns));
    *out = (struct publish_ack){PUBLISH_STORED, m->sequence};
    return OK;
}

FALLIBLE broker_store(struct publish_ack *out, bool *taken, struct broker *b,
                      struct broker_message *m, const struct publish_options *options,
                      uint64_t now_ns) {
    for (struct stream *s = b->streams; s; s = s->next) {
        if (takes_subject(s, m->subject)) {
            *taken = true;
            return store_in(out, s, m, options, now_ns);
        }
    }
    *taken = false;
    return OK;
}

/* --- Consumers --- */

static struct consumer *find_consumer(const struct stream *s, const char *name) {
    struct consumer *c = s ? s->consumers : NULL;
    while (c && strcmp(c->name, name) != 0) {
        c = c->next;
    }
    return c;
}

static bool filters_overlap(const char *a, const char *b) {
    return !a || !b || subject_matches(a, b) || subject_matches(b, a);
}

FALLIBLE broker_consumer_ensure(struct broker *b, const struct consumer_config *config) {
    struct stream *s;
    TRY(need_stream(&s, b, config->stream));
    struct consumer *c = find_consumer(s, config->name);
    for (struct consumer *o = s->consumers; o && s->config.retention == STREAM_WORK_QUEUE;
         o = o->next) {
        REQUIRE(o == c || !filters_overlap(o->filter, config->filter), E_NET,
                "consumer %s: server says 10100: filtered consumer not unique on workqueue stream",
                config->name);
    }
    if (!c) {
        TRY(mem_new(&c, 1, sizeof *c));
        c->name = mem_strdup(config->name);
        c->filter = config->filter ? mem_strdup(config->filter) : NULL;
        if (!c->name || (config->filter && !c->filter)) {
            free_consumer(c);
            FAIL(E_LIMIT, "no memory for consumer %s", config->name);
        }
        c->next_sequence = 1;
        c->next = s->consumers;
        s->consumers = c;
    }
    c->config = *config;
    c->config.stream = c->config.name = c->config.filter = NULL; /* lent; ours are copies */
    return OK;
}

void broker_consumer_delete(struct broker *b, const char *stream, const char *name) {
    struct stream *s = find_stream(b, stream);
    for (struct consumer **at = s ? &s->consumers : NULL; at && *at; at = &(*at)->next) {
        if (strcmp((*at)->name, name) == 0) {
            struct consumer *c = *at;
            *at = c->next;
            free_consumer(c);
            return;
        }
    }
}

static bool wants(const struct consumer *c, const struct broker_message *m) {
    return !c->filter || subject_matches(c->filter, m->subject);
}

static uint64_t count_pending(const struct stream *s, const struct consumer *c) {
    uint64_t count = 0;
    for (size_t i = lower_bound(s, c->next_sequence); i < s->messages_count; i++) {
        count += wants(c, s->messages[i]);
    }
    return count;
}

static void drop_held(struct consumer *c, size_t i) {
    memmove(&c->held[i], &c->held[i + 1], (c->held_count - i - 1) * sizeof *c->held);
    c->held_count--;
}

/* Held messages that left the stream are held no longer. */
static uint64_t count_held(const struct stream *s, struct consumer *c) {
    uint64_t count = 0;
    for (size_t i = c->held_count; i-- > 0;) {
        size_t at;
        if (!index_of(&at, s, c->held[i].sequence)) {
            drop_held(c, i);
        } else {
            count += !c->held[i].exhausted;
        }
    }
    return count;
}

FALLIBLE broker_consumer_info(struct consumer_info *out, bool *found, struct broker *b,
                              const char *stream, const char *name, uint64_t now_ns) {
    struct stream *s;
    TRY(need_stream(&s, b, stream));
    sweep(s, now_ns);
    struct consumer *c = find_consumer(s, name);
    *found = c != NULL;
    if (c) {
        *out = (struct consumer_info){
            .pending_count = count_pending(s, c),
            .ack_pending_count = count_held(s, c),
            .redelivered_count = c->redelivered_count,
            .delivered_sequence = c->delivered_sequence,
            .ack_floor_sequence = c->held_count ? c->held[0].sequence - 1 : c->delivered_sequence,
        };
    }
    return OK;
}

static void hand_out(struct broker_delivery *out, const struct stream *s, struct consumer *c,
                     struct held *h, struct broker_message *m, uint64_t now_ns) {
    h->deliveries++;
    h->due_ns = now_ns + (c->config.ack_wait_ns ? c->config.ack_wait_ns : ACK_WAIT_NS);
    c->delivered_count++;
    c->redelivered_count += h->deliveries > 1;
    out->message = broker_message_ref(m);
    out->deliveries = h->deliveries;
    out->pending = count_pending(s, c);
    snprintf(out->ack, sizeof out->ack,
             "$JS.ACK.%.128s.%.128s.%" PRIu64 ".%" PRIu64 ".%" PRIu64 ".%" PRIu64 ".%" PRIu64,
             s->name, c->name, h->deliveries, m->sequence, c->delivered_count, m->time_unix_ns,
             out->pending);
}

/* A held message whose time has come. */
static bool redeliver(struct broker_delivery *out, const struct stream *s, struct consumer *c,
                      uint64_t now_ns) {
    for (size_t i = 0; i < c->held_count; i++) {
        struct held *h = &c->held[i];
        size_t at;
        if (h->exhausted || h->due_ns > now_ns || !index_of(&at, s, h->sequence)) {
            continue;
        }
        if (c->config.deliveries_max > 0 && h->deliveries >= (uint64_t)c->config.deliveries_max) {
            h->exhausted = true;
            continue;
        }
        hand_out(out, s, c, h, s->messages[at], now_ns);
        return true;
    }
    return false;
}

static FALLIBLE deliver_next(struct broker_delivery *out, const struct stream *s,
                             struct consumer *c, uint64_t now_ns) {
    size_t i = lower_bound(s, c->next_sequence);
    while (i < s->messages_count && !wants(c, s->messages[i])) {
        i++;
    }
    if (i == s->messages_count) {
        return OK;
    }
    TRY(grow(&c->held, &c->held_cap, c->held_count, sizeof *c->held));
    struct held *h = &c->held[c->held_count++];
    *h = (struct held){.sequence = s->messages[i]->sequence};
    c->next_sequence = h->sequence + 1;
    c->delivered_sequence = h->sequence;
    hand_out(out, s, c, h, s->messages[i], now_ns);
    return OK;
}

FALLIBLE broker_pull(struct broker_delivery *out, struct broker *b, const char *stream,
                     const char *consumer, uint64_t now_ns) {
    struct stream *s = find_stream(b, stream);
    struct consumer *c = find_consumer(s, consumer);
    REQUIRE(c, E_NET, "pull from %s: consumer %s is not there", stream, consumer);
    sweep(s, now_ns);
    out->message = NULL;
    uint64_t held = count_held(s, c);
    if (redeliver(out, s, c, now_ns)) {
        return OK;
    }
    uint64_t most =
        c->config.ack_pending_max > 0 ? (uint64_t)c->config.ack_pending_max : ACK_PENDING_MAX;
    return held < most ? deliver_next(out, s, c, now_ns) : OK;
}

FALLIBLE broker_ack(bool *known, struct broker *b, const char *ack_subject, enum ack_kind kind,
                    uint64_t delay_ns, uint64_t now_ns) {
    struct ack_parts parts;
    TRY(ack_subject_parse(&parts, ack_subject));
    struct stream *s = find_stream(b, parts.stream);
    struct consumer *c = find_consumer(s, parts.consumer);
    *known = c != NULL;
    for (size_t i = 0; c && i < c->held_count; i++) {
        struct held *h = &c->held[i];
        size_t at;
        if (h->sequence != parts.stream_sequence) {
            continue;
        }
        if (kind == ACK_NAK) {
            h->due_ns = now_ns + delay_ns;
        } else if (kind == ACK_PROGRESS) {
            h->due_ns = now_ns + (c->config.ack_wait_ns ? c->config.ack_wait_ns : ACK_WAIT_NS);
        } else {
            if (s->config.retention == STREAM_WORK_QUEUE && index_of(&at, s, h->sequence)) {
                remove_at(s, at);
            }
            drop_held(c, i);
        }
        return OK;
    }
    return OK;
}

void broker_restart(struct broker *b) {
    for (struct stream *s = b->streams; s; s = s->next) {
        while (s->config.in_memory && s->messages_count > 0) {
            remove_at(s, s->messages_count - 1);
        }
        size_t kept = 0;
        for (size_t i = 0; i < s->ids_count; i++) {
            size_t at;
            if (index_of(&at, s, s->ids[i].sequence)) {
                s->ids[kept++] = s->ids[i];
            } else {
                mem_free(s->ids[i].id);
            }
        }
        s->ids_count = kept;
    }
}
