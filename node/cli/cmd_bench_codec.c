/* bellows bench codec: what jobs of four kinds weigh, as plain scalars, packed and on the wire, and how fast they unfold.
 *
 *     row                 sections                      baseline_bytes
 *     porep-witness       the assignment                128 a constraint: a, b, c and the assignment, as some provers are fed
 *     porep-evaluations   a, b and the assignment       the same
 *     sha256              the assignment                raw_bytes
 *     dense               the assignment                raw_bytes
 *
 * The circuits are those of `key synth`; what is timed is one thread's way from frames in memory to plain scalars: zstd,
 * the frames' checksums, unpacking with all its checks. decode_gb_s counts the plain bytes that come out.
 */
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/cli/bench.h"
#include "node/cli/commands.h"
#include "node/cli/key_maker.h"
#include "node/cli/screen.h"
#include "proto/body.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SECTIONS_MAX = 3, BASELINE_BYTES = 128, CODEC_LOG2_MAX = 24 };

static const struct row {
    const char *name;
    enum synth_shape shape;
    bool evaluations, porep;
} rows[] = {
    {"porep-witness", SYNTH_POREP, false, true},
    {"porep-evaluations", SYNTH_POREP, true, true},
    {"sha256", SYNTH_BITS, false, false},
    {"dense", SYNTH_DENSE, false, false},
};

struct codec_bench {
    struct synth synth;                       /* owned */
    struct scalar *evaluations[2];            /* owned: a, b */
    struct body_vector vectors[SECTIONS_MAX]; /* owned */
    struct bytes values[SECTIONS_MAX];        /* lent */
    struct frame_layout layout;
    uint8_t *wire; /* owned: the frames, one after the other */
    size_t wire_bytes, wire_cap;
    uint8_t *sections[SECTIONS_MAX], *plain; /* owned: where decoding writes */
    struct frame_codec *codec;               /* owned */
    uint64_t *ns;                            /* owned: runs */
};

static void codec_bench_done(struct codec_bench *b) {
    for (int i = 0; i < SECTIONS_MAX; i++) {
        body_vector_close(&b->vectors[i]);
        mem_free(b->sections[i]);
    }
    mem_free(b->evaluations[0]);
    mem_free(b->evaluations[1]);
    mem_free(b->wire);
    mem_free(b->plain);
    mem_free(b->ns);
    frame_codec_free(&b->codec);
    synth_done(&b->synth);
}

static enum err collect(void *ctx, struct bytes frame) {
    struct codec_bench *b = ctx;
    ASSERT(frame.len <= b->wire_cap - b->wire_bytes);
    memcpy(b->wire + b->wire_bytes, frame.ptr, frame.len);
    b->wire_bytes += frame.len;
    return OK;
}

/* The job's vectors in the order of their sections; the assignment last. */
static FALLIBLE make_vectors(uint32_t *count, struct codec_bench *b, const struct row *row,
                             struct pool *pool) {
    static const enum section_kind kinds[] = {SECTION_EVALUATIONS_A_RAW, SECTION_EVALUATIONS_B_RAW,
                                              SECTION_WITNESS_RAW};
    const struct setup_circuit *k = &b->synth.circuit;
    size_t domain = (size_t)setup_domain(k), evaluated = (size_t)synth_rows_count(&b->synth);
    uint32_t at = 0;
    if (row->evaluations) {
        TRY(mem_new_raw(&b->evaluations[0], domain, SCALAR_BYTES));
        TRY(mem_new_raw(&b->evaluations[1], domain, SCALAR_BYTES));
        synth_evaluate(b->evaluations[0], b->evaluations[1], &b->synth, pool);
        b->values[at++] = bytes_of(b->evaluations[0], evaluated * SCALAR_BYTES);
        b->values[at++] = bytes_of(b->evaluations[1], evaluated * SCALAR_BYTES);
    }
    b->values[at++] = bytes_of(b->synth.witness, (size_t)k->wires_count * SCALAR_BYTES);
    for (uint32_t i = 0; i < at; i++) {
        TRY(body_vector_open(&b->vectors[i], kinds[SECTIONS_MAX - at + i], b->values[i],
                             k->curve->r.w, pool));
    }
    *count = at;
    return OK;
}

static FALLIBLE make_wire(struct codec_bench *b, uint32_t count) {
    struct frame_section sections[SECTIONS_MAX];
    struct bytes data[SECTIONS_MAX];
    struct body_summary summary;
    size_t plain_most = 0;
    for (uint32_t i = 0; i < count; i++) {
        sections[i] = b->vectors[i].section;
        data[i] = b->vectors[i].data;
        plain_most = b->values[i].len > plain_most ? b->values[i].len : plain_most;
        TRY(mem_new_raw(&b->sections[i], data[i].len, 1));
    }
    TRY(frame_layout_init(&b->layout, sections, count, FRAME_RAW_BYTES_MAX, UINT64_MAX));
    b->wire_cap = (size_t)frame_layout_wire_bytes_max(&b->layout);
    TRY(mem_new_raw(&b->wire, b->wire_cap, 1));
    TRY(mem_new_raw(&b->plain, plain_most, 1));
    TRY(frame_codec_new(&b->codec));
    return body_write(&summary, &b->layout, data, collect, b);
}

/* Frames to sections, sections to plain scalars, all of them; what comes out must be what went in. */
static FALLIBLE decode(struct codec_bench *b, bool compare) {
    struct frame_stream stream;
    struct bytes chunk = bytes_of(b->wire, b->wire_bytes), message;
    frame_stream_init(&stream, &b->layout);
    for (uint32_t n = 0; n < b->layout.frames_count; n++) {
        struct frame f;
        bool lent;
        TRY(frame_stream_next(&message, &lent, &stream, &chunk));
        TRY(frame_parse(&f, &b->layout, message));
        TRY(frame_decode((struct bytes_mut){b->sections[f.section] + f.offset, f.raw_bytes},
                         b->codec, &f));
    }
    for (uint32_t i = 0; i < b->layout.sections_count; i++) {
        const struct frame_section *s = &b->layout.sections[i];
        const uint8_t *plain = b->sections[i];
        if (section_is_packed(s->kind)) {
            TRY(codec_decode((struct bytes_mut){b->plain, b->values[i].len},
                             bytes_of(b->sections[i], (size_t)s->raw_bytes), s->values_count,
                             b->synth.circuit.curve->r.w, NULL));
            plain = b->plain;
        }
        REQUIRE(!compare || !memcmp(plain, b->values[i].ptr, b->values[i].len), E_INTERNAL,
                "section %u does not unfold to what was packed", i);
    }
    return OK;
}

static FALLIBLE print_row(const struct codec_bench *b, const struct row *row,
                          const struct args *args, size_t runs) {
    AUTO(text_free) struct text t = {0};
    uint64_t raw = 0, packed = 0, baseline;
    for (uint32_t i = 0; i < b->layout.sections_count; i++) {
        raw += b->values[i].len;
        packed += b->layout.sections[i].raw_bytes;
    }
    baseline = row->porep ? (uint64_t)BASELINE_BYTES * b->synth.circuit.constraints_count : raw;
    bench_begin(&t, "codec", "cpu: 1 thread");
    text_addf(&t,
              ", \"row\": \"%s\", \"curve\": \"%s\", \"log2\": %" PRIu64
              ", \"encoding\": \"%s\", \"baseline_bytes\": %" PRIu64 ", \"raw_bytes\": %" PRIu64
              ", \"packed_bytes\": %" PRIu64 ", \"wire_bytes\": %zu, \"runs\": %zu, ",
              row->name, b->synth.circuit.curve->snarkjs_name, args_number(args, "log2", 0),
              section_is_packed(b->layout.sections[0].kind) ? "packed" : "raw", baseline, raw,
              packed, b->wire_bytes, runs);
    uint64_t median_ns = bench_row(&t, "decode_ns", b->ns, runs);
    text_addf(&t, ", \"decode_gb_s\": %.2f, \"baseline_to_wire\": %.1f}",
              (double)raw / (double)median_ns, (double)baseline / (double)b->wire_bytes);
    TRY(text_done(&t));
    puts(t.ptr);
    fflush(stdout);
    return OK;
}

static FALLIBLE run_row(const struct row *row, const struct args *args, struct pool *pool) {
    AUTO(codec_bench_done) struct codec_bench b = {0};
    size_t runs = args_number(args, "runs", 5), warmups = args_number(args, "warmups", 1);
    uint32_t count = 0;
    TRY(mem_new(&b.ns, runs, sizeof *b.ns));
    TRY(synth_init(&b.synth, curve_by_name(args_text(args, "curve")), row->shape,
                   (unsigned)args_number(args, "log2", 0), 1));
    TRY(make_vectors(&count, &b, row, pool));
    TRY(make_wire(&b, count));
    TRY(decode(&b, true));
    for (size_t run = 0; run < warmups + runs; run++) {
        uint64_t start_ns = clock_ns();
        TRY(decode(&b, false));
        if (run >= warmups) {
            b.ns[run - warmups] = clock_ns() - start_ns;
        }
    }
    return print_row(&b, row, args, runs);
}

static enum err run(struct args *args) {
    AUTO(pool_close) struct pool *pool = NULL;
    TRY(pool_open(&pool, 0));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        TRY(run_row(&rows[i], args, pool));
    }
    return OK;
}

static const struct option options[] = {
    OPTION_CURVE,
    {.kind = OPTION_NUMBER,
     .name = "log2",
     .value = "N",
     .fallback = "20",
     .least = SYNTH_POREP_LOG2_MIN,
     .most = CODEC_LOG2_MAX,
     .text = "Constraints fill a domain of 2^N."},
    OPTION_RUNS,
    OPTION_WARMUPS,
    OPTIONS_END,
};
const struct command cmd_bench_codec = {
    .name = "bench codec",
    .sentence = "weighs jobs plain, packed and on the wire, and times their decoding",
    .options = options,
    .notes = "Prints one JSON line a row: porep-witness, porep-evaluations, sha256, dense.",
    .run = run,
};
