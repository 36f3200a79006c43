/* Sweeps: damage without thinking. Each reader gets its good file with every byte of the headers flipped, every length
 * and count set to numbers that parsers trip over, and cut at every section border. It may take what is still good and
 * must refuse the rest: in time, without crashing, without leaking, with the file's name in the sentence.
 */
#include "tests/format/damaged.h"

#include "node/base/clock.h"
#include "node/base/mem.h"

#include <string.h>
#include <sys/resource.h>

static const struct subject {
    const char *file;
    enum reads reads;
    const char *only_curve; /* NULL: both */
} subjects[] = {
    {"base/circuit.zkey", READS_KEY, NULL},
    {"allpublic/circuit.zkey", READS_KEY, NULL},
    {"min/circuit.zkey", READS_KEY, NULL},
    {"base/witness.wtns", READS_WITNESS, NULL},
    {"base/circuit.r1cs", READS_R1CS, NULL},
    {"base/circuit.params", READS_KEY, "bls12381"},
    {"base/circuit.vk", READS_VKEY_BELLMAN, "bls12381"},
    {"base/verification_key.json", READS_VKEY_JSON, NULL},
};

#define FOR_EACH_SUBJECT(curve, s)                                                                 \
    for (size_t curve##_i = 0; curve##_i < CURVES_COUNT; curve##_i++)                              \
        for (const struct subject *s = subjects; s < subjects + COUNT_OF(subjects); s++)           \
            for (const char *curve = curve_dirs[curve##_i];                                        \
                 curve && (!s->only_curve || !strcmp(s->only_curve, curve)); curve = NULL)

/* Taken or refused, but properly. Returns what it was. */
static enum err survives(const struct damaged *d, enum reads reads, const char *what, size_t at) {
    long blocks = mem_live_blocks();
    uint64_t start = clock_ns();
    enum err e = reader_says(d, reads);
    uint64_t took = clock_ns() - start;
    CHECK_MSG(took < REFUSAL_NS_MAX, "%s, %s at %zu: took %llu ns", d->name, what, at,
              (unsigned long long)took);
    CHECK_MSG(mem_live_blocks() == blocks, "%s, %s at %zu: leaks", d->name, what, at);
    enum err_class cls = err_class(e);
    CHECK_MSG(cls == CLASS_OK || cls == CLASS_REJECT || e == E_LIMIT, "%s, %s at %zu: %s (%s)",
              d->name, what, at, err_name(e), err_detail());
    CHECK_MSG(e == OK || strstr(err_detail(), d->name), "%s, %s at %zu: no name in \"%s\"", d->name,
              what, at, err_detail());
    return e;
}

static void flip_byte(const char *curve, const struct subject *s, size_t at, uint8_t mask) {
    struct damaged d = damaged_case(curve, s->file);
    d.ptr[at] ^= mask;
    survives(&d, s->reads, "flipped", at);
    damaged_free(&d);
}

static void claim_every_byte_flipped(void) {
    static const uint8_t masks[] = {0x01, 0x80, 0xff};
    FOR_EACH_SUBJECT(curve, s) {
        struct damaged whole = damaged_case(curve, s->file);
        size_t len = whole.len;
        damaged_free(&whole);
        /* All of a small file; of a larger one the headers closely and the rest in steps. */
        for (size_t at = 0; at < len; at += at < 300 ? 1 : 7) {
            flip_byte(curve, s, at, masks[at % COUNT_OF(masks)]);
        }
    }
}

static void claim_every_header_bit_flipped(void) {
    /* zkey: table header, section 1, and section 2 up to the points. */
    for (size_t c = 0; c < CURVES_COUNT; c++) {
        struct damaged whole = damaged_case(curve_dirs[c], subjects[0].file);
        size_t end = zkey_domain_place(&whole) + 4;
        damaged_free(&whole);
        for (size_t at = 0; at < end; at++) {
            for (unsigned bit = 0; bit < 8; bit++) {
                struct damaged d = damaged_case(curve_dirs[c], subjects[0].file);
                d.ptr[at] ^= (uint8_t)(1u << bit);
                CHECK_MSG(survives(&d, READS_KEY, "bit", at) != OK, "byte %zu bit %u was taken", at,
                          bit);
                damaged_free(&d);
            }
        }
    }
}

/* Numbers that trip parsers, in both widths and byte orders, at every place of the file. */
static void claim_numbers_that_trip(void) {
    static const uint64_t numbers[] = {0,          1,          0x7fffffff, 0x80000000, 0xffffffff,
                                       0xfffffff0, UINT64_MAX, INT64_MAX,  1ull << 63, 1ull << 60};
    FOR_EACH_SUBJECT(curve, s) {
        struct damaged whole = damaged_case(curve, s->file);
        size_t len = whole.len;
        damaged_free(&whole);
        for (size_t at = 0; at + 8 <= len; at += at < 180 ? 4 : 92) {
            for (size_t n = 0; n < COUNT_OF(numbers); n++) {
                struct damaged d = damaged_case(curve, s->file);
                damaged_u32(&d, at, (uint32_t)numbers[n]);
                survives(&d, s->reads, "u32", at);
                damaged_u64(&d, at, numbers[n]);
                survives(&d, s->reads, "u64", at);
                damaged_free(&d);
            }
        }
    }
}

/* Lengths of sections: zero, one less and more, what wraps to each border, the largest. */
static void claim_section_lengths(void) {
    for (size_t c = 0; c < CURVES_COUNT; c++) {
        for (size_t k = 0; k < 5; k++) { /* the containers */
            const struct subject *s = &subjects[k];
            struct damaged whole = damaged_case(curve_dirs[c], s->file);
            for (size_t at = 12; at + 12 <= whole.len; at += 12 + load_u64le(whole.ptr + at + 4)) {
                uint64_t length = load_u64le(whole.ptr + at + 4), body = at + 12;
                const uint64_t lengths[] = {
                    0,
                    1,
                    length - 1,
                    length + 1,
                    length * 2 + 1,
                    whole.len - body + 1,
                    0 - body,
                    0 - body + 12,
                    0 - (uint64_t)12,
                    1ull << 32,
                    (1ull << 32) + length,
                    1ull << 63,
                    UINT64_MAX,
                };
                for (size_t i = 0; i < COUNT_OF(lengths); i++) {
                    if (lengths[i] == length) {
                        continue;
                    }
                    struct damaged d = damaged_case(curve_dirs[c], s->file);
                    damaged_u64(&d, at + 4, lengths[i]);
                    CHECK_MSG(survives(&d, s->reads, "length", at) != OK,
                              "%s: length %llu at %zu was taken", s->file,
                              (unsigned long long)lengths[i], at);
                    damaged_free(&d);
                }
            }
            damaged_free(&whole);
        }
    }
}

static void cut_at(const char *curve, const struct subject *s, size_t len) {
    struct damaged d = damaged_case(curve, s->file);
    if (len > 0 && len < d.len) {
        damaged_cut(&d, len);
        CHECK_MSG(survives(&d, s->reads, "cut", len) != OK, "%s cut at %zu was taken", s->file,
                  len);
    }
    damaged_free(&d);
}

static void claim_cut_at_borders(void) {
    for (size_t c = 0; c < CURVES_COUNT; c++) {
        for (size_t k = 0; k < 5; k++) {
            const struct subject *s = &subjects[k];
            struct damaged whole = damaged_case(curve_dirs[c], s->file);
            for (size_t at = 12; at + 12 <= whole.len; at += 12 + load_u64le(whole.ptr + at + 4)) {
                const size_t borders[] = {at, at + 4, at + 12};
                for (size_t i = 0; i < COUNT_OF(borders); i++) {
                    cut_at(curve_dirs[c], s, borders[i] - 1);
                    cut_at(curve_dirs[c], s, borders[i]);
                    cut_at(curve_dirs[c], s, borders[i] + 1);
                }
            }
            damaged_free(&whole);
        }
    }
}

static void claim_cut_in_steps(void) {
    FOR_EACH_SUBJECT(curve, s) {
        struct damaged whole = damaged_case(curve, s->file);
        size_t len =
            whole.len - (s->reads == READS_VKEY_JSON ? 2 : 1); /* a last newline is spare */
        damaged_free(&whole);
        for (size_t at = 1; at < len; at += at < 256 ? 1 : 11) {
            cut_at(curve, s, at);
        }
        cut_at(curve, s, len);
    }
}

static void claim_random_damage(void) {
    struct rng *rng = check_rng();
    FOR_EACH_SUBJECT(curve, s) {
        for (unsigned round = 0; round < 150; round++) {
            struct damaged d = damaged_case(curve, s->file);
            uint64_t hits = 1 + rng_below(rng, 8);
            for (uint64_t i = 0; i < hits; i++) {
                d.ptr[rng_below(rng, d.len)] = (uint8_t)rng_u64(rng);
            }
            if (rng_below(rng, 3) == 0) {
                damaged_cut(&d, 1 + rng_below(rng, d.len));
            }
            survives(&d, s->reads, "random", round);
            damaged_free(&d);
        }
    }
}

/* All of the above declared terabytes; none of it may have been believed. */
static void claim_memory_stays_small(void) {
    struct rusage usage;
    CHECK_EQ(0, getrusage(RUSAGE_SELF, &usage));
#ifdef CHECK_SANITIZED
    check_skip("the sanitizer's own memory counts");
#else
    CHECK_MSG(usage.ru_maxrss < 100 * 1024, "peak memory %ld KiB", usage.ru_maxrss);
#endif
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"sweep: any byte flipped is survived", claim_every_byte_flipped},
        {"sweep: any bit flipped in a zkey's counts and primes is refused",
         claim_every_header_bit_flipped},
        {"sweep: numbers that trip parsers, anywhere, are survived", claim_numbers_that_trip},
        {"sweep: any wrong section length is refused (A03)", claim_section_lengths},
        {"sweep: a cut at any section border is refused (A03)", claim_cut_at_borders},
        {"sweep: a cut anywhere is refused (A03)", claim_cut_in_steps},
        {"sweep: random damage is survived", claim_random_damage},
        {"sweep: none of it took more than 100 MB (A15)", claim_memory_stays_small},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
