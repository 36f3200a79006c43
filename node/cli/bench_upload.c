/* The vectors go through the slot's own inbox, so that what is timed is what a lane does; only the memory they come from differs. a, b and c
 * stand in for themselves: three vectors of the domain's size, filled with the witness again and again, since nothing is computed with them.
 */
#include "node/cli/bench_upload.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/cli/backend_args.h"
#include "node/cli/bench.h"
#include "node/daemon/backends.h"
#include "node/groth16/prove.h"
#include "node/staging/pinned.h"

enum { VECTORS = 3, THRASH_MAX = 256, THRASH_BYTES = 64 << 20 };

struct thrash {
    pthread_t threads[THRASH_MAX];
    unsigned count;
    _Atomic bool stop;
};

struct upload {
    struct key *key;         /* owned (ref) */
    struct witness witness;  /* owned */
    struct backend *backend; /* owned */
    struct backend_choice choice;
    struct backend_key *backend_key; /* owned */
    struct backend_slot *slot;       /* owned */
    struct pinned *pinned;           /* owned; NULL: pageable */
    struct pinned_block block;       /* lent */
    uint8_t *heap;                   /* owned; pageable */
    struct scalars vectors[VECTORS]; /* owned */
    unsigned vectors_count;
    struct thrash thrash;
};

static void upload_done(struct upload *u) {
    atomic_store(&u->thrash.stop, true);
    for (unsigned i = 0; i < u->thrash.count; i++) {
        pthread_join(u->thrash.threads[i], NULL);
    }
    for (unsigned i = 0; i < VECTORS; i++) {
        scalars_close(&u->vectors[i]);
    }
    mem_free(u->heap);
    if (u->pinned) {
        pinned_give(u->pinned, &u->block);
        pinned_close(&u->pinned);
    }
    if (u->slot) {
        u->backend->ops->slot_close(&u->slot);
    }
    if (u->backend_key) {
        u->backend->ops->key_drop(&u->backend_key);
    }
    backend_close(&u->backend);
    witness_close(&u->witness);
    key_unref(&u->key);
}

static void *thrash_main(void *ctx) {
    struct thrash *t = ctx;
    uint8_t *memory = mem_zero_alloc(2, THRASH_BYTES);
    for (uint64_t i = 0; memory && !atomic_load(&t->stop); i++) {
        memcpy(memory + (i % 2) * THRASH_BYTES, memory + (i + 1) % 2 * THRASH_BYTES, THRASH_BYTES);
    }
    mem_free(memory);
    return NULL;
}

static enum err pin(void *ctx, void *ptr, size_t bytes) {
    struct backend *b = ctx;
    return b->ops->pin(b, ptr, bytes);
}

static void unpin(void *ctx, void *ptr, size_t bytes) {
    struct backend *b = ctx;
    (void)bytes;
    b->ops->unpin(b, ptr);
}

static enum err open_memory(uint8_t **out, struct upload *u, size_t bytes, bool pageable) {
    if (pageable) {
        TRY(mem_new_raw(&u->heap, bytes, 1));
        memset(u->heap, 0, bytes);
        *out = u->heap;
        return OK;
    }
    struct pinned_options options = {.bytes = bytes,
                                     .numa_node = u->backend->numa_node,
                                     .lock = pin,
                                     .unlock = unpin,
                                     .ctx = u->backend};
    TRY(pinned_open(&u->pinned, &options));
    TRY(pinned_take(&u->block, u->pinned, bytes));
    *out = u->block.ptr;
    return OK;
}

static enum err make_plain(struct upload *u, bool pageable) {
    uint64_t rows = key_shape(u->key)->domain_size;
    size_t bytes = (size_t)rows * SCALAR_BYTES, given = (size_t)u->witness.count * SCALAR_BYTES;
    uint64_t wires = u->witness.count;
    uint8_t *memory = NULL;
    TRY(open_memory(&memory, u, VECTORS * bytes + given, pageable));
    for (unsigned i = 0; i < VECTORS; i++) { /* the last takes the assignment's place */
        uint8_t *at = memory + i * bytes;
        uint64_t count = i < VECTORS - 1 ? rows : wires;
        for (size_t k = 0; k < count * SCALAR_BYTES; k += given) {
            size_t left = (size_t)count * SCALAR_BYTES - k;
            memcpy(at + k, u->witness.values, left < given ? left : given);
        }
        TRY(scalars_open(&u->vectors[i], bytes_of(at, (size_t)count * SCALAR_BYTES), count, false));
        u->vectors_count++;
    }
    return OK;
}

static enum err make_packed(struct upload *u) {
    AUTO(codec_survey_close) struct codec_survey survey = {0};
    AUTO(pool_close) struct pool *pool = NULL;
    const uint64_t *r = key_curve(u->key)->r.w;
    struct bytes plain = bytes_of(u->witness.values, (size_t)u->witness.count * SCALAR_BYTES);
    uint8_t *memory = NULL;
    TRY(pool_open(&pool, 0));
    TRY(codec_survey_open(&survey, plain, r, pool));
    size_t bytes = survey.pays ? (size_t)survey.bytes : plain.len;
    TRY(open_memory(&memory, u, bytes, false));
    if (survey.pays) {
        TRY(codec_encode((struct bytes_mut){memory, bytes}, &survey, plain, r, pool));
    } else {
        memcpy(memory, plain.ptr, bytes);
    }
    u->vectors_count = 1;
    return scalars_open(&u->vectors[0], bytes_of(memory, bytes), u->witness.count, survey.pays);
}

static enum err upload_open(struct upload *u, const struct args *args, const char *how) {
    struct backend_options options = {.kind = BACKEND_CUDA, .device = args_text(args, "device")};
    TRY(key_open(&u->key, args_positional(args, "KEY"),
                 (struct key_options){.allow_insecure = true}));
    TRY(witness_open(&u->witness, args_rest(args, 0)));
    TRY(witness_fits(&u->witness, key_shape(u->key), key_path(u->key)));
    TRY(backends_open(&u->backend, &u->choice, &options));
    TRY(u->backend->ops->key_load(&u->backend_key, u->backend, u->key));
    TRY(u->backend->ops->slot_open(&u->slot, u->backend_key));
    if (!strcmp(how, "packed")) {
        TRY(make_packed(u));
    } else {
        TRY(make_plain(u, !strcmp(how, "pageable")));
    }
    for (; u->thrash.count < args_number(args, "thrash", 0); u->thrash.count++) {
        int rc = pthread_create(&u->thrash.threads[u->thrash.count], NULL, thrash_main, &u->thrash);
        REQUIRE(rc == 0, E_LIMIT, "no thread to copy memory with: %s", strerror(rc));
    }
    return OK;
}

static enum err run_once(uint64_t *upload_ns, uint64_t *compute_ns, uint64_t *bytes,
                         struct upload *u) {
    struct bring b = {
        .vectors = u->vectors, .vectors_count = u->vectors_count, .name = "the witness"};
    struct job_watch watch = {0};
    struct sums sums;
    TRY(u->backend->ops->bring(u->slot, &b, &watch));
    u->backend->ops->unbring(u->slot, b.ticket);
    *upload_ns = b.upload_ns;
    *bytes = b.bytes;
    uint64_t start_ns = clock_ns();
    TRY(groth16_sums(&sums, u->backend, u->slot, u->key, &u->witness, &watch));
    *compute_ns = clock_ns() - start_ns;
    return OK;
}

FALLIBLE bench_upload_run(struct args *args) {
    AUTO(upload_done) struct upload u = {0};
    AUTO(text_free) struct text t = {0};
    AUTO(mem_free_ptr) uint64_t *ns = NULL;
    const char *how = args_text(args, "imitate");
    size_t runs = (size_t)args_number(args, "runs", 5);
    uint64_t bytes = 0;
    TRY(upload_open(&u, args, how));
    TRY(mem_new(&ns, 2 * runs, sizeof *ns));
    TRY(run_once(&ns[0], &ns[runs], &bytes, &u)); /* warm */
    for (size_t i = 0; i < runs; i++) {
        TRY(run_once(&ns[i], &ns[runs + i], &bytes, &u));
    }
    struct pinned_start start = {0};
    if (u.pinned) {
        start = pinned_start_of(u.pinned);
    }
    bench_begin(&t, "upload", u.choice.why);
    text_addf(&t,
              ", \"imitate\": \"%s\", \"thrash\": %u, \"wires\": %u, \"bytes\": %" PRIu64
              ", \"touch_ns\": %" PRIu64 ", \"lock_ns\": %" PRIu64 ", ",
              how, u.thrash.count, key_shape(u.key)->wires_count, bytes, start.touch_ns,
              start.lock_ns);
    uint64_t upload_ns = bench_row(&t, "upload_ns", ns, runs);
    text_addf(&t, ", \"gb_s\": %.2f, ", upload_ns ? (double)bytes / (double)upload_ns : 0);
    bench_row(&t, "compute_ns", ns + runs, runs);
    text_add(&t, "}");
    TRY(text_done(&t));
    puts(t.ptr);
    return OK;
}
