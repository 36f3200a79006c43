/* What a slot takes in ahead of a job's turn: expanded it is what the processor's decoder gives, and what that refuses is refused here, in
 * the same words. `--bench` times the way in and the expansion, from page-locked and from ordinary memory.
 */
#include "node/base/clock.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/groth16/prove.h"
#include "tests/kernel/device.h"

#include "cuda/inbox.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rig { /* an inbox for vectors of up to so many scalars, and a place behind it */
    struct inbox inbox;
    const struct curve *curve;
    void *place;
    size_t place_bytes;
    struct job_watch watch;
};

static void rig_open_for(struct rig *r, enum curve_id id, const uint64_t *counts,
                         unsigned counts_count) {
    size_t bytes = inbox_bytes(counts, counts_count),
           table_bytes = inbox_table_bytes(counts, counts_count);
    *r = (struct rig){.curve = curve_by_id(id), .place_bytes = (counts[0] + 3) * SCALAR_BYTES};
    device_of_test();
    char *memory = device_take(bytes + table_bytes);
    CHECK_OK(inbox_open(&r->inbox, id, memory, bytes, device_pinned(table_bytes), table_bytes));
    r->place = device_take(r->place_bytes);
}

static void rig_open(struct rig *r, enum curve_id id, uint64_t scalars_max) {
    rig_open_for(r, id, &scalars_max, 1);
}

static void rig_close(struct rig *r) {
    inbox_close(&r->inbox);
    device_done();
}

/* In, and out again as plain scalars. */
static enum err pass(uint8_t *out, struct rig *r, struct bytes bytes, uint64_t count, bool packed) {
    AUTO(scalars_close) struct scalars v = {0};
    struct bring b = {.vectors = &v, .vectors_count = 1, .name = "partition 7"};
    const struct inbox_place place = {r->place, r->place_bytes};
    TRY(scalars_open(&v, bytes, count, packed));
    TRY(inbox_bring(&r->inbox, &b, &r->watch));
    CHECK(b.ticket != 0 && b.bytes == bytes.len);
    CHECK_OK(inbox_take(&r->inbox, b.ticket, &place, 1, device_of_test()->stream));
    uint8_t behind[3 * SCALAR_BYTES];
    device_get(out, r->place, (size_t)count * SCALAR_BYTES);
    device_get(behind, (char *)r->place + count * SCALAR_BYTES, sizeof behind);
    for (size_t i = 0; i < sizeof behind; i++) {
        CHECK_EQ(0, behind[i]);
    }
    return OK;
}

struct section {
    struct scalar *values; /* owned */
    uint8_t *packed;       /* owned */
    size_t count, bytes;
};

static void section_done(struct section *s) {
    mem_free(s->values);
    mem_free(s->packed);
}

static void section_make(struct section *s, const struct curve *c, size_t count,
                         enum scalar_mix mix) {
    struct codec_survey survey;
    s->values = scalars_random(c, count, mix);
    s->count = count;
    struct bytes plain = bytes_of(s->values, count * SCALAR_BYTES);
    CHECK_OK(codec_survey_open(&survey, plain, c->r.w, NULL));
    s->bytes = (size_t)survey.bytes;
    CHECK_OK(mem_new_raw(&s->packed, s->bytes, 1));
    CHECK_OK(codec_encode((struct bytes_mut){s->packed, s->bytes}, &survey, plain, c->r.w, NULL));
    codec_survey_close(&survey);
}

static void claim_round_trip(void) {
    size_t large = device_of_test()->emulated ? 70001 : 300000;
    const size_t counts[] = {1, 15, 17, 300, large};
    for (unsigned id = 0; id < CURVES_COUNT; id++) {
        for (size_t i = 0; i < COUNT_OF(counts); i++) {
            struct rig r;
            rig_open(&r, curves_tested[id], counts[i]);
            AUTO(mem_free_ptr) uint8_t *got = NULL;
            CHECK_OK(mem_new_raw(&got, counts[i], SCALAR_BYTES));
            for (int mix = 0; mix < MIX_COUNT; mix++) {
                AUTO(section_done) struct section s = {0};
                if (counts[i] == large && device_of_test()->emulated && mix != MIX_WITNESS) {
                    continue;
                }
                section_make(&s, r.curve, counts[i], (enum scalar_mix)mix);
                CHECK_OK(pass(got, &r, bytes_of(s.packed, s.bytes), s.count, true));
                CHECK_MEM(s.values, got, s.count * SCALAR_BYTES);
                CHECK_OK(pass(got, &r, bytes_of(s.values, s.count * SCALAR_BYTES), s.count, false));
                CHECK_MEM(s.values, got, s.count * SCALAR_BYTES);
            }
            rig_close(&r);
        }
    }
}

/* --- Three vectors: a, b and the assignment --- */

enum { THREE = 3, PIECE = 1000 };

struct three {
    struct rig rig;
    struct section sections[THREE]; /* owned */
    bool packed[THREE];
    struct inbox_place places[THREE];
};

static struct bytes bytes_at(const struct three *t, unsigned i) {
    const struct section *s = &t->sections[i];
    return t->packed[i] ? bytes_of(s->packed, s->bytes)
                        : bytes_of(s->values, s->count * SCALAR_BYTES);
}

static void three_open(struct three *t, enum curve_id id, unsigned forms) {
    const uint64_t counts[THREE] = {device_of_test()->emulated ? 3001 : 200001, 2999, 4500};
    static const enum scalar_mix mixes[THREE] = {MIX_WITNESS, MIX_UNIFORM, MIX_BITS};
    *t = (struct three){.packed = {forms & 1, forms & 2, forms & 4}};
    rig_open_for(&t->rig, id, counts, THREE);
    for (unsigned i = 0; i < THREE; i++) {
        section_make(&t->sections[i], t->rig.curve, counts[i], mixes[i]);
        t->places[i].bytes = (counts[i] + i) * SCALAR_BYTES;
        t->places[i].to = device_take(t->places[i].bytes);
    }
}

static void three_close(struct three *t) {
    for (unsigned i = 0; i < THREE; i++) {
        section_done(&t->sections[i]);
    }
    rig_close(&t->rig);
}

/* The last pieces first. */
static enum err bring_in_pieces(struct three *t, struct bring *b) {
    TRY(inbox_begin(&t->rig.inbox, b, &t->rig.watch));
    for (unsigned i = THREE; i-- > 0;) {
        struct bytes all = bytes_at(t, i);
        for (size_t at = (all.len - 1) / PIECE * PIECE;; at -= PIECE) {
            size_t left = all.len - at;
            CHECK_OK(inbox_piece(&t->rig.inbox, i, at,
                                 bytes_of(all.ptr + at, left < PIECE ? left : PIECE)));
            if (at == 0) {
                break;
            }
        }
    }
    return inbox_end(&t->rig.inbox, b, true);
}

static enum err pass_three(struct three *t, bool in_pieces) {
    struct scalars v[THREE];
    struct bring b = {
        .vectors = v, .vectors_count = THREE, .name = "partition 9", .in_pieces = in_pieces};
    const struct device *d = device_of_test();
    for (unsigned i = 0; i < THREE; i++) {
        CHECK_OK(scalars_open(&v[i], bytes_at(t, i), t->sections[i].count, t->packed[i]));
    }
    CHECK(inbox_fits(&t->rig.inbox, v, THREE));
    struct fault fault = fault_of(in_pieces ? bring_in_pieces(t, &b)
                                            : inbox_bring(&t->rig.inbox, &b, &t->rig.watch));
    for (unsigned i = 0; i < THREE; i++) {
        scalars_close(&v[i]);
    }
    TRY(fault.code == OK ? OK : fault_raise(&fault));
    CHECK_OK(inbox_take(&t->rig.inbox, b.ticket, t->places, THREE, d->stream));
    for (unsigned i = 0; i < THREE; i++) {
        AUTO(mem_free_ptr) uint8_t *got = NULL;
        size_t bytes = t->sections[i].count * SCALAR_BYTES;
        CHECK_OK(mem_new(&got, t->places[i].bytes, 1));
        device_get(got, t->places[i].to, t->places[i].bytes);
        CHECK_MEM(t->sections[i].values, got, bytes);
        for (size_t k = bytes; k < t->places[i].bytes; k++) {
            CHECK_EQ(0, got[k]);
        }
    }
    return OK;
}

static void claim_three(void) {
    for (unsigned forms = 0; forms < 8; forms++) {
        struct three t;
        three_open(&t, curves_tested[forms % CURVES_COUNT], forms);
        CHECK_OK(pass_three(&t, false));
        CHECK_OK(pass_three(&t, true));
        three_close(&t);
    }
}

/* What does not add up is refused, and the inbox is free for the next. */
static void claim_pieces_refused(void) {
    struct three t;
    three_open(&t, CURVE_BN254, 1);
    uint8_t *value = (uint8_t *)&t.sections[1].values[77];
    uint8_t kept[SCALAR_BYTES];
    memcpy(kept, value, sizeof kept);
    memset(value, 0xff, SCALAR_BYTES);
    CHECK_ERR(E_RANGE, pass_three(&t, true));
    CHECK_HAS(err_detail(), "value 77 of vector 1");
    memcpy(value, kept, sizeof kept);
    struct scalars v = {.count = t.sections[0].count,
                        .bytes = bytes_of(NULL, t.sections[0].count * SCALAR_BYTES)};
    struct bring given_up = {
        .vectors = &v, .vectors_count = 1, .name = "given up", .in_pieces = true};
    CHECK_OK(inbox_begin(&t.rig.inbox, &given_up, &t.rig.watch));
    CHECK_OK(inbox_piece(&t.rig.inbox, 0, 32, bytes_of(t.sections[0].values, 3200)));
    CHECK_OK(inbox_end(&t.rig.inbox, &given_up, false));
    CHECK_OK(pass_three(&t, true));
    three_close(&t);
}

/* Both decoders over the same bytes: the same values, or the same refusal. */
static unsigned compare(struct rig *r, struct bytes section, uint64_t count) {
    AUTO(mem_free_ptr) uint8_t *want = NULL;
    AUTO(mem_free_ptr) uint8_t *got = NULL;
    CHECK_OK(mem_new(&want, count, SCALAR_BYTES));
    CHECK_OK(mem_new(&got, count, SCALAR_BYTES));
    struct fault host =
        fault_of(codec_decode((struct bytes_mut){want, (size_t)count * SCALAR_BYTES}, section,
                              count, r->curve->r.w, NULL));
    struct fault device = fault_of(pass(got, r, section, count, true));
    CHECK_EQ(host.code, device.code);
    if (host.code != OK) {
        CHECK_STR(host.detail, device.detail);
        return 1;
    }
    CHECK_MEM(want, got, (size_t)count * SCALAR_BYTES);
    return 0;
}

static void claim_damaged(void) {
    enum { COUNT = 500, ROUNDS = 400 };
    for (unsigned id = 0; id < CURVES_COUNT; id++) {
        unsigned refused = 0, taken = 0;
        struct rig r;
        rig_open(&r, curves_tested[id], COUNT);
        AUTO(section_done) struct section s = {0};
        section_make(&s, r.curve, COUNT, MIX_WITNESS);
        for (unsigned round = 0; round < ROUNDS; round++) {
            size_t at = round % 2
                            ? rng_below(check_rng(), s.bytes)
                            : rng_below(check_rng(), 48 + COUNT / 4); /* where it matters most */
            uint8_t was = s.packed[at];
            s.packed[at] ^= (uint8_t)(1u << rng_below(check_rng(), 8));
            unsigned n = compare(&r, bytes_of(s.packed, s.bytes), COUNT);
            refused += n;
            taken += !n;
            s.packed[at] = was;
        }
        CHECK(refused > ROUNDS / 4 && taken > 0);
        CHECK_EQ(0, compare(&r, bytes_of(s.packed, s.bytes), COUNT));
        memset(s.packed + s.bytes - SCALAR_BYTES, 0xff, SCALAR_BYTES); /* a full value */
        CHECK_EQ(1, compare(&r, bytes_of(s.packed, s.bytes), COUNT));
        rig_close(&r);
    }
}

static void claim_corpus(void) {
    char folder[600];
    unsigned files = 0;
    struct rig r;
    enum { COUNT_MAX = 200000 };
    const char *root = getenv("BELLOWS_ROOT");
    snprintf(folder, sizeof folder, "%.400s/tests/fuzz/corpus/packed", root ? root : ".");
    DIR *dir = opendir(folder);
    CHECK_MSG(dir != NULL, "no corpus in %s", folder);
    rig_open(&r, CURVE_BN254, COUNT_MAX);
    for (struct dirent *e; (e = readdir(dir));) {
        char path[900];
        struct bytes_mut file = {0};
        snprintf(path, sizeof path, "%s/%.200s", folder, e->d_name);
        if (e->d_name[0] == '.') {
            continue;
        }
        CHECK_OK(file_read_all(&file, path, 1 << 24));
        uint64_t count = file.len >= 16 ? load_u64le(file.ptr + 8) : 1;
        if (count > 0 && count <= COUNT_MAX) {
            compare(&r, bytes_of(file.ptr, file.len), count);
            for (size_t at = 0; at < file.len; at += 1 + file.len / 60) {
                file.ptr[at] ^= 0x81;
                compare(&r, bytes_of(file.ptr, file.len), count);
                file.ptr[at] ^= 0x81;
            }
        }
        mem_free(file.ptr);
        files++;
    }
    closedir(dir);
    CHECK(files >= 4);
    rig_close(&r);
}

static void claim_plain(void) {
    enum { COUNT = 1000 };
    struct rig r;
    uint8_t got[COUNT * SCALAR_BYTES];
    rig_open(&r, CURVE_BLS12_381, COUNT);
    AUTO(mem_free_ptr) struct scalar *values = scalars_random(r.curve, COUNT, MIX_UNIFORM);
    struct bytes plain = bytes_of(values, COUNT * SCALAR_BYTES);
    values[700] = r.curve->r; /* the least that is too large, and a larger one behind it */
    memset(&values[900], 0xff, SCALAR_BYTES);
    CHECK_ERR(E_RANGE, pass(got, &r, plain, COUNT, false));
    CHECK_HAS(err_detail(), "partition 7: value 700 of 1000 is not canonical");
    values[700].w[0]--;
    CHECK_ERR(E_RANGE, pass(got, &r, plain, COUNT, false));
    CHECK_HAS(err_detail(), "value 900 of");
    values[900] = values[700];
    CHECK_OK(pass(got, &r, plain, COUNT, false));
    CHECK_MEM(values, got, sizeof got);
    rig_close(&r);
}

struct second { /* who brings while the inbox is full */
    struct rig *rig;
    struct scalars vector;
    struct bring bring;
    struct job_watch watch;
    enum err code;
    _Atomic int done;
    pthread_t thread;
};

static void *bring_second(void *ctx) {
    struct second *s = ctx;
    s->code = inbox_bring(&s->rig->inbox, &s->bring, &s->watch);
    atomic_store(&s->done, 1);
    return NULL;
}

static void second_start(struct second *s, struct rig *r, const struct section *from) {
    *s = (struct second){.rig = r};
    CHECK_OK(scalars_open(&s->vector, bytes_of(from->packed, from->bytes), from->count, true));
    s->bring = (struct bring){.vectors = &s->vector, .vectors_count = 1, .name = "second"};
    CHECK_EQ(0, pthread_create(&s->thread, NULL, bring_second, s));
}

static void claim_one_at_a_time(void) {
    struct rig r;
    struct second second, third;
    rig_open(&r, CURVE_BN254, 100);
    const struct inbox_place to = {r.place, r.place_bytes};
    AUTO(section_done) struct section a = {0}, b = {0};
    section_make(&a, r.curve, 100, MIX_WITNESS);
    section_make(&b, r.curve, 90, MIX_UNIFORM);
    AUTO(scalars_close) struct scalars v = {0};
    CHECK_OK(scalars_open(&v, bytes_of(a.packed, a.bytes), a.count, true));
    struct bring first = {.vectors = &v, .vectors_count = 1, .name = "first"};
    CHECK_OK(inbox_bring(&r.inbox, &first, &r.watch));
    second_start(&second, &r, &b);
    second_start(&third, &r, &b);
    clock_sleep_ns(20000000);
    CHECK(!atomic_load(&second.done) && !atomic_load(&third.done));
    atomic_store(&third.watch.cancel, 1);
    pthread_join(third.thread, NULL);
    CHECK_EQ(E_CANCELLED, third.code);
    CHECK_OK(inbox_take(&r.inbox, first.ticket, &to, 1, device_of_test()->stream));
    pthread_join(second.thread, NULL);
    CHECK_OK(second.code);
    inbox_drop(&r.inbox, first.ticket); /* long gone: nothing happens to the second */
    uint8_t got[100 * SCALAR_BYTES];
    device_get(got, r.place, sizeof got);
    CHECK_MEM(a.values, got, sizeof got);
    inbox_drop(&r.inbox, second.bring.ticket);
    CHECK_OK(inbox_bring(&r.inbox, &first, &r.watch)); /* free again */
    inbox_drop(&r.inbox, first.ticket);
    scalars_close(&second.vector);
    scalars_close(&third.vector);
    rig_close(&r);
}

static void claim_too_large(void) {
    struct rig r;
    rig_open(&r, CURVE_BN254, 100);
    AUTO(section_done) struct section s = {0};
    section_make(&s, r.curve, 200, MIX_UNIFORM);
    uint8_t got[200 * SCALAR_BYTES];
    r.place_bytes = 0;
    CHECK_ERR(E_LIMIT, pass(got, &r, bytes_of(s.packed, s.bytes), s.count, true));
    rig_close(&r);
}

/* --- Benches --- */

static void bench_one(struct rig *r, const struct section *s, bool packed, bool pinned,
                      const char *name) {
    enum { RUNS = 11 };
    struct bytes bytes =
        packed ? bytes_of(s->packed, s->bytes) : bytes_of(s->values, s->count * SCALAR_BYTES);
    uint64_t upload_ns[RUNS], expand_ns[RUNS], all_ns[RUNS];
    struct gpu_event *from = NULL, *to = NULL;
    struct gpu_stream *stream = device_of_test()->stream;
    const struct inbox_place place = {r->place, r->place_bytes};
    uint8_t *copy = device_pinned(bytes.len);
    memcpy(copy, bytes.ptr, bytes.len);
    CHECK_OK(gpu_event_open(&from));
    CHECK_OK(gpu_event_open(&to));
    for (unsigned i = 0; i < RUNS; i++) {
        AUTO(scalars_close) struct scalars v = {0};
        uint64_t start_ns = clock_ns();
        CHECK_OK(scalars_open(&v, pinned ? bytes_of(copy, bytes.len) : bytes, s->count, packed));
        struct bring b = {.vectors = &v, .vectors_count = 1, .name = "bench"};
        CHECK_OK(inbox_bring(&r->inbox, &b, &r->watch));
        all_ns[i] = clock_ns() - start_ns;
        upload_ns[i] = b.upload_ns;
        CHECK_OK(gpu_event_record(from, stream));
        CHECK_OK(inbox_take(&r->inbox, b.ticket, &place, 1, stream));
        CHECK_OK(gpu_event_record(to, stream));
        CHECK_OK(gpu_event_wait(to));
        CHECK_OK(gpu_event_ns(&expand_ns[i], from, to));
    }
    double upload_ms = median_ms(upload_ns, RUNS), expand_ms = median_ms(expand_ns, RUNS);
    printf("{\"bench\": \"inbox\", \"row\": \"%s\", \"memory\": \"%s\", \"scalars\": %zu, "
           "\"bytes\": %zu, \"upload_ms\": %.3f, \"upload_gb_s\": %.1f, \"with_check_ms\": %.3f, "
           "\"expand_ms\": %.3f, \"expand_gb_s\": %.0f}\n",
           name, pinned ? "pinned" : "pageable", s->count, bytes.len, upload_ms,
           (double)bytes.len / upload_ms / 1e6, median_ms(all_ns, RUNS), expand_ms,
           (double)s->count * SCALAR_BYTES / expand_ms / 1e6);
    gpu_event_close(&from);
    gpu_event_close(&to);
}

static void bench(void) {
    size_t count = device_of_test()->emulated ? 1 << 12 : 1 << 24;
    static const struct {
        const char *name;
        enum scalar_mix mix;
        bool packed;
    } rows[] = {{"bits", MIX_BITS, true},
                {"witness-like", MIX_WITNESS, true},
                {"dense, packed", MIX_UNIFORM, true},
                {"dense, plain", MIX_UNIFORM, false}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct rig r;
        AUTO(section_done) struct section s = {0};
        rig_open(&r, CURVE_BLS12_381, count);
        section_make(&s, r.curve, count, rows[i].mix);
        bench_one(&r, &s, rows[i].packed, true, rows[i].name);
        bench_one(&r, &s, rows[i].packed, false, rows[i].name);
        rig_close(&r);
    }
}

int kernel_inbox(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"packed and plain vectors come out as they were", claim_round_trip},
        {"damaged sections are refused as by the processor, or mean the same", claim_damaged},
        {"so is the fuzzers' corpus", claim_corpus},
        {"the first plain value that is not below r is named", claim_plain},
        {"the next waits until the one before is taken or dropped", claim_one_at_a_time},
        {"what does not fit is E_LIMIT", claim_too_large},
        {"a, b and the assignment come out as they were, brought whole or in pieces in any order",
         claim_three},
        {"pieces that make no sound vectors are refused, and given up", claim_pieces_refused},
    };
    static const struct check_claim benches[] = {{"inbox", bench}};
    bool wants_bench = argc > 1 && !strcmp(argv[1], "--bench");
    return wants_bench ? check_main(1, argv, benches, COUNT_OF(benches))
                       : check_main(argc, argv, claims, COUNT_OF(claims));
}
