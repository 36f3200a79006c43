/* A pipe whose answers are put in order. A late answer of an earlier batch carries an old number and is dropped. */
#include "node/transport/batch.h"

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/transport/ops.h"
#include "proto/limits.h"

struct batch {
    struct transport *t;          /* lent */
    struct pipe *pipe;            /* owned */
    struct batch_answer *answers; /* owned */
    bool answered[BATCH_MAX];
    size_t count, waiting;
    uint64_t first_token; /* of this batch */
    uint64_t losses;      /* of the connection, when it began */
};

FALLIBLE batch_open(struct batch **out, struct transport *t) {
    AUTO(batch_close) struct batch *b = NULL;
    TRY(mem_new(&b, 1, sizeof *b));
    b->t = t;
    TRY(mem_new(&b->answers, BATCH_MAX, sizeof *b->answers));
    TRY(t->ops->pipe_open(&b->pipe, t));
    *out = TAKE(b);
    return OK;
}

void batch_close(struct batch **batch) {
    struct batch *b = *batch;
    if (b) {
        if (b->answers) {
            batch_clear(b);
        }
        if (b->pipe) {
            b->t->ops->pipe_close(b->pipe);
        }
        mem_free(b->answers);
        mem_free(b);
        *batch = NULL;
    }
}

size_t batch_count(const struct batch *b) {
    return b->count;
}

static FALLIBLE next_token(uint64_t *token, struct batch *b) {
    REQUIRE(b->count < BATCH_MAX, E_LIMIT, "more than %d requests in a batch", BATCH_MAX);
    b->losses = b->count ? b->losses : b->t->ops->losses(b->t);
    *token = b->first_token + b->count;
    return OK;
}

/* A request that could not even be sent has its answer already. */
static FALLIBLE note_sent(struct batch *b, enum err code) {
    b->answered[b->count] = code != OK;
    if (code != OK) {
        b->answers[b->count].fault = fault_of(code);
    } else {
        b->waiting++;
    }
    b->count++;
    return OK;
}

FALLIBLE batch_publish(struct batch *b, const char *subject, struct bytes data,
                       const struct publish_options *options) {
    uint64_t token;
    TRY(next_token(&token, b));
    TRY(check_subject(subject));
    return note_sent(b, b->t->ops->pipe_publish(b->pipe, token, subject, data, options));
}

FALLIBLE batch_get_last(struct batch *b, const char *stream, const char *subject) {
    uint64_t token;
    TRY(next_token(&token, b));
    TRY(check_name(stream, "stream"));
    TRY(check_subject(subject));
    return note_sent(b, b->t->ops->pipe_get(b->pipe, token, stream, 0, subject));
}

FALLIBLE batch_get_next(struct batch *b, const char *stream, uint64_t sequence,
                        const char *filter) {
    uint64_t token;
    TRY(next_token(&token, b));
    TRY(check_name(stream, "stream"));
    TRY(check_subject(filter));
    ASSERT(sequence > 0);
    return note_sent(b, b->t->ops->pipe_get(b->pipe, token, stream, sequence, filter));
}

FALLIBLE batch_kv_get(struct batch *b, const char *bucket, const char *key) {
    struct subject stream, subject;
    TRY(kv_stream(&stream, bucket));
    TRY(kv_subject(&subject, bucket, key, false));
    return batch_get_last(b, stream.text, subject.text);
}

FALLIBLE batch_kv_write(struct batch *b, const char *bucket, const char *key, struct bytes value,
                        uint64_t last) {
    struct subject subject;
    TRY(kv_subject(&subject, bucket, key, false));
    struct publish_options options = {.expect_last = true, .expect_last_sequence = last};
    return batch_publish(b, subject.text, value, &options);
}

FALLIBLE batch_kv_put(struct batch *b, const char *bucket, const char *key, struct bytes value) {
    struct subject subject;
    TRY(kv_subject(&subject, bucket, key, false));
    return batch_publish(b, subject.text, value, NULL);
}

static void take_answer(struct batch *b, struct pipe_answer *a) {
    uint64_t idx = a->token - b->first_token;
    if (a->token < b->first_token || idx >= b->count || b->answered[idx]) {
        message_done(&a->message);
        return;
    }
    b->answers[idx] = (struct batch_answer){a->fault, a->ack, a->found, a->message};
    b->answered[idx] = true;
    b->waiting--;
}

void batch_wait(struct batch *b, uint64_t wait_ns) {
    wait_ns = wait_ns ? wait_ns : REQUEST_WAIT_DEFAULT_S * SECOND_NS;
    uint64_t until_ns = clock_ns() + wait_ns;
    while (b->waiting > 0 && clock_ns() < until_ns && b->t->ops->losses(b->t) == b->losses) {
        struct pipe_answer a = {0};
        enum err code = b->t->ops->pipe_next(&a, b->pipe, SECOND_NS / 10);
        if (code == OK) {
            take_answer(b, &a);
            until_ns = clock_ns() + wait_ns;
        } else if (code != E_TIMEOUT) {
            break;
        }
    }
    for (size_t i = 0; i < b->count; i++) {
        if (!b->answered[i]) {
            b->answers[i].fault =
                fault_of(err_set(E_TIMEOUT, "request %zu of %zu: no answer in time", i, b->count));
            b->answered[i] = true;
        }
    }
    b->waiting = 0;
}

const struct batch_answer *batch_answer(const struct batch *b, size_t idx) {
    ASSERT(idx < b->count && b->answered[idx]);
    return &b->answers[idx];
}

void batch_take_message(struct message *out, struct batch *b, size_t idx) {
    ASSERT(batch_answer(b, idx)->found);
    *out = b->answers[idx].message;
    b->answers[idx].message = (struct message){0};
}

void batch_clear(struct batch *b) {
    for (size_t i = 0; i < b->count; i++) {
        message_done(&b->answers[i].message);
        b->answers[i] = (struct batch_answer){0};
    }
    b->first_token += b->count;
    b->count = 0;
    b->waiting = 0;
}
