/* Key-value buckets on streams, in the layout that every NATS client uses.
 *
 *   stream KV_<bucket>, one message per subject $KV.<bucket>.<key>; header KV-Operation: DEL (or PURGE) marks a deletion;
 *   a key's revision is its message's sequence
 *
 * Compare-and-set is a publish with the expected last sequence of the subject, so the reason of a refusal is a
 * code and not a text. Walking uses no consumer: "the first message at or after sequence n under this filter" is one request, and
 * with one message per subject following it from 1 on meets every live key once. A list has many such requests under way. A watch
 * follows the stream in batches where the transport can (follow.c), since one request for each change of each record is what a busy
 * coordinator would mostly do; else it asks likewise, and a plain subscription to the same subjects says when to look again.
 */
#include "node/transport/ops.h"

#include "node/base/clock.h"
#include "node/base/lock.h"
#include "node/base/mem.h"
#include "node/transport/batch.h"
#include "proto/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define POLL_NS  SECOND_NS        /* looks without having been told to */
#define RETRY_NS (SECOND_NS / 10) /* after an error of the connection */

FALLIBLE kv_stream(struct subject *out, const char *bucket) {
    TRY(check_name(bucket, "bucket"));
    snprintf(out->text, sizeof out->text, "KV_%s", bucket);
    return OK;
}

FALLIBLE kv_subject(struct subject *out, const char *bucket, const char *key, bool filter) {
    TRY(check_name(bucket, "bucket"));
    REQUIRE(key && key[0], E_FORMAT, "key of bucket %s is empty", bucket);
    for (const char *c = key; *c; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                     (*c >= '0' && *c <= '9') || strchr("_=/-.", *c);
        REQUIRE(plain || (filter && (*c == '*' || *c == '>')), E_FORMAT,
                "key of bucket %s has byte 0x%02x", bucket, (unsigned char)*c);
    }
    int len = snprintf(out->text, sizeof out->text, "$KV.%s.%s", bucket, key);
    REQUIRE(len > 0 && (size_t)len < sizeof out->text, E_FORMAT, "key of bucket %s is too long",
            bucket);
    return OK;
}

FALLIBLE kv_ensure(struct transport *t, const struct kv_config *c) {
    struct subject stream, subjects;
    TRY(kv_stream(&stream, c->bucket));
    TRY(kv_subject(&subjects, c->bucket, ">", true));
    return stream_ensure(t, &(struct stream_config){
                                .name = stream.text,
                                .subjects = {subjects.text},
                                .discard_new = true,
                                .allow_rollup = true,
                                .deny_delete = true,
                                .messages_per_subject_max = 1,
                                .message_bytes_max = c->value_bytes_max,
                                .age_max_ns = c->ttl_ns,
                                .replicas = c->replicas,
                            });
}

/* --- Entries --- */

static void entry_of(struct kv_entry *out, struct message *m, const char *bucket) {
    const char *operation = message_header(m, "KV-Operation");
    size_t prefix = strlen("$KV.") + strlen(bucket) + 1;
    bool gone = operation && (!strcmp(operation, "DEL") || !strcmp(operation, "PURGE"));
    *out = (struct kv_entry){
        .key = m->subject + (strlen(m->subject) > prefix ? prefix : strlen(m->subject)),
        .value = m->data,
        .revision = m->sequence,
        .time_unix_ns = m->time_unix_ns,
        .operation = gone ? KV_DELETE : KV_PUT,
        .message = *m,
    };
}

void kv_entry_done(struct kv_entry *e) {
    message_done(&e->message);
    *e = (struct kv_entry){0};
}

/* The key's last entry, deletions included. */
static FALLIBLE get_any(struct kv_entry *out, bool *found, struct transport *t, const char *bucket,
                        const char *key) {
    struct subject stream, subject;
    struct message m = {0};
    TRY(kv_stream(&stream, bucket));
    TRY(kv_subject(&subject, bucket, key, false));
    TRY(stream_get_last(&m, found, t, stream.text, subject.text));
    if (*found) {
        entry_of(out, &m, bucket);
    }
    return OK;
}

FALLIBLE kv_get(struct kv_entry *out, bool *found, struct transport *t, const char *bucket,
                const char *key) {
    struct kv_entry e;
    TRY(get_any(&e, found, t, bucket, key));
    if (*found && e.operation == KV_DELETE) {
        kv_entry_done(&e);
        *found = false;
    }
    if (*found) {
        *out = e;
    }
    return OK;
}

/* --- Writing --- */

struct write {
    bool expect;
    uint64_t last;
    bool delete;
};

static FALLIBLE write_key(uint64_t *revision, bool *won, struct transport *t, const char *bucket,
                          const char *key, struct bytes value, struct write w) {
    struct subject subject;
    struct publish_ack ack;
    TRY(kv_subject(&subject, bucket, key, false));
    struct publish_options options = {.expect_last = w.expect, .expect_last_sequence = w.last};
    TRY(publish_with_header(&ack, t, subject.text, value, &options,
                            w.delete ? "KV-Operation" : NULL, "DEL"));
    *won = ack.outcome != PUBLISH_CONFLICT;
    if (*won) {
        *revision = ack.sequence;
    }
    return OK;
}

FALLIBLE kv_put(uint64_t *revision, struct transport *t, const char *bucket, const char *key,
                struct bytes value) {
    bool won;
    return write_key(revision, &won, t, bucket, key, value, (struct write){0});
}

FALLIBLE kv_update(uint64_t *revision, bool *won, struct transport *t, const char *bucket,
                   const char *key, struct bytes value, uint64_t last) {
    return write_key(revision, won, t, bucket, key, value,
                     (struct write){.expect = true, .last = last});
}

FALLIBLE kv_create(uint64_t *revision, bool *won, struct transport *t, const char *bucket,
                   const char *key, struct bytes value) {
    TRY(kv_update(revision, won, t, bucket, key, value, 0));
    if (*won) {
        return OK;
    }
    struct kv_entry e;
    bool found;
    TRY(get_any(&e, &found, t, bucket, key));
    uint64_t last = found ? e.revision : 0;
    bool deleted = !found || e.operation == KV_DELETE;
    if (found) {
        kv_entry_done(&e);
    }
    /* Over a deletion's mark, or over nothing where the key expired in between. */
    return deleted ? kv_update(revision, won, t, bucket, key, value, last) : OK;
}

FALLIBLE kv_delete(bool *won, struct transport *t, const char *bucket, const char *key,
                   uint64_t last) {
    uint64_t revision;
    bool ignored;
    return write_key(&revision, won ? won : &ignored, t, bucket, key, bytes_of(NULL, 0),
                     (struct write){.expect = last > 0, .last = last, .delete = true});
}

/* --- Walking: the sequences ahead are cut into spans, all of which are read side by side, so that many keys take one round trip.
 *
 * A key that changes moves behind all others, so no place may be passed that can still be taken: only what lies before a message that is there
 * already is settled. A span that found nothing behind it is passed as far as its last message, and the walk is over when there is
 * nothing behind what was handed out. --- */

enum { WALK_SPANS = 32, WALK_KEPT = 16 /* of one span */, WALK_WIDTH_MAX = 1 << 16 };

struct walk_span {
    uint64_t next, end; /* what lies before next was read */
    struct message kept[WALK_KEPT];
    size_t count;
    bool last; /* when it was asked, nothing was at next or behind it */
};

struct walk {
    struct batch *batch; /* owned */
    struct subject stream, filter;
    struct walk_span spans[WALK_SPANS]; /* their messages owned */
    uint64_t next;                      /* all before it was handed out */
    uint64_t width;  /* sequences of a span: so many that some of them are there */
    uint64_t behind; /* the first message found behind the last span; 0: none */
    unsigned rounds;
    bool over;
};

static void walk_done(struct walk *w) {
    for (size_t i = 0; i < WALK_SPANS; i++) {
        for (size_t k = 0; k < w->spans[i].count; k++) {
            message_done(&w->spans[i].kept[k]);
        }
    }
    batch_close(&w->batch);
}

static bool span_is_read(const struct walk_span *s) {
    return s->next >= s->end || s->count == WALK_KEPT || s->last;
}

static FALLIBLE span_take(struct walk *w, struct walk_span *s, size_t idx) {
    const struct batch_answer *a = batch_answer(w->batch, idx);
    TRY(a->fault.code == OK ? OK : fault_raise(&a->fault));
    if (!a->found) {
        s->last = true;
    } else if (a->message.sequence >= s->end) {
        s->next = s->end;
        w->behind = s == &w->spans[WALK_SPANS - 1] ? a->message.sequence : w->behind;
    } else {
        s->next = a->message.sequence + 1;
        batch_take_message(&s->kept[s->count++], w->batch, idx);
    }
    return OK;
}

/* A message more of each span that is not read. *asked: of how many. */
static FALLIBLE walk_round(size_t *asked, struct walk *w) {
    struct walk_span *order[WALK_SPANS];
    *asked = 0;
    batch_clear(w->batch);
    for (size_t i = 0; i < WALK_SPANS; i++) {
        if (!span_is_read(&w->spans[i])) {
            order[(*asked)++] = &w->spans[i];
            TRY(batch_get_next(w->batch, w->stream.text, w->spans[i].next, w->filter.text));
        }
    }
    batch_wait(w->batch, 0);
    for (size_t i = 0; i < *asked; i++) {
        TRY(span_take(w, order[i], i));
    }
    return OK;
}

static FALLIBLE walk_read(struct walk *w) {
    size_t asked;
    w->behind = 0;
    for (size_t i = 0; i < WALK_SPANS; i++) {
        w->spans[i].next = w->next + i * w->width;
        w->spans[i].end = w->spans[i].next + w->width;
        w->spans[i].last = false;
    }
    w->rounds = 0;
    do {
        TRY(walk_round(&asked, w));
        w->rounds++;
    } while (asked > 0);
    return OK;
}

/* What was read, to the first span that was not read to its end; what others behind that one hold is read again. */
static FALLIBLE walk_hand_out(struct walk *w, const char *bucket, kv_visit *visit, void *ctx) {
    size_t found = 0;
    bool cut = false;
    enum err err = OK;
    w->over = w->spans[0].last && w->spans[0].count == 0;
    for (size_t i = 0; i < WALK_SPANS; i++) {
        struct walk_span *s = &w->spans[i];
        for (size_t k = 0; k < s->count; k++) {
            struct kv_entry e;
            entry_of(&e, &s->kept[k], bucket);
            if (!cut && err == OK && e.operation == KV_PUT) {
                err = visit(ctx, &e);
            }
            kv_entry_done(&e);
        }
        found += s->count;
        s->count = 0;
        w->next = cut ? w->next : s->next;
        cut |= s->next < s->end;
    }
    w->next = !cut && w->behind > w->next ? w->behind : w->next;
    if (w->rounds > WALK_KEPT / 2 && w->width > 1) {
        w->width /= 2;
    } else if (found < 2 * WALK_SPANS && w->width < WALK_WIDTH_MAX) {
        w->width *= 2;
    }
    return err;
}

FALLIBLE kv_list(struct transport *t, const char *bucket, const char *filter, kv_visit *visit,
                 void *ctx) {
    AUTO(walk_done) struct walk w = {.next = 1, .width = 4};
    TRY(kv_stream(&w.stream, bucket));
    TRY(kv_subject(&w.filter, bucket, filter, true));
    TRY(batch_open(&w.batch, t));
    while (!w.over) {
        TRY(walk_read(&w));
        TRY(walk_hand_out(&w, bucket, visit, ctx));
    }
    return OK;
}

/* --- Watching --- */

struct kv_watch {
    struct transport *t;        /* lent */
    struct follower *follower;  /* owned; NULL where the transport has none */
    struct subscription *hints; /* owned; where it has none */
    struct subject stream, filter;
    char bucket[SUBJECT_BYTES_MAX];
    uint64_t next;      /* sequence from which on nothing has been handed out */
    uint64_t first_end; /* last sequence at opening */
    uint64_t losses;
    struct lock lock;
    struct condition cond;
    bool hinted; /* [lock] */
};

static void on_hint(void *ctx, struct message *m) {
    struct kv_watch *w = ctx;
    (void)m;
    LOCK_SCOPE(&w->lock);
    w->hinted = true;
    condition_wake_one(&w->cond);
}

FALLIBLE kv_watch_open(struct kv_watch **out, struct transport *t, const char *bucket,
                       const char *filter) {
    AUTO(kv_watch_close) struct kv_watch *w = NULL;
    struct stream_info info;
    TRY(mem_new(&w, 1, sizeof *w));
    condition_init(&w->cond);
    lock_init(&w->lock, LOCK_TRANSPORT);
    w->t = t;
    w->next = 1;
    w->losses = t->ops->losses(t);
    TRY(kv_stream(&w->stream, bucket));
    TRY(kv_subject(&w->filter, bucket, filter, true));
    snprintf(w->bucket, sizeof w->bucket, "%s", bucket);
    if (!t->ops->follower_open) {
        TRY(transport_subscribe(&w->hints, t, w->filter.text,
                                &(struct subscribe_options){.handler = on_hint, .handler_ctx = w}));
    }
    TRY(stream_info(&info, t, w->stream.text));
    w->first_end = info.last_sequence;
    *out = TAKE(w);
    return OK;
}

void kv_watch_from(struct kv_watch *w, uint64_t revision) {
    w->next = revision;
}

void kv_watch_close(struct kv_watch **watch) {
    struct kv_watch *w = *watch;
    if (w) {
        if (w->follower) {
            w->t->ops->follower_close(w->follower);
        }
        subscription_close(&w->hints);
        condition_done(&w->cond);
        lock_done(&w->lock);
        mem_free(w);
        *watch = NULL;
    }
}

static void wait_hint(struct kv_watch *w, uint64_t wait_ns) {
    struct timespec until = clock_wait_until(wait_ns);
    LOCK_SCOPE(&w->lock);
    while (!w->hinted && condition_wait_until(&w->cond, &w->lock, &until)) {
    }
    w->hinted = false;
}

/* A server that came back without its store counts from 1 again. */
static FALLIBLE follow_restart(struct kv_watch *w) {
    uint64_t losses = w->t->ops->losses(w->t);
    struct stream_info info;
    if (losses == w->losses) {
        return OK;
    }
    TRY(stream_info(&info, w->t, w->stream.text));
    w->losses = losses;
    if (info.last_sequence + 1 < w->next) {
        w->next = 1;
        if (w->follower) {
            w->t->ops->follower_close(w->follower);
            w->follower = NULL;
        }
    }
    return OK;
}

/* A key that was deleted before the watch began is not told. */
static bool is_news(const struct kv_watch *w, const struct kv_entry *e) {
    return e->operation == KV_PUT || e->revision > w->first_end;
}

static FALLIBLE next_followed(struct kv_entry *out, bool *caught_up, struct kv_watch *w,
                              uint64_t wait_ns) {
    uint64_t deadline = clock_ns() + wait_ns;
    for (;;) {
        struct message m = {0};
        bool end = false;
        TRY(follow_restart(w));
        if (!w->follower) {
            TRY(w->t->ops->follower_open(&w->follower, w->t, w->stream.text, w->filter.text,
                                         w->next));
        }
        uint64_t now = clock_ns();
        enum err err =
            w->t->ops->follower_next(&m, &end, w->follower, deadline > now ? deadline - now : 0);
        if (caught_up) {
            *caught_up |= end;
        }
        TRY(err);
        struct kv_entry e;
        entry_of(&e, &m, w->bucket);
        w->next = e.revision + 1;
        if (is_news(w, &e)) {
            *out = e;
            return OK;
        }
        kv_entry_done(&e);
    }
}

static FALLIBLE look(struct kv_entry *out, bool *found, struct kv_watch *w) {
    struct message m = {0};
    TRY(follow_restart(w));
    TRY(stream_get_next(&m, found, w->t, w->stream.text, w->next, w->filter.text));
    if (*found) {
        entry_of(out, &m, w->bucket);
        w->next = out->revision + 1;
    }
    return OK;
}

FALLIBLE kv_watch_next(struct kv_entry *out, bool *caught_up, struct kv_watch *w,
                       uint64_t wait_ns) {
    if (w->t->ops->follower_open) {
        if (caught_up) {
            *caught_up = false;
        }
        return next_followed(out, caught_up, w, wait_ns);
    }
    uint64_t deadline = clock_ns() + wait_ns;
    for (;;) {
        struct kv_entry e;
        bool found = false;
        enum err err = look(&e, &found, w);
        if (err == OK && found) {
            if (is_news(w, &e)) {
                *out = e;
                if (caught_up) {
                    *caught_up = w->next > w->first_end;
                }
                return OK;
            }
            kv_entry_done(&e); /* was deleted before we opened */
            continue;
        }
        uint64_t now = clock_ns();
        if (caught_up && err == OK) {
            *caught_up = true;
        }
        if (now >= deadline) {
            TRY(err);
            FAIL(E_TIMEOUT, "bucket %s: nothing new in time", w->bucket);
        }
        uint64_t pause = err == OK ? POLL_NS : RETRY_NS;
        wait_hint(w, deadline - now < pause ? deadline - now : pause);
    }
}
