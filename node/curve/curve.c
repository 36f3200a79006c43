/* Finding a curve, and the few functions that need no arithmetic.
 *
 * Each curve has one table per body of the multiplication (curve_tmpl.c); which one a process uses is decided by the
 * processor once, and their answers are the same bytes. A curve is always the same pointer within a process.
 */
#include "node/curve/curve.h"
#include "node/base/rng.h"
#include "node/curve/curve_table.h"
#include "node/curve/word.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

struct curve_bodies {
    const struct curve *portable, *adx;
};

static const struct curve_bodies known[] = {
#ifdef __x86_64__
    {&bn254_curve_portable, &bn254_curve_adx},
    {&bls12_381_curve_portable, &bls12_381_curve_adx},
#else
    {&bn254_curve_portable, &bn254_curve_portable},
    {&bls12_381_curve_portable, &bls12_381_curve_portable},
#endif
};

/* BMI2 and ADX. Asking is slow on virtual machines, so the answer is kept. */
static bool processor_has_adx(void) {
#ifdef __x86_64__
    static atomic_int answer = -1; /* [atomic: any thread, all write the same] */
    int have = atomic_load_explicit(&answer, memory_order_relaxed);
    if (have < 0) {
        unsigned a = 0, b = 0, c = 0, d = 0;
        have = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 8 & 1) && (b >> 19 & 1);
        atomic_store_explicit(&answer, have, memory_order_relaxed);
    }
    return have;
#else
    return false;
#endif
}

static const struct curve *curve_at(size_t i) {
    return processor_has_adx() ? known[i].adx : known[i].portable;
}

const struct curve *curve_by_id(enum curve_id id) {
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        if (known[i].portable->id == id) {
            return curve_at(i);
        }
    }
    return NULL;
}

const struct curve *curve_by_name(const char *name) {
    static const struct {
        const char *name;
        enum curve_id id;
    } names[] = {
        {"bn128", CURVE_BN254},
        {"bn254", CURVE_BN254},
        {"altbn128", CURVE_BN254},
        {"bls12381", CURVE_BLS12_381},
    };
    char plain[16];
    size_t len = 0;
    for (const char *at = name; *at; at++) {
        bool upper = *at >= 'A' && *at <= 'Z';
        if (!upper && !(*at >= 'a' && *at <= 'z') && !(*at >= '0' && *at <= '9')) {
            continue;
        }
        if (len + 1 == sizeof plain) {
            return NULL;
        }
        plain[len++] = (char)(upper ? *at - 'A' + 'a' : *at);
    }
    plain[len] = 0;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!strcmp(plain, names[i].name)) {
            return curve_by_id(names[i].id);
        }
    }
    return NULL;
}

/* Are these little-endian bytes the integer of `words`? Zero bytes on top do not matter. */
static bool prime_is(struct bytes prime, const uint64_t *words, size_t bytes) {
    for (size_t i = 0; i < prime.len || i < bytes; i++) {
        uint8_t have = i < prime.len ? prime.ptr[i] : 0;
        uint8_t want = i < bytes ? (uint8_t)(words[i / 8] >> (8 * (i % 8))) : 0;
        if (have != want) {
            return false;
        }
    }
    return true;
}

/* The prime in hex, most significant digit first; very long ones are cut. */
static const char *prime_text(char out[160], struct bytes prime) {
    size_t at = 0, top = prime.len;
    while (top > 1 && prime.ptr[top - 1] == 0) {
        top--;
    }
    size_t shown = top > 64 ? 64 : top;
    for (size_t i = 0; i < shown; i++) {
        at += (size_t)snprintf(out + at, 160 - at, "%02x", prime.ptr[top - 1 - i]);
    }
    snprintf(out + at, 160 - at, "%s", top > shown ? "…" : "");
    return out;
}

enum err curve_by_scalar_prime(const struct curve **out, struct bytes r) {
    char text[160];
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        const struct curve *c = curve_at(i);
        if (prime_is(r, c->r.w, SCALAR_BYTES)) {
            *out = c;
            return OK;
        }
    }
    FAIL(E_CURVE, "the scalar prime 0x%s is neither BN254's nor BLS12-381's", prime_text(text, r));
}

enum err curve_by_primes(const struct curve **out, struct bytes q, struct bytes r) {
    char text[160];
    const struct curve *c;
    TRY(curve_by_scalar_prime(&c, r));
    REQUIRE(prime_is(q, c->p, c->fp_bytes), E_CURVE,
            "the scalar prime is that of %s, but its field prime is not 0x%s", c->name,
            prime_text(text, q));
    *out = c;
    return OK;
}

bool scalar_is_valid(const struct curve *c, const struct scalar *s) {
    return words_less(s->w, c->r.w, COUNT_OF(s->w));
}

bool scalar_is_zero(const struct scalar *s) {
    return words_are_zero(s->w, COUNT_OF(s->w));
}

enum err scalar_random(struct scalar *out, const struct curve *c) {
    unsigned spare = 256 - words_bits(c->r.w, COUNT_OF(c->r.w));
    struct scalar s;
    do { /* more than one draw in three is kept */
        TRY(rng_os(&s, sizeof s));
        s.w[3] &= UINT64_MAX >> spare;
    } while (!scalar_is_valid(c, &s) || scalar_is_zero(&s));
    *out = s;
    return OK;
}

bool g1_is_infinity(const struct g1 *p) {
    return words_are_zero(p->w, COUNT_OF(p->w));
}

bool g2_is_infinity(const struct g2 *p) {
    return words_are_zero(p->w, COUNT_OF(p->w));
}

void g1_load(struct g1 *out, const struct curve *c, const uint8_t *packed) {
    *out = (struct g1){{0}};
    memcpy(out->w, packed, c->g1_bytes);
}

void g2_load(struct g2 *out, const struct curve *c, const uint8_t *packed) {
    *out = (struct g2){{0}};
    memcpy(out->w, packed, c->g2_bytes);
}

void g1_store(uint8_t *packed, const struct curve *c, const struct g1 *p) {
    memcpy(packed, p->w, c->g1_bytes);
}

void g2_store(uint8_t *packed, const struct curve *c, const struct g2 *p) {
    memcpy(packed, p->w, c->g2_bytes);
}
