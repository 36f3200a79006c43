/* Decimal text and bellman's bytes.
 *
 * Decimal: 19 digits fit a word, so text is cut into pieces of 19 and numbers are divided by 10^19.
 *
 * Bellman: big-endian coordinates, x before y, c1 before c0, flags in the top bits of the first byte.
 *
 *   bit   BLS12-381 (381 of 384 bits used)        BN254 (254 of 256 bits used, as in pairing_ce)
 *   7     compressed                              y is the larger root (compressed only)
 *   6     infinity: everything else is zero       the same
 *   5     y is the larger root (compressed only)  part of x
 *
 * A reader that ignored a flag would give one point several encodings, so each set bit must have its meaning.
 */
#include "node/curve/encode.h"
#include "node/curve/word.h"

#include <stdio.h>
#include <string.h>

static const uint64_t pieces_base = UINT64_C(10000000000000000000); /* 10^19 */
enum { PIECE_DIGITS = 19 };

/* An integer of `limbs` words below `limit`. */
static enum err decimal_read(uint64_t *out, const uint64_t *limit, size_t limbs, const char *digits,
                             const char *limit_name) {
    size_t len = 0;
    for (; digits[len]; len++) {
        REQUIRE(digits[len] >= '0' && digits[len] <= '9', E_FORMAT,
                "character %zu of a decimal number is 0x%02x, not a digit", len + 1,
                (unsigned char)digits[len]);
    }
    REQUIRE(len > 0, E_FORMAT, "a decimal number is empty");
    REQUIRE(len == 1 || digits[0] != '0', E_FORMAT,
            "a decimal number of %zu digits begins with a zero", len);
    REQUIRE(len < FP_DECIMAL_MAX, E_RANGE, "a number of %zu digits is not below the %s", len,
            limit_name);
    uint64_t sum[2 * FP_LIMBS_MAX] = {0}; /* 119 digits fit in 396 bits */
    for (size_t i = 0; i < len; i++) {
        uint64_t carry = (uint64_t)(digits[i] - '0');
        for (size_t k = 0; k < COUNT_OF(sum); k++) {
            word2 t = (word2)sum[k] * 10 + carry;
            sum[k] = (uint64_t)t;
            carry = (uint64_t)(t >> 64);
        }
    }
    REQUIRE(words_are_zero(sum + limbs, COUNT_OF(sum) - limbs) && words_less(sum, limit, limbs),
            E_RANGE, "the number %.24s… of %zu digits is not below the %s", digits, len,
            limit_name);
    memcpy(out, sum, 8 * limbs);
    return OK;
}

static void decimal_write(char out[FP_DECIMAL_MAX], const uint64_t *in, size_t limbs) {
    uint64_t rest[FP_LIMBS_MAX], piece[2 * FP_LIMBS_MAX];
    size_t count = 0;
    memcpy(rest, in, 8 * limbs);
    do {
        uint64_t remainder = 0;
        for (size_t i = limbs; i-- > 0;) {
            word2 t = ((word2)remainder << 64) | rest[i];
            rest[i] = (uint64_t)(t / pieces_base);
            remainder = (uint64_t)(t % pieces_base);
        }
        piece[count++] = remainder;
    } while (!words_are_zero(rest, limbs));
    size_t at = (size_t)snprintf(out, FP_DECIMAL_MAX, "%llu", (unsigned long long)piece[--count]);
    while (count-- > 0) {
        at += (size_t)snprintf(out + at, FP_DECIMAL_MAX - at, "%0*llu", PIECE_DIGITS,
                               (unsigned long long)piece[count]);
    }
}

enum err scalar_from_decimal(struct scalar *out, const struct curve *c, const char *digits) {
    return decimal_read(out->w, c->r.w, COUNT_OF(out->w), digits, "group order r");
}

void scalar_to_decimal(char out[FP_DECIMAL_MAX], const struct scalar *s) {
    decimal_write(out, s->w, COUNT_OF(s->w));
}

enum err fp_from_decimal(uint64_t *out_mont, const struct curve *c, const char *digits) {
    uint64_t plain[FP_LIMBS_MAX];
    TRY(decimal_read(plain, c->p, c->fp_bytes / 8, digits, "field modulus"));
    bool below_p = c->fp_from_int(out_mont, plain);
    ASSERT(below_p);
    return OK;
}

void fp_to_decimal(char out[FP_DECIMAL_MAX], const struct curve *c, const uint64_t *in_mont) {
    uint64_t plain[FP_LIMBS_MAX];
    c->fp_to_int(plain, in_mont);
    decimal_write(out, plain, c->fp_bytes / 8);
}

/* --- Bellman. --- */

struct flags {
    uint8_t compressed, infinity, larger; /* masks; 0: this curve has no room for it */
};

static struct flags flags_of(const struct curve *c) {
    return c->id == CURVE_BLS12_381 ? (struct flags){0x80, 0x40, 0x20}
                                    : (struct flags){0, 0x40, 0x80};
}

size_t bellman_point_bytes(const struct curve *c, enum point_group g, bool compressed) {
    size_t whole = curve_point_bytes(c, g);
    return compressed ? whole / 2 : whole;
}

/* What the first byte says, and whether it may. */
struct head {
    bool infinity, larger;
    uint8_t mask; /* the flag bits, to be taken off */
};

static enum err head_read(struct head *out, const struct curve *c, struct bytes in,
                          bool compressed) {
    struct flags f = flags_of(c);
    uint8_t first = in.ptr[0];
    struct head h = {first & f.infinity, first & f.larger,
                     (uint8_t)(f.compressed | f.infinity | f.larger)};
    if (f.compressed) {
        bool says = first & f.compressed;
        REQUIRE(says == compressed, E_FORMAT,
                "the first byte 0x%02x marks a point as %s where %s ones are expected", first,
                says ? "compressed" : "uncompressed", says ? "uncompressed" : "compressed");
    }
    REQUIRE(!h.larger || (compressed && !h.infinity), E_FORMAT,
            "the first byte 0x%02x of a point has a sign bit where none belongs", first);
    if (h.infinity) {
        uint8_t any = first & (uint8_t)~h.mask;
        for (size_t i = 1; i < in.len; i++) {
            any |= in.ptr[i];
        }
        REQUIRE(any == 0, E_FORMAT, "a point marked as infinity has other bits set");
    }
    *out = h;
    return OK;
}

/* `count` big-endian coordinates to Montgomery words; pairs are swapped for G2 (c1 comes first in the bytes). */
static enum err coordinates_read(uint64_t *out, const struct curve *c, const uint8_t *in,
                                 size_t count, enum point_group g, uint8_t mask) {
    size_t limbs = c->fp_bytes / 8;
    for (size_t k = 0; k < count; k++) {
        uint64_t plain[FP_LIMBS_MAX] = {0};
        for (size_t i = 0; i < c->fp_bytes; i++) {
            uint8_t byte = in[k * c->fp_bytes + i];
            if (k == 0 && i == 0) {
                byte &= (uint8_t)~mask;
            }
            size_t from_low = c->fp_bytes - 1 - i;
            plain[from_low / 8] |= (uint64_t)byte << (8 * (from_low % 8));
        }
        size_t place = g == GROUP_G2 ? k ^ 1 : k;
        REQUIRE(c->fp_from_int(out + place * limbs, plain), E_RANGE,
                "coordinate %zu of a point is not below the field modulus", k + 1);
    }
    return OK;
}

static void coordinates_write(uint8_t *out, const struct curve *c, const uint64_t *in, size_t count,
                              enum point_group g) {
    size_t limbs = c->fp_bytes / 8;
    for (size_t k = 0; k < count; k++) {
        uint64_t plain[FP_LIMBS_MAX];
        size_t place = g == GROUP_G2 ? k ^ 1 : k;
        c->fp_to_int(plain, in + place * limbs);
        for (size_t i = 0; i < c->fp_bytes; i++) {
            size_t from_low = c->fp_bytes - 1 - i;
            out[k * c->fp_bytes + i] = (uint8_t)(plain[from_low / 8] >> (8 * (from_low % 8)));
        }
    }
}

/* Length and head; *coordinates of them follow. */
static enum err point_begin(struct head *head, size_t *coordinates, const struct curve *c,
                            enum point_group g, struct bytes in, bool compressed) {
    size_t want = bellman_point_bytes(c, g, compressed);
    REQUIRE(in.len == want, E_FORMAT, "a point has %zu bytes, want %zu", in.len, want);
    TRY(head_read(head, c, in, compressed));
    *coordinates = want / c->fp_bytes;
    return OK;
}

/* Zero coordinates are infinity in our layout, but here infinity has a flag: 0, 0 without it is off the curve. */
static enum err zero_point(void) {
    FAIL(E_CURVE, "a point (0, 0) is not on the curve; infinity has a flag of its own");
}

enum err bellman_g1_read(struct g1 *out, const struct curve *c, struct bytes in, bool compressed,
                         bool subgroup) {
    struct head head;
    size_t coordinates, bad_idx;
    TRY(point_begin(&head, &coordinates, c, GROUP_G1, in, compressed));
    struct g1 p = {{0}};
    if (head.infinity) {
        *out = p;
        return OK;
    }
    TRY(coordinates_read(p.w, c, in.ptr, coordinates, GROUP_G1, head.mask));
    if (compressed) {
        uint64_t x[FP_LIMBS_MAX];
        memcpy(x, p.w, sizeof x);
        REQUIRE(c->g1_from_x(&p, x, head.larger), E_CURVE,
                "no point of G1's curve has this x coordinate");
    } else if (g1_is_infinity(&p)) {
        return zero_point();
    }
    TRY(c->g1_check(&bad_idx, (const uint8_t *)p.w, 1, subgroup));
    *out = p;
    return OK;
}

enum err bellman_g2_read(struct g2 *out, const struct curve *c, struct bytes in, bool compressed,
                         bool subgroup) {
    struct head head;
    size_t coordinates, bad_idx;
    TRY(point_begin(&head, &coordinates, c, GROUP_G2, in, compressed));
    struct g2 p = {{0}};
    if (head.infinity) {
        *out = p;
        return OK;
    }
    TRY(coordinates_read(p.w, c, in.ptr, coordinates, GROUP_G2, head.mask));
    if (compressed) {
        uint64_t x[2 * FP_LIMBS_MAX];
        memcpy(x, p.w, sizeof x);
        REQUIRE(c->g2_from_x(&p, x, head.larger), E_CURVE,
                "no point of G2's curve has this x coordinate");
    } else if (g2_is_infinity(&p)) {
        return zero_point();
    }
    TRY(c->g2_check(&bad_idx, (const uint8_t *)p.w, 1, subgroup));
    *out = p;
    return OK;
}

void bellman_g1_write(uint8_t *out, const struct curve *c, const struct g1 *p, bool compressed) {
    struct flags f = flags_of(c);
    size_t len = bellman_point_bytes(c, GROUP_G1, compressed);
    memset(out, 0, len);
    if (g1_is_infinity(p)) {
        out[0] = f.infinity;
    } else {
        coordinates_write(out, c, p->w, len / c->fp_bytes, GROUP_G1);
        out[0] |= compressed && c->g1_y_is_larger(p) ? f.larger : 0;
    }
    out[0] |= compressed ? f.compressed : 0;
}

void bellman_g2_write(uint8_t *out, const struct curve *c, const struct g2 *p, bool compressed) {
    struct flags f = flags_of(c);
    size_t len = bellman_point_bytes(c, GROUP_G2, compressed);
    memset(out, 0, len);
    if (g2_is_infinity(p)) {
        out[0] = f.infinity;
    } else {
        coordinates_write(out, c, p->w, len / c->fp_bytes, GROUP_G2);
        out[0] |= compressed && c->g2_y_is_larger(p) ? f.larger : 0;
    }
    out[0] |= compressed ? f.compressed : 0;
}
