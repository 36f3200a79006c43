/* Key-value buckets and objects: what the design relies on, claim by claim.
 *
 * The program is linked twice, with world_loopback.c and with world_server.c; a claim that passes with one and not with
 * the other is a defect of the twin (or of what we believe of the server).
 */
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/transport/batch.h"
#include "tests/unit/transport/world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Key-value --- */

static void make_bucket(struct transport *t, uint64_t ttl_ns) {
    CHECK_OK(kv_ensure(t, &(struct kv_config){.bucket = name, .ttl_ns = ttl_ns}));
    CHECK_OK(kv_ensure(t, &(struct kv_config){.bucket = name, .ttl_ns = ttl_ns}));
}

static void claim_kv(void) {
    struct transport *t = enter();
    struct kv_entry e;
    bool found, won;
    uint64_t first, second, third;
    make_bucket(t, 0);
    CHECK_OK(kv_get(&e, &found, t, name, "tenant.job"));
    CHECK(!found);
    CHECK_OK(kv_create(&first, &won, t, name, "tenant.job", text("1")));
    CHECK(won);
    CHECK_OK(kv_create(&second, &won, t, name, "tenant.job", text("2")));
    CHECK(!won);
    CHECK_OK(kv_update(&second, &won, t, name, "tenant.job", text("3"), first));
    CHECK(won && second > first);
    CHECK_OK(kv_update(&third, &won, t, name, "tenant.job", text("stale"), first));
    CHECK(!won);
    CHECK_OK(kv_get(&e, &found, t, name, "tenant.job"));
    CHECK(found && e.revision == second && e.operation == KV_PUT);
    CHECK_STR("tenant.job", e.key);
    CHECK_MEM("3", e.value.ptr, 1);
    kv_entry_done(&e);
    CHECK_OK(kv_delete(&won, t, name, "tenant.job", first));
    CHECK(!won);
    CHECK_OK(kv_delete(&won, t, name, "tenant.job", second));
    CHECK(won);
    CHECK_OK(kv_get(&e, &found, t, name, "tenant.job"));
    CHECK(!found);
    CHECK_OK(kv_create(&third, &won, t, name, "tenant.job", text("again")));
    CHECK(won && third > second);
    CHECK_OK(kv_put(&third, t, name, "tenant.job", text("whatever")));
    CHECK_ERR(E_FORMAT, kv_put(&third, t, name, "a b", text("x")));
    CHECK_ERR(E_FORMAT, kv_put(&third, t, name, "a.*", text("x")));
    leave(t);
}

struct seen {
    char keys[256];
    int count;
};

static enum err note(void *ctx, const struct kv_entry *e) {
    struct seen *s = ctx;
    size_t at = strlen(s->keys);
    snprintf(s->keys + at, sizeof s->keys - at, "%s=%.*s;", e->key, (int)e->value.len,
             (const char *)e->value.ptr);
    s->count++;
    return OK;
}

static void claim_kv_list(void) {
    struct transport *t = enter();
    uint64_t revision;
    make_bucket(t, 0);
    struct seen seen = {0};
    CHECK_OK(kv_list(t, name, ">", note, &seen));
    CHECK_EQ(0, seen.count);
    CHECK_OK(kv_put(&revision, t, name, "x.a", text("1")));
    CHECK_OK(kv_put(&revision, t, name, "x.b", text("2")));
    CHECK_OK(kv_put(&revision, t, name, "y.c", text("3")));
    CHECK_OK(kv_put(&revision, t, name, "x.a", text("4")));
    CHECK_OK(kv_delete(NULL, t, name, "x.b", 0));
    CHECK_OK(kv_list(t, name, ">", note, &seen));
    CHECK_STR("y.c=3;x.a=4;", seen.keys);
    seen = (struct seen){0};
    CHECK_OK(kv_list(t, name, "x.*", note, &seen));
    CHECK_STR("x.a=4;", seen.keys);
    leave(t);
}

static void expect_change(struct kv_watch *w, const char *key, const char *value, bool caught_up) {
    struct kv_entry e;
    bool all;
    CHECK_OK(kv_watch_next(&e, &all, w, 3 * S));
    CHECK_STR(key, e.key);
    CHECK_EQ(value ? KV_PUT : KV_DELETE, e.operation);
    if (value) {
        CHECK_EQ(strlen(value), e.value.len);
        CHECK_MEM(value, e.value.ptr, e.value.len);
    }
    CHECK_EQ(caught_up, all);
    kv_entry_done(&e);
}

static void claim_kv_watch(void) {
    struct transport *t = enter(), *writer = world_connect();
    uint64_t revision;
    struct kv_watch *w = NULL;
    make_bucket(t, 0);
    CHECK_OK(kv_put(&revision, t, name, "a", text("1")));
    CHECK_OK(kv_put(&revision, t, name, "gone", text("1")));
    CHECK_OK(kv_delete(NULL, t, name, "gone", 0));
    CHECK_OK(kv_put(&revision, t, name, "b", text("2")));
    CHECK_OK(kv_watch_open(&w, t, name, ">"));
    expect_change(w, "a", "1", false);
    expect_change(w, "b", "2", true);
    struct kv_entry e;
    bool all = false;
    CHECK_ERR(E_TIMEOUT, kv_watch_next(&e, &all, w, 200 * MS));
    CHECK(all);
    CHECK_OK(kv_put(&revision, writer, name, "a", text("3")));
    uint64_t start = clock_ns();
    expect_change(w, "a", "3", true);
    CHECK(clock_ns() - start < 500 * MS); /* told, not polled */
    CHECK_OK(kv_delete(NULL, writer, name, "b", 0));
    expect_change(w, "b", NULL, true);
    kv_watch_close(&w);
    leave(writer);
    leave(t);
}

static void claim_kv_ttl(void) {
    struct transport *t = enter();
    bool won, found;
    uint64_t revision;
    struct kv_entry e;
    make_bucket(t, S);
    CHECK_OK(kv_create(&revision, &won, t, name, "leader", text("a")));
    CHECK(won);
    clock_sleep_ns(600 * MS);
    CHECK_OK(kv_update(&revision, &won, t, name, "leader", text("a"), revision));
    CHECK(won);
    clock_sleep_ns(600 * MS);
    uint64_t stale = revision;
    CHECK_OK(kv_create(&revision, &won, t, name, "leader", text("b")));
    CHECK(!won); /* renewed in time */
    clock_sleep_ns(1200 * MS);
    CHECK_OK(kv_get(&e, &found, t, name, "leader"));
    CHECK(!found);
    CHECK_OK(kv_create(&revision, &won, t, name, "leader", text("b")));
    CHECK(won);
    CHECK_OK(kv_update(&revision, &won, t, name, "leader", text("a"), stale));
    CHECK(!won);
    leave(t);
}

/* --- Many at once --- */

static struct bytes number(char out[24], unsigned n) {
    int len = snprintf(out, 24, "%u", n);
    return bytes_of(out, (size_t)len);
}

static void claim_batch(void) {
    enum { MANY = 200 };
    struct transport *t = enter();
    struct batch *b = NULL;
    uint64_t revisions[MANY];
    char key[24], value[24];
    make_bucket(t, 0);
    CHECK_OK(batch_open(&b, t));
    for (int round = 0; round < 3; round++) { /* created; there already; updated */
        for (unsigned i = 0; i < MANY; i++) {
            number(key, i);
            CHECK_OK(
                batch_kv_write(b, name, key, number(value, i * 7), round == 2 ? revisions[i] : 0));
        }
        CHECK_EQ(MANY, batch_count(b));
        batch_wait(b, 0);
        for (unsigned i = 0; i < MANY; i++) {
            const struct batch_answer *a = batch_answer(b, i);
            CHECK_EQ(OK, a->fault.code);
            CHECK_EQ(round == 1 ? PUBLISH_CONFLICT : PUBLISH_STORED, a->ack.outcome);
            revisions[i] = round == 1 ? revisions[i] : a->ack.sequence;
        }
        batch_clear(b);
    }
    for (unsigned i = 0; i < MANY; i++) {
        CHECK_OK(batch_kv_get(b, name, (number(key, i + i % 2 * MANY), key)));
    }
    batch_wait(b, 0);
    for (unsigned i = 0; i < MANY; i++) {
        const struct batch_answer *a = batch_answer(b, i);
        CHECK_EQ(OK, a->fault.code);
        CHECK_EQ(i % 2 == 0, a->found);
        if (a->found) {
            struct bytes want = number(value, i * 7);
            CHECK_EQ(want.len, a->message.data.len);
            CHECK_MEM(want.ptr, a->message.data.ptr, want.len);
            CHECK_EQ(revisions[i], a->message.sequence);
        }
    }
    batch_clear(b);
    struct publish_options options = {.message_id = "once"};
    CHECK_OK(batch_publish(b, "nobody.takes.this", text("x"), &options));
    batch_wait(b, 500 * MS);
    CHECK(batch_answer(b, 0)->fault.code == E_NET || batch_answer(b, 0)->fault.code == E_TIMEOUT);
    batch_clear(b);
    for (unsigned i = 0; i < BATCH_MAX; i++) {
        CHECK_OK(batch_kv_get(b, name, "1"));
    }
    CHECK_ERR(E_LIMIT, batch_kv_get(b, name, "1"));
    batch_close(&b); /* with answers on their way */
    leave(t);
}

/* Thousands of changes, many to the same keys: each key's last one is seen, in order, none twice. */
static void claim_kv_watch_keeps_up(void) {
    enum { KEYS = 100, CHANGES = 3000 };
    struct transport *t = enter(), *writer = world_connect();
    struct kv_watch *w = NULL;
    struct batch *b = NULL;
    uint64_t last_revision = 0;
    unsigned last[KEYS] = {0}, seen[KEYS] = {0}, written = 0;
    char key[24], value[24];
    make_bucket(t, 0);
    CHECK_OK(batch_open(&b, writer));
    CHECK_OK(kv_watch_open(&w, t, name, ">"));
    for (bool all = false; !all;) {
        for (int n = 0; n < 100 && written < CHANGES; n++) {
            unsigned k = (unsigned)rng_below(check_rng(), KEYS);
            char place[64];
            last[k] = ++written;
            number(key, k);
            snprintf(place, sizeof place, "$KV.%s.%s", name, key);
            CHECK_OK(batch_publish(b, place, number(value, written), NULL));
        }
        batch_wait(b, 0);
        batch_clear(b);
        struct kv_entry e = {0};
        while (kv_watch_next(&e, NULL, w, written < CHANGES ? 1 : 500 * MS) == OK) {
            CHECK(e.revision > last_revision);
            last_revision = e.revision;
            snprintf(value, sizeof value, "%.*s", (int)e.value.len, (const char *)e.value.ptr);
            seen[strtoul(e.key, NULL, 10)] = (unsigned)strtoul(value, NULL, 10);
            kv_entry_done(&e);
        }
        all = written == CHANGES;
    }
    CHECK_MEM(last, seen, sizeof last);
    kv_watch_close(&w);
    batch_close(&b);
    leave(writer);
    leave(t);
}

struct rewriter {
    struct transport *link;
    _Atomic bool enough;
    pthread_t thread;
};

static void *rewrite(void *ctx) {
    struct rewriter *r = ctx;
    struct rng rng = rng_seeded(1);
    struct batch *b = NULL;
    if (batch_open(&b, r->link) != OK) {
        return NULL;
    }
    while (!atomic_load(&r->enough)) {
        char place[64];
        for (int n = 0; n < 20; n++) {
            snprintf(place, sizeof place, "$KV.%s.k%u", name, (unsigned)rng_below(&rng, 40));
            IGNORE(batch_publish(b, place, text("again"), NULL));
        }
        batch_wait(b, 0);
        batch_clear(b);
    }
    batch_close(&b);
    return ctx;
}

/* A bucket with so many keys k0, k1, …, of which the first 40 are written anew all the time. */
static void rewriting_begin(struct rewriter *r, struct transport *t, unsigned keys_count) {
    make_bucket(t, 0);
    for (unsigned i = 0; i < keys_count; i++) {
        char key[24];
        uint64_t revision;
        snprintf(key, sizeof key, "k%u", i);
        CHECK_OK(kv_put(&revision, t, name, key, text("first")));
    }
    r->link = world_connect();
    CHECK(pthread_create(&r->thread, NULL, rewrite, r) == 0);
}

static void rewriting_end(struct rewriter *r) {
    void *ended;
    atomic_store(&r->enough, true);
    CHECK(pthread_join(r->thread, &ended) == 0 && ended);
    leave(r->link);
}

/* What existed has been read at some time, whatever the server says of how much is left. */
static void claim_kv_watch_comes_to_an_end(void) {
    struct transport *t = enter();
    struct rewriter r = {.link = NULL};
    rewriting_begin(&r, t, 40);
    for (unsigned n = 0; n < 60; n++) {
        struct kv_watch *w = NULL;
        uint64_t start_ns = clock_ns();
        CHECK_OK(kv_watch_open(&w, t, name, ">"));
        for (bool all = false; !all;) {
            struct kv_entry e = {0};
            enum err code = kv_watch_next(&e, &all, w, 20 * MS);
            CHECK(code == OK || code == E_TIMEOUT);
            if (code == OK) {
                kv_entry_done(&e);
            }
            CHECK_MSG(clock_ns() - start_ns < 3 * S, "watch %u goes on for ever", n);
        }
        kv_watch_close(&w);
    }
    rewriting_end(&r);
    leave(t);
}

/* Many keys k0, k1, …: how often each was told, and in which order. */
enum { LISTED_MAX = 1200 };
struct listed {
    unsigned told[LISTED_MAX];
    uint64_t revision;
    unsigned count;
};

static enum err note_listed(void *ctx, const struct kv_entry *e) {
    struct listed *l = ctx;
    unsigned idx = (unsigned)strtoul(strchr(e->key, 'k') + 1, NULL, 10);
    CHECK(idx < LISTED_MAX && e->revision > l->revision);
    l->revision = e->revision;
    l->told[idx]++;
    return ++l->count == 1000000 ? E_CANCELLED : OK;
}

/* Dense and with wide gaps, deletions, and another tenant's keys between. */
static void claim_kv_list_many(void) {
    struct transport *t = enter();
    struct batch *b = NULL;
    char key[24];
    make_bucket(t, 0);
    CHECK_OK(batch_open(&b, t));
    for (unsigned i = 0; i < 6 * LISTED_MAX; i++) {
        bool other = i >= LISTED_MAX && i % 1200 < 900;
        snprintf(key, sizeof key, "%s.k%u", other ? "other" : "a", i % LISTED_MAX);
        CHECK_OK(batch_kv_put(b, name, key, text("x")));
        if (batch_count(b) == BATCH_MAX) {
            batch_wait(b, 0);
            batch_clear(b);
        }
    }
    batch_wait(b, 0);
    batch_close(&b);
    for (unsigned i = 0; i < LISTED_MAX; i += 100) {
        snprintf(key, sizeof key, "a.k%u", i);
        CHECK_OK(kv_delete(NULL, t, name, key, 0));
    }
    struct listed l = {.count = 0};
    CHECK_OK(kv_list(t, name, "a.*", note_listed, &l));
    for (unsigned i = 0; i < LISTED_MAX; i++) {
        CHECK_MSG(l.told[i] == (i % 100 != 0), "key %u: %u times", i, l.told[i]);
    }
    leave(t);
}

/* Of 600 keys 40 change all the time, and move behind the others: all are told. */
static void claim_kv_list_of_what_changes(void) {
    struct transport *t = enter();
    struct rewriter r = {.link = NULL};
    rewriting_begin(&r, t, 600);
    for (unsigned n = 0; n < 20; n++) {
        struct listed l = {.count = 0};
        CHECK_OK(kv_list(t, name, ">", note_listed, &l));
        for (unsigned i = 0; i < 600; i++) {
            CHECK_MSG(l.told[i] > 0 && (i < 40 || l.told[i] == 1), "list %u: key %u: %u times", n,
                      i, l.told[i]);
        }
    }
    rewriting_end(&r);
    leave(t);
}

/* --- Objects --- */

static void make_objects(struct transport *t) {
    CHECK_OK(object_bucket_ensure(t, &(struct object_bucket_config){.bucket = name}));
    CHECK_OK(object_bucket_ensure(t, &(struct object_bucket_config){.bucket = name}));
}

struct gather {
    uint8_t *ptr;
    size_t len, cap;
};

static enum err gather(void *ctx, struct bytes chunk) {
    struct gather *g = ctx;
    REQUIRE(chunk.len <= g->cap - g->len, E_INTERNAL, "more than was put");
    memcpy(g->ptr + g->len, chunk.ptr, chunk.len);
    g->len += chunk.len;
    return OK;
}

static uint8_t *random_block(size_t len) {
    uint8_t *block = mem_alloc(len ? len : 1);
    CHECK(block);
    rng_fill(check_rng(), block, len);
    return block;
}

static void check_object(struct transport *t, const char *object, struct bytes want) {
    struct object_info info;
    bool found;
    struct gather g = {.ptr = mem_alloc(want.len + 1), .cap = want.len};
    CHECK_OK(object_get(&info, &found, t, name, object, 1 << 30, gather, &g));
    CHECK(found);
    CHECK_EQ(want.len, g.len);
    CHECK_EQ(want.len, info.bytes);
    CHECK_MEM(want.ptr, g.ptr, g.len);
    mem_free(g.ptr);
}

static void claim_objects(void) {
    static const size_t sizes[] = {0, 1, 1000, 1048576, 1048577, 5000000};
    struct transport *t = enter();
    make_objects(t);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        uint8_t *block = random_block(sizes[i]);
        char object[32];
        struct object_info info, seen;
        bool found;
        snprintf(object, sizeof object, "object/%zu + x", i);
        CHECK_OK(object_put_bytes(&info, t, name, object, bytes_of(block, sizes[i])));
        CHECK_EQ((sizes[i] + OBJECT_CHUNK_BYTES - 1) / OBJECT_CHUNK_BYTES, info.chunks_count);
        CHECK_OK(object_info(&seen, &found, t, name, object));
        CHECK(found);
        CHECK_STR(info.nuid, seen.nuid);
        CHECK_MEM(&info.sha256, &seen.sha256, sizeof info.sha256);
        check_object(t, object, bytes_of(block, sizes[i]));
        mem_free(block);
    }
    struct object_info info;
    bool found;
    CHECK_OK(object_info(&info, &found, t, name, "nothing"));
    CHECK(!found);
    CHECK_ERR(E_FORMAT, object_put_bytes(&info, t, name, "\xc3\xbc", text("x")));
    struct gather g = {0};
    CHECK_ERR(E_LIMIT, object_get(&info, &found, t, name, "object/5 + x", 100, gather, &g));
    leave(t);
}

/* Two uploads at once, chunk by chunk: their chunks alternate in the stream. */
static void claim_interleaved(void) {
    enum { CHUNKS = 40, CHUNK = 5000 };
    struct transport *t = enter();
    struct object_upload *u[2] = {NULL, NULL};
    uint8_t *block = random_block((size_t)2 * CHUNKS * CHUNK);
    struct object_info info;
    make_objects(t);
    CHECK_OK(object_upload_open(&u[0], t, name, "one"));
    CHECK_OK(object_upload_open(&u[1], t, name, "two"));
    for (size_t i = 0; i < CHUNKS; i++) {
        CHECK_OK(object_upload_chunk(u[0], bytes_of(block + i * CHUNK, CHUNK)));
        if (i % 3 != 0) {
            CHECK_OK(object_upload_chunk(u[1], bytes_of(block + (CHUNKS + i) * CHUNK, CHUNK)));
        }
    }
    CHECK_OK(object_upload_commit(&info, u[0]));
    CHECK_EQ(CHUNKS, info.chunks_count);
    bool found;
    struct object_info other;
    CHECK_OK(object_info(&other, &found, t, name, "two"));
    CHECK(!found); /* invisible until committed */
    check_object(t, "one", bytes_of(block, (size_t)CHUNKS * CHUNK));
    /* From where the first chunk lies, with the given nuid. */
    struct object_download *d = NULL;
    struct object_download_options o = {.bucket = name,
                                        .nuid = info.nuid,
                                        .first_sequence = info.first_sequence,
                                        .bytes = info.bytes,
                                        .sha256 = &info.sha256};
    CHECK_OK(object_download_open(&d, t, &o));
    size_t at = 0;
    for (bool end = false; !end;) {
        struct message m;
        CHECK_OK(object_download_next(&m, &end, d));
        if (!end) {
            CHECK_MEM(block + at, m.data.ptr, m.data.len);
            at += m.data.len;
        }
        message_done(&m);
    }
    CHECK_EQ((size_t)CHUNKS * CHUNK, at);
    object_download_close(&d);
    object_upload_close(&u[0]);
    object_upload_close(&u[1]); /* abandoned: its chunks are purged */
    snprintf(stream, sizeof stream, "OBJ_%s", name);
    CHECK_EQ(CHUNKS + 1, messages_in(t));
    mem_free(block);
    leave(t);
}

/* Reads what `o` names into `to`; OK only when it is what was put. */
static enum err read_whole(struct transport *t, const struct object_download_options *o,
                           struct bytes want) {
    AUTO(object_download_close) struct object_download *d = NULL;
    size_t at = 0;
    bool same = true;
    TRY(object_download_open(&d, t, o));
    for (bool end = false;;) {
        AUTO(message_done) struct message m = {0};
        TRY(object_download_next(&m, &end, d));
        if (end) {
            break;
        }
        CHECK(m.data.len <= want.len - at);
        same &= !memcmp(want.ptr + at, m.data.ptr, m.data.len);
        at += m.data.len;
    }
    CHECK(same && at == want.len);
    return OK;
}

/* Three uploads by turns, and readers that are told where the chunks of the first lie: over several connections, and wrongly. */
static void claim_placed(void) {
    enum { CHUNKS = 60, CHUNK = 3000, LINKS = 4 };
    struct transport *t = enter(), *also[LINKS - 1];
    struct object_upload *u[3] = {NULL, NULL, NULL};
    static const char *const names[] = {"one", "two", "three"};
    uint8_t *block = random_block((size_t)CHUNKS * CHUNK);
    struct object_info info, other;
    uint32_t steps[CHUNKS - 1];
    make_objects(t);
    for (size_t i = 0; i < COUNT_OF(also); i++) {
        also[i] = world_connect();
    }
    for (size_t i = 0; i < COUNT_OF(u); i++) {
        CHECK_OK(object_upload_open(&u[i], t, name, names[i]));
    }
    for (size_t i = 0; i < CHUNKS; i++) {
        CHECK_OK(object_upload_chunk(u[0], bytes_of(block + i * CHUNK, CHUNK)));
        for (size_t k = 0; k < i * i % 7; k++) {
            CHECK_OK(object_upload_chunk(u[1 + k % 2], bytes_of(block, 10)));
        }
    }
    CHECK_OK(object_upload_commit(&info, u[0]));
    CHECK_OK(object_upload_commit(&other, u[1]));
    CHECK_EQ(CHUNKS - 1, object_upload_steps(u[0]).count);
    memcpy(steps, object_upload_steps(u[0]).steps, sizeof steps);
    CHECK_OK(object_put_bytes(&other, t, name, "x", bytes_of(block, 1)));
    CHECK_EQ(1, steps[0]);
    CHECK_EQ(2, steps[1]);
    struct object_download_options o = {.bucket = name,
                                        .nuid = info.nuid,
                                        .first_sequence = info.first_sequence,
                                        .steps = {steps, CHUNKS - 1},
                                        .chunks_count = CHUNKS,
                                        .bytes = info.bytes,
                                        .sha256 = &info.sha256};
    struct bytes want = bytes_of(block, (size_t)CHUNKS * CHUNK);
    for (unsigned links = 1; links <= LINKS; links++) {
        o.also = also;
        o.also_count = links - 1;
        CHECK_OK(read_whole(t, &o, want));
    }
    o.chunks_count = 0;
    CHECK_OK(read_whole(t, &o, want));
    o.steps.count = 20; /* and then they would follow each other */
    CHECK_OK(read_whole(t, &o, want));
    o.steps.count = 0;
    CHECK_OK(read_whole(t, &o, want));
    o.steps.count = CHUNKS - 1;
    o.first_sequence = info.first_sequence + 100000; /* behind all there is */
    CHECK_OK(read_whole(t, &o, want));
    o.first_sequence = info.first_sequence;
    steps[30]--; /* where another's chunk lies */
    CHECK_OK(read_whole(t, &o, want));
    steps[30] += 1 + steps[31]; /* past one of its own */
    memmove(&steps[31], &steps[32], (CHUNKS - 1 - 32) * sizeof *steps);
    o.steps.count--;
    CHECK_ERR(E_FORMAT, read_whole(t, &o, want));
    for (size_t i = 0; i < COUNT_OF(u); i++) {
        object_upload_close(&u[i]);
    }
    for (size_t i = 0; i < COUNT_OF(also); i++) {
        transport_close(&also[i]);
    }
    mem_free(block);
    leave(t);
}

/* As when two submitters have the same new key: who reads the first one's object does not lose it. */
static void claim_object_overtaken(void) {
    struct object_upload *u[3] = {NULL, NULL, NULL};
    struct object_info first, second, other;
    bool found = false;
    struct transport *t = enter();
    make_objects(t);
    for (size_t i = 0; i < COUNT_OF(u); i++) {
        CHECK_OK(object_upload_open(&u[i], t, name, "key"));
        CHECK_OK(object_upload_chunk(u[i], text(i < 2 ? "the same" : "another")));
    }
    CHECK_OK(object_upload_commit(&first, u[0]));
    CHECK_OK(object_upload_commit(&second, u[1]));
    CHECK(!strcmp(first.nuid, second.nuid));
    object_upload_close(&u[1]);
    check_object(t, "key", text("the same"));
    CHECK_OK(object_info(&other, &found, t, name, "key"));
    CHECK(found && !strcmp(first.nuid, other.nuid));

    CHECK_OK(object_upload_commit(&other, u[2])); /* other bytes replace them all the same */
    check_object(t, "key", text("another"));
    CHECK_OK(object_put_bytes(&second, t, name, "key",
                              text("another"))); /* and so does a later upload, of the same ones */
    CHECK(strcmp(other.nuid, second.nuid) != 0);
    check_object(t, "key", text("another"));
    object_upload_close(&u[0]);
    object_upload_close(&u[2]);
    snprintf(stream, sizeof stream, "OBJ_%s", name);
    CHECK_EQ(2, messages_in(t)); /* no chunk of those before is left */
    leave(t);
}

static void claim_object_replaced(void) {
    struct transport *t = enter();
    struct object_info first, second, seen;
    bool found;
    make_objects(t);
    CHECK_OK(object_put_bytes(&first, t, name, "x", text("first")));
    CHECK_OK(object_put_bytes(&second, t, name, "x", text("second one")));
    CHECK(strcmp(first.nuid, second.nuid) != 0);
    check_object(t, "x", text("second one"));
    snprintf(stream, sizeof stream, "OBJ_%s", name);
    CHECK_EQ(2, messages_in(t));
    CHECK_OK(object_purge(t, name, first.nuid, "x")); /* the name belongs to the second now */
    check_object(t, "x", text("second one"));
    CHECK_OK(object_purge(t, name, second.nuid, "x"));
    CHECK_OK(object_info(&seen, &found, t, name, "x"));
    CHECK(!found);
    CHECK_EQ(1, messages_in(t)); /* the mark that it was deleted */
    CHECK_OK(object_put_bytes(&second, t, name, "x", text("third")));
    check_object(t, "x", text("third"));
    leave(t);
}

static void read_to_end(enum err *err, struct transport *t,
                        const struct object_download_options *o) {
    struct object_download *d = NULL;
    *err = object_download_open(&d, t, o);
    for (bool end = false; *err == OK && !end;) {
        struct message m = {0};
        *err = object_download_next(&m, &end, d);
        message_done(&m);
    }
    object_download_close(&d);
}

static void claim_object_damaged(void) {
    struct transport *t = enter();
    uint8_t *block = random_block(300000);
    struct object_upload *u = NULL;
    struct object_info info;
    enum err err;
    bool found;
    make_objects(t);
    CHECK_OK(object_upload_open(&u, t, name, "x"));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(object_upload_chunk(u, bytes_of(block + 100000 * i, 100000)));
    }
    CHECK_OK(object_upload_commit(&info, u));
    object_upload_close(&u);
    struct object_download_options o = {
        .bucket = name, .nuid = info.nuid, .bytes = info.bytes, .sha256 = &info.sha256};
    read_to_end(&err, t, &o);
    CHECK_OK(err);
    struct sha256 wrong = info.sha256;
    wrong.b[5] ^= 1;
    o.sha256 = &wrong;
    read_to_end(&err, t, &o);
    CHECK_ERR(E_FORMAT, err);
    CHECK_HAS(err_detail(), "SHA-256");
    o.sha256 = &info.sha256;
    o.bytes = 299999;
    read_to_end(&err, t, &o);
    CHECK_ERR(E_FORMAT, err);
    CHECK_HAS(err_detail(), "longer than the 299999 bytes");
    o.bytes = 300001;
    read_to_end(&err, t, &o);
    CHECK_ERR(E_FORMAT, err);
    CHECK_HAS(err_detail(), "ends after 300000 of 300001 bytes");
    snprintf(stream, sizeof stream, "OBJ_%s", name);
    CHECK_OK(stream_delete_message(&found, t, stream, info.first_sequence + 1));
    o.bytes = 300000;
    read_to_end(&err, t, &o);
    CHECK_ERR(E_FORMAT, err);
    CHECK_HAS(err_detail(), "ends after 200000 of 300000 bytes");
    o.nuid = "nobody";
    read_to_end(&err, t, &o);
    CHECK_ERR(E_FORMAT, err);
    mem_free(block);
    leave(t);
}

static void claim_object_quota(void) {
    struct transport *t = enter();
    uint8_t *block = random_block(600000);
    struct object_info info;
    CHECK_OK(object_bucket_ensure(
        t, &(struct object_bucket_config){.bucket = name, .bytes_max = 1000000}));
    CHECK_OK(object_put_bytes(&info, t, name, "fits", bytes_of(block, 600000)));
    CHECK_ERR(E_QUEUE, object_put_bytes(&info, t, name, "too much", bytes_of(block, 600000)));
    check_object(t, "fits", bytes_of(block, 600000));
    mem_free(block);
    leave(t);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"kv creates once and updates by revision", claim_kv},
        {"kv_list walks live keys under a filter", claim_kv_list},
        {"kv_list tells each of many keys once, in order", claim_kv_list_many},
        {"kv_list misses no key that changes meanwhile", claim_kv_list_of_what_changes},
        {"kv_watch sees what is, then every change", claim_kv_watch},
        {"kv entries expire and leases pass on", claim_kv_ttl},
        {"many requests at once, each with its own answer", claim_batch},
        {"a watch keeps up with thousands of changes, in order", claim_kv_watch_keeps_up},
        {"a watch knows when it has read what existed, also while all is written anew",
         claim_kv_watch_comes_to_an_end},
        {"objects of every size come back", claim_objects},
        {"interleaved uploads are read apart", claim_interleaved},
        {"chunks are found where they are said to lie, over several connections, and where they "
         "are not",
         claim_placed},
        {"an object that is put twice at once stays where it was read", claim_object_overtaken},
        {"objects are replaced and purged by nuid", claim_object_replaced},
        {"damaged objects are refused", claim_object_damaged},
        {"a bucket's quota refuses", claim_object_quota},
    };
    int code = check_main(argc, argv, claims, COUNT_OF(claims));
    world_end();
    return code;
}
