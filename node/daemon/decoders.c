/* A chunk's message is held in a slot until the last of its frames is decoded; tasks name their slot. */
#include "node/daemon/decoders.h"

#include <pthread.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/drag.h"
#include "node/base/lock.h"
#include "node/base/mem.h"
#include "node/base/queue.h"

struct held_chunk {
    struct message message; /* owned while uses_count > 0 */
    unsigned uses_count;    /* [lock] frames not decoded yet, and whoever cuts it */
};

struct task {
    struct frame frame;    /* its bytes lent from the chunk */
    struct decoding *body; /* lent: whoever fetches it waits for the task */
    struct bytes_mut place;
    unsigned chunk_idx;
};

struct decoders {
    struct queue *tasks; /* owned; of struct task */
    struct pool *pool;   /* owned */
    pthread_t threads[DECODERS_MAX];
    struct frame_codec *codecs[DECODERS_MAX]; /* owned; each its thread's */
    unsigned threads_count, started_count;
    struct lock lock;
    struct condition changed;
    struct held_chunk chunks[DECODERS_CHUNKS_MAX]; /* [lock] */
};

struct seat { /* what a thread starts with */
    struct decoders *d;
    unsigned idx;
};

static void release_chunk(struct decoders *d, unsigned idx) {
    struct message message = {0};
    lock_take(&d->lock);
    if (--d->chunks[idx].uses_count == 0) {
        message = d->chunks[idx].message;
        d->chunks[idx].message = (struct message){0};
        condition_wake_all(&d->changed);
    }
    lock_give(&d->lock);
    message_done(&message);
}

static void note_done(struct decoders *d, struct decoding *body, enum err code, uint64_t ns) {
    struct fault fault = fault_of(code);
    LOCK_SCOPE(&d->lock);
    body->busy_ns += ns;
    if (code != OK && body->fault.code == OK) {
        body->fault = fault;
    }
    if (--body->tasks_count == 0) {
        condition_wake_all(&d->changed);
    }
}

static unsigned take_slot(struct decoders *d, struct decoding_stream *s) {
    LOCK_SCOPE(&d->lock);
    for (unsigned i = 0;; i = (i + 1) % s->slots_count) {
        if (!s->taken[i]) {
            s->taken[i] = true;
            return i;
        }
        if (i == s->slots_count - 1) {
            condition_wait(&d->changed, &d->lock);
        }
    }
}

static void give_slot(struct decoders *d, struct decoding_stream *s, unsigned idx) {
    LOCK_SCOPE(&d->lock);
    s->taken[idx] = false;
    condition_wake_all(&d->changed);
}

static enum err decode_through(struct decoders *d, struct frame_codec *codec,
                               const struct task *task) {
    struct decoding_stream *s = task->body->stream;
    ASSERT(task->place.len <= s->slot_bytes);
    unsigned idx = take_slot(d, s);
    struct bytes_mut slot = {s->slots + idx * s->slot_bytes, task->place.len};
    enum err code = frame_decode(slot, codec, &task->frame);
    if (code == OK) {
        code = s->take(s->ctx, &task->frame, bytes_of(slot.ptr, slot.len));
    }
    give_slot(d, s, idx);
    return code;
}

static void *decode_main(void *ctx) {
    struct seat seat = *(struct seat *)ctx;
    struct task task;
    mem_free(ctx);
    while (queue_take(seat.d->tasks, &task, UINT64_MAX) == OK) {
        uint64_t start_ns = clock_ns();
        drag(DRAG_DECODE);
        struct frame_codec *codec = seat.d->codecs[seat.idx];
        enum err code = task.body->stream ? decode_through(seat.d, codec, &task)
                                          : frame_decode(task.place, codec, &task.frame);
        release_chunk(seat.d, task.chunk_idx);
        note_done(seat.d, task.body, code, clock_ns() - start_ns);
    }
    return NULL;
}

enum err decoders_open(struct decoders **out, unsigned threads_count) {
    AUTO(decoders_close) struct decoders *d = NULL;
    TRY(mem_new(&d, 1, sizeof *d));
    lock_init(&d->lock, LOCK_STAGING);
    condition_init(&d->changed);
    d->threads_count = threads_count < 1              ? 1
                       : threads_count > DECODERS_MAX ? DECODERS_MAX
                                                      : threads_count;
    TRY(pool_open(&d->pool, d->threads_count));
    TRY(queue_new(&d->tasks, DECODERS_CHUNKS_MAX, sizeof(struct task)));
    for (; d->started_count < d->threads_count; d->started_count++) {
        struct seat *seat = NULL;
        TRY(frame_codec_new(&d->codecs[d->started_count]));
        TRY(mem_new(&seat, 1, sizeof *seat));
        *seat = (struct seat){d, d->started_count};
        int rc = pthread_create(&d->threads[d->started_count], NULL, decode_main, seat);
        if (rc != 0) {
            mem_free(seat);
            FAIL(E_LIMIT, "no thread to decode with: %s", strerror(rc));
        }
    }
    *out = TAKE(d);
    return OK;
}

void decoders_close(struct decoders **decoders) {
    struct decoders *d = *decoders;
    if (!d) {
        return;
    }
    if (d->tasks) {
        queue_close(d->tasks);
    }
    for (unsigned i = 0; i < d->started_count; i++) {
        pthread_join(d->threads[i], NULL);
    }
    for (unsigned i = 0; i < DECODERS_MAX; i++) {
        frame_codec_free(&d->codecs[i]);
    }
    queue_free(&d->tasks);
    pool_close(&d->pool);
    condition_done(&d->changed);
    lock_done(&d->lock);
    mem_free_ptr(decoders);
}

struct pool *decoders_pool(const struct decoders *d) {
    return d->pool;
}

/* A free place for one more chunk; waits for one. */
static unsigned hold_chunk(struct decoders *d, struct message *message) {
    LOCK_SCOPE(&d->lock);
    for (unsigned i = 0;; i = (i + 1) % DECODERS_CHUNKS_MAX) {
        if (d->chunks[i].uses_count == 0) {
            d->chunks[i] = (struct held_chunk){*message, 1};
            *message = (struct message){0};
            return i;
        }
        if (i == DECODERS_CHUNKS_MAX - 1) {
            condition_wait(&d->changed, &d->lock);
        }
    }
}

struct cutting { /* a chunk of one body, by the thread that fetched it */
    struct decoders *d;
    struct decoding *body;
    unsigned chunk_idx;
};

static void wait_for_tasks(struct decoders *d, const struct decoding *body) {
    LOCK_SCOPE(&d->lock);
    while (body->tasks_count > 0) {
        condition_wait(&d->changed, &d->lock);
    }
}

/* For body_reader_add: a frame that lies whole in the chunk being cut, or one that streams. */
static enum err give_away(void *ctx, const struct body_frame *frame) {
    const struct cutting *cut = ctx;
    struct decoders *d = cut->d;
    struct task task = {frame->frame, cut->body, frame->place, cut->chunk_idx};
    lock_take(&d->lock);
    cut->body->tasks_count++;
    d->chunks[cut->chunk_idx].uses_count++;
    lock_give(&d->lock);
    enum err put = queue_put(d->tasks, &task, UINT64_MAX);
    ASSERT(put == OK);
    if (!frame->lent) { /* the next one is put together where this one lies */
        wait_for_tasks(d, cut->body);
    }
    return OK;
}

enum err decoders_add(struct decoders *d, struct decoding *body, struct body_reader *reader,
                      struct message *chunk) {
    struct bytes data = chunk->data;
    struct fault fault;
    struct cutting cut = {d, body, hold_chunk(d, chunk)};
    body_reader_divert(reader, give_away, &cut);
    enum err code = body_reader_add(reader, data);
    body_reader_divert(reader, NULL, NULL);
    fault = fault_of(code);
    release_chunk(d, cut.chunk_idx);
    if (code == OK) {
        lock_take(&d->lock);
        fault = body->fault;
        lock_give(&d->lock);
    }
    return fault.code == OK ? OK : fault_raise(&fault);
}

enum err decoders_wait(uint64_t *busy_ns, struct decoders *d, struct decoding *body) {
    lock_take(&d->lock);
    while (body->tasks_count > 0) {
        condition_wait(&d->changed, &d->lock);
    }
    struct fault fault = body->fault;
    if (busy_ns) {
        *busy_ns = body->busy_ns;
    }
    *body = (struct decoding){0};
    lock_give(&d->lock);
    return fault.code == OK ? OK : fault_raise(&fault);
}
