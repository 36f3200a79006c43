/* Getting an object: no consumer, but "the first message at or after sequence s on the chunk subject", several such requests in flight for
 * s, s+1, s+2, … Chunks of one upload mostly follow each other directly, then every request finds its chunk. Where
 * another upload lies between, two requests find the same chunk: the second is dropped and the window falls to one, so that
 * not much is sent twice; it grows again by one for each direct hit. One request at a time is slow (0.15 to 0.18 GB/s, where a full
 * window reaches 0.6 on the same two cores), and uploads at the same time are what a busy fleet has; so submitters tell where their chunks
 * lie, and the window is full from the start. Should that not be true, the search begins at the first chunk that is missing.
 *
 * One connection is read by one thread of the client, which copies each message once; the server writes it from one, too. So the
 * requests go by turns over several connections. Whoever takes the chunks waits for the oldest request, on its connection; what comes on
 * the others meanwhile is kept there, no more than was asked for.
 */
#include "node/transport/ops.h"

#include "node/base/clock.h"
#include "node/base/mem.h"

#include <inttypes.h>
#include <string.h>

enum {
    DOWNLOAD_WINDOW = 8,
    DOWNLOAD_WINDOW_SHARED = 16,
    DOWNLOAD_WINDOW_MAX = 32,
    DOWNLOAD_BYTES_MAX = 32 * 1024 * 1024 /* asked for at once */
};
#define DOWNLOAD_WAIT_NS   (30 * SECOND_NS)
#define DOWNLOAD_ANSWER_NS (5 * SECOND_NS) /* then the requests are sent again */
#define DOWNLOAD_SLICE_NS  (SECOND_NS / 4)
#define DOWNLOAD_RETRY_NS  (SECOND_NS / 10)

struct link {
    struct transport *t; /* lent */
    struct pipe *pipe;   /* owned; NULL: not needed yet */
    uint64_t losses;
};

struct slot {
    uint64_t sequence; /* asked for: the first chunk at or after it */
    bool answered, found;
    struct message message; /* owned until handed out */
};

struct object_download {
    struct link links[OBJECT_LINKS_MAX];
    unsigned links_count, first_link; /* request i goes over link first_link + i */
    struct sha256_run *run;           /* owned; NULL: no digest to check */
    struct object_subject stream, subject;
    struct sha256 sha256;
    uint64_t bytes, bytes_done;
    uint64_t wait_ns;
    struct slot slots[DOWNLOAD_WINDOW_MAX]; /* slot i at i mod the size */
    uint64_t head, tail;                    /* oldest unanswered or unread, next to ask */
    uint64_t next_sequence;                 /* for the next request */
    uint64_t covered;                       /* all chunks before it have been handed out */
    uint64_t due;                           /* where the next one lies, by what was told */
    uint64_t done_count;                    /* chunks handed out */
    struct object_steps steps;              /* lent */
    bool placed;        /* where chunks lie was told, and has been true so far */
    uint64_t round;     /* of requests; answers of earlier rounds are dropped */
    size_t chunk_bytes; /* of the last chunk; at first as it was told */
    uint32_t window, window_max;
};

static void set_window(struct object_download *d, const struct object_download_options *o) {
    uint32_t wanted = o->window            ? o->window
                      : d->links_count > 1 ? DOWNLOAD_WINDOW_SHARED
                                           : DOWNLOAD_WINDOW;
    d->window_max = wanted < DOWNLOAD_WINDOW_MAX ? wanted : DOWNLOAD_WINDOW_MAX;
    d->placed = o->first_sequence > 0;
    d->window = d->placed ? d->window_max : 1; /* the first answer tells where the chunks are */
    d->next_sequence = d->due = d->placed ? o->first_sequence : 1;
    d->covered = 1;
    d->chunk_bytes = o->chunks_count ? (size_t)(o->bytes / o->chunks_count) : 0;
    d->steps = o->steps;
}

FALLIBLE object_download_open(struct object_download **out, struct transport *t,
                              const struct object_download_options *o) {
    AUTO(object_download_close) struct object_download *d = NULL;
    TRY(mem_new(&d, 1, sizeof *d));
    TRY(object_stream(&d->stream, o->bucket));
    TRY(object_chunk_subject(&d->subject, o->bucket, o->nuid));
    d->links[d->links_count++].t = t;
    for (unsigned i = 0; i < o->also_count && d->links_count < OBJECT_LINKS_MAX; i++) {
        d->links[d->links_count++].t = o->also[i];
    }
    for (unsigned i = 0; i < d->links_count; i++) {
        d->links[i].losses = d->links[i].t->ops->losses(d->links[i].t);
    }
    for (const char *c = o->nuid; *c; c++) { /* small objects do not all begin at the same one */
        d->first_link = (d->first_link + (unsigned char)*c) % d->links_count;
    }
    d->bytes = o->bytes;
    d->wait_ns = o->wait_ns ? o->wait_ns : DOWNLOAD_WAIT_NS;
    set_window(d, o);
    if (o->sha256) {
        d->sha256 = *o->sha256;
        TRY(sha256_new(&d->run));
    }
    *out = TAKE(d);
    return OK;
}

static struct slot *slot_of(struct object_download *d, uint64_t i) {
    return &d->slots[i % DOWNLOAD_WINDOW_MAX];
}

static struct link *link_of(struct object_download *d, uint64_t i) {
    return &d->links[(d->first_link + i) % d->links_count];
}

/* Forgets everything in flight; the requests start again at the first chunk that is missing. */
static void start_again(struct object_download *d) {
    for (uint64_t i = d->head; i < d->tail; i++) {
        message_done(&slot_of(d, i)->message);
    }
    d->head = d->tail = 0;
    d->round++;
    d->next_sequence = d->placed ? d->due : d->covered;
    for (unsigned i = 0; i < d->links_count; i++) {
        d->links[i].losses = d->links[i].t->ops->losses(d->links[i].t);
    }
}

/* From chunk idx to the one behind it. */
static uint64_t step_from(const struct object_download *d, uint64_t idx) {
    return d->placed && idx < d->steps.count ? d->steps.steps[idx] : 1;
}

/* More requests while the window and the bytes left allow. */
static FALLIBLE ask_more(struct object_download *d) {
    uint64_t left = d->bytes - d->bytes_done;
    while (d->tail - d->head < d->window) {
        uint64_t asked = (d->tail - d->head) * d->chunk_bytes;
        if (d->tail > d->head && (asked >= left || asked >= DOWNLOAD_BYTES_MAX)) {
            return OK;
        }
        struct slot *s = slot_of(d, d->tail);
        struct link *link = link_of(d, d->tail);
        *s = (struct slot){.sequence = d->next_sequence};
        if (!link->pipe) {
            TRY(link->t->ops->pipe_open(&link->pipe, link->t));
        }
        TRY(link->t->ops->pipe_get(link->pipe, d->round << 32 | (d->tail & UINT32_MAX),
                                   d->stream.text, s->sequence, d->subject.text));
        d->next_sequence += step_from(d, d->done_count + (d->tail - d->head));
        d->tail++;
    }
    return OK;
}

static void take_answer(struct object_download *d, struct pipe_answer *a) {
    uint64_t i = d->head + (uint32_t)((uint32_t)a->token - (uint32_t)d->head);
    if (a->token >> 32 != d->round || i >= d->tail || slot_of(d, i)->answered) {
        message_done(&a->message);
        return;
    }
    struct slot *s = slot_of(d, i);
    s->answered = true;
    s->found = a->found;
    s->message = a->message;
}

/* Until the oldest request is answered. Rides out lost connections. */
static FALLIBLE await_head(struct object_download *d, uint64_t deadline) {
    uint64_t asked_at = clock_ns();
    for (;;) {
        enum err err = ask_more(d);
        while (err == OK && !slot_of(d, d->head)->answered) {
            struct link *link = link_of(d, d->head);
            struct pipe_answer a;
            err = link->t->ops->pipe_next(&a, link->pipe, DOWNLOAD_SLICE_NS);
            if (err == OK && a.fault.code != OK && a.token >> 32 == d->round) {
                err = fault_raise(&a.fault);
            } else if (err == OK) {
                take_answer(d, &a);
                asked_at = clock_ns();
            }
            if (err == E_TIMEOUT && clock_ns() - asked_at < DOWNLOAD_ANSWER_NS &&
                link->t->ops->losses(link->t) == link->losses) {
                err = OK;
            }
        }
        if (err == OK) {
            return OK;
        }
        if (clock_ns() >= deadline || (err != E_NET && err != E_TIMEOUT)) {
            return err_prefix(err, "download from %s", d->stream.text);
        }
        start_again(d);
        clock_sleep_ns(DOWNLOAD_RETRY_NS);
        asked_at = clock_ns();
    }
}

/* How the window follows what the oldest request found. */
static void adapt(struct object_download *d, uint64_t asked, uint64_t got) {
    if (got != asked && asked > 1) { /* something else lies between */
        d->window = 1;
    } else if (d->window < d->window_max) {
        d->window++;
    }
    if (d->next_sequence < got + 1) {
        d->next_sequence = got + 1;
    }
}

static FALLIBLE hand_out(struct message *out, struct object_download *d, struct message *m) {
    REQUIRE(m->data.len <= d->bytes - d->bytes_done, E_FORMAT,
            "object in %s is longer than the %" PRIu64 " bytes that it should have", d->stream.text,
            d->bytes);
    if (d->run) {
        TRY(sha256_add(d->run, m->data));
    }
    d->bytes_done += m->data.len;
    d->chunk_bytes = m->data.len;
    d->covered = m->sequence + 1;
    d->due = m->sequence + step_from(d, d->done_count++);
    *out = *m;
    *m = (struct message){0};
    return OK;
}

static FALLIBLE finish(struct object_download *d) {
    struct sha256 got;
    if (d->run) {
        TRY(sha256_end(&got, d->run));
        sha256_free(&d->run);
        REQUIRE(memcmp(got.b, d->sha256.b, sizeof got.b) == 0, E_FORMAT,
                "object in %s does not have the SHA-256 that it should have", d->stream.text);
    }
    return OK;
}

/* What was told of the chunks' places is not true. */
static void search(struct object_download *d) {
    d->placed = false;
    d->window = 1;
    start_again(d);
}

FALLIBLE object_download_next(struct message *out, bool *end, struct object_download *d) {
    uint64_t deadline = clock_ns() + d->wait_ns;
    *end = false;
    while (d->bytes_done < d->bytes) {
        TRY(await_head(d, deadline));
        struct slot *s = slot_of(d, d->head);
        if (d->placed &&
            (!s->found || s->message.sequence != s->sequence || s->message.data.len == 0)) {
            search(d);
            continue;
        }
        struct message m = s->message;
        s->message = (struct message){0};
        d->head++;
        REQUIRE(s->found, E_FORMAT,
                "object in %s ends after %" PRIu64 " of %" PRIu64
                " bytes: chunks are missing, or it was purged",
                d->stream.text, d->bytes_done, d->bytes);
        adapt(d, s->sequence, m.sequence);
        if (m.sequence < d->covered || m.data.len == 0) {
            message_done(&m); /* found twice */
            continue;
        }
        enum err err = hand_out(out, d, &m);
        message_done(&m);
        return err;
    }
    TRY(finish(d));
    *end = true;
    *out = (struct message){0};
    return OK;
}

void object_download_close(struct object_download **download) {
    struct object_download *d = *download;
    if (d) {
        start_again(d);
        for (unsigned i = 0; i < d->links_count; i++) {
            if (d->links[i].pipe) {
                d->links[i].t->ops->pipe_close(d->links[i].pipe);
            }
        }
        sha256_free(&d->run);
        mem_free(d);
        *download = NULL;
    }
}
