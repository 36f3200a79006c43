/* Pairings of both curves and both bodies of the multiplication, against values that ffjavascript 0.3.1 and snarkjs
 * wrote (tests/vectors) and the published EIP-197 cases. */
#include "node/base/json.h"
#include "node/base/mem.h"
#include "node/curve/curve_table.h"
#include "node/curve/encode.h"
#include "node/curve/json.h"
#include "tests/check/check.h"
#include "tests/unit/curve/tables.h"

#include <stdio.h>
#include <string.h>

static const cJSON *at(const cJSON *array, int i) {
    const cJSON *item = cJSON_GetArrayItem(array, i);
    CHECK(item != NULL);
    return item;
}

/* 2 × 3 × 2 decimal texts. */
static void read_gt(struct gt *out, const struct curve *c, const cJSON *json) {
    *out = (struct gt){{0}};
    for (int i = 0; i < 12; i++) {
        const cJSON *digits = at(at(at(json, i / 6), i / 2 % 3), i % 2);
        CHECK(cJSON_IsString(digits));
        CHECK_OK(fp_from_decimal(out->w + (size_t)i * (c->fp_bytes / 8), c, digits->valuestring));
    }
}

static cJSON *read_vectors(const char *name) {
    cJSON *json = NULL;
    CHECK_OK(json_read(&json, check_vectors(name)));
    return json;
}

static void check_pairing_file(const struct curve *c) {
    char name[64];
    snprintf(name, sizeof name, "curve/%s-pairings.json", c->name);
    cJSON *json = read_vectors(name);
    int count = cJSON_GetArraySize(json);
    CHECK_EQ(4, count);
    for (int i = 0; i < count; i++) {
        const cJSON *row = at(json, i);
        struct g1 p, p_want;
        struct g2 q, q_want;
        struct gt want, got;
        struct scalar a, b;
        CHECK_OK(scalar_from_decimal(&a, c, cJSON_GetObjectItem(row, "a")->valuestring));
        CHECK_OK(scalar_from_decimal(&b, c, cJSON_GetObjectItem(row, "b")->valuestring));
        CHECK_OK(json_g1_read(&p_want, c, cJSON_GetObjectItem(row, "p"), "p"));
        CHECK_OK(json_g2_read(&q_want, c, cJSON_GetObjectItem(row, "q"), "q"));
        c->g1_mul(&p, &c->g1_generator, &a);
        c->g2_mul(&q, &c->g2_generator, &b);
        CHECK_MEM(&p_want, &p, sizeof p);
        CHECK_MEM(&q_want, &q, sizeof q);
        read_gt(&want, c, cJSON_GetObjectItem(row, "e"));
        c->pairing(&got, &p, &q);
        CHECK_MEM(&want, &got, sizeof got);
    }
    json_free(&json);
}

static void claim_ffjavascript(void) {
    for_each_table(check_pairing_file);
}

static void check_alphabeta(const struct curve *c) {
    static const char *const cases[] = {"mul", "base", "base-other"};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char name[96];
        snprintf(name, sizeof name, "%s/%s/verification_key.json", c->snarkjs_name, cases[i]);
        cJSON *json = read_vectors(name);
        struct g1 alpha;
        struct g2 beta;
        struct gt want, got;
        CHECK_OK(json_g1_read(&alpha, c, cJSON_GetObjectItem(json, "vk_alpha_1"), "alpha"));
        CHECK_OK(json_g2_read(&beta, c, cJSON_GetObjectItem(json, "vk_beta_2"), "beta"));
        read_gt(&want, c, cJSON_GetObjectItem(json, "vk_alphabeta_12"));
        c->pairing(&got, &alpha, &beta);
        CHECK_MEM(&want, &got, sizeof got);
        json_free(&json);
    }
}

static void claim_alphabeta(void) {
    for_each_table(check_alphabeta);
}

/* e(aP, bQ)·e(-abP, Q) = 1, and not with any other product. */
static void check_bilinear(const struct curve *c) {
    for (int i = 0; i < 3; i++) {
        struct scalar a = scalar_some(c), b = scalar_some(c), ab;
        struct g1 p[2], base;
        struct g2 q[2];
        c->g1_mul(&base, &c->g1_generator, &a);
        c->g2_mul(&q[0], &c->g2_generator, &b);
        p[0] = base;
        c->scalar_mul(&ab, &a, &b);
        c->g1_mul(&p[1], &c->g1_generator, &ab);
        q[1] = c->g2_generator;
        CHECK(!c->pairing_is_one(p, q, 2));
        c->g1_neg(&p[1], &p[1]);
        CHECK(c->pairing_is_one(p, q, 2));
        c->g1_add(&p[1], &p[1], &c->g1_generator);
        CHECK(!c->pairing_is_one(p, q, 2));
        struct gt x, y;
        c->pairing(&x, &p[0], &q[0]);
        c->g1_neg(&p[1], &p[1]);
        c->g1_add(&p[1], &p[1], &c->g1_generator);
        c->pairing(&y, &p[1], &q[1]);
        CHECK_MEM(&x, &y, sizeof x);
    }
}

static void claim_bilinear(void) {
    for_each_table(check_bilinear);
}

static void check_infinity(const struct curve *c) {
    struct g1 p[2] = {c->g1_generator, {{0}}};
    struct g2 q[2] = {{{0}}, c->g2_generator};
    struct gt one, got;
    CHECK(c->pairing_is_one(NULL, NULL, 0));
    CHECK(c->pairing_is_one(p, q, 1));
    CHECK(c->pairing_is_one(p, q, 2));
    CHECK(!c->pairing_is_one(&c->g1_generator, &c->g2_generator, 1));
    c->pairing(&one, &p[1], &q[1]);
    c->pairing(&got, &p[0], &q[0]);
    CHECK_MEM(&one, &got, sizeof one);
    uint64_t first[FP_LIMBS_MAX] = {0}, unit[FP_LIMBS_MAX] = {1};
    CHECK(c->fp_from_int(first, unit));
    CHECK_MEM(first, one.w, c->fp_bytes);
    for (size_t i = c->fp_bytes / 8; i < COUNT_OF(one.w); i++) {
        CHECK_EQ(0, one.w[i]);
    }
}

static void claim_infinity(void) {
    for_each_table(check_infinity);
}

/* Σ a_i b_i = 0 over many pairs, more than share one loop, with an infinity among them. */
static void check_many(const struct curve *c) {
    enum { PAIRS = 35 };
    static struct g1 p[PAIRS];
    static struct g2 q[PAIRS];
    struct scalar sum = {{0}}, zero = {{0}};
    for (int i = 0; i + 1 < PAIRS; i++) {
        struct scalar a = scalar_some(c), b = scalar_some(c), ab;
        if (i == 7) {
            a = zero;
        }
        c->g1_mul(&p[i], &c->g1_generator, &a);
        c->g2_mul(&q[i], &c->g2_generator, &b);
        c->scalar_mul(&ab, &a, &b);
        c->scalar_add(&sum, &sum, &ab);
    }
    c->scalar_sub(&sum, &zero, &sum);
    c->g1_mul(&p[PAIRS - 1], &c->g1_generator, &sum);
    q[PAIRS - 1] = c->g2_generator;
    for (size_t count = 1; count < PAIRS; count++) {
        CHECK(count % 8 != 3 || !c->pairing_is_one(p, q, count));
    }
    CHECK(c->pairing_is_one(p, q, PAIRS));
    c->g1_neg(&p[20], &p[20]);
    CHECK(!c->pairing_is_one(p, q, PAIRS));
}

static void claim_many(void) {
    for_each_table(check_many);
}

/* A fresh pair, pairs whose point of G2 stays, and one that stays as a whole: as plain pairs, wherever an infinity is. */
static void check_kept(const struct curve *c) {
    enum { KEPT = 4, ALL = 1 + KEPT + 1 };
    struct g1 p[ALL];
    struct g2 q[ALL];
    struct scalar exponent[ALL], sum, zero = {{0}};
    void *lines[KEPT];
    for (int i = 0; i < KEPT; i++) {
        lines[i] = mem_alloc(c->lines_bytes);
        CHECK(lines[i] != NULL);
    }
    for (size_t count = 0; count <= KEPT; count++) {
        for (int infinite = -1; infinite <= (int)count; infinite++) {
            sum = zero;
            for (size_t i = 0; i < ALL; i++) {
                struct scalar a = (int)i == infinite ? zero : scalar_some(c), b = scalar_some(c);
                c->g1_mul(&p[i], &c->g1_generator, &a);
                c->g2_mul(&q[i], &c->g2_generator, &b);
                c->scalar_mul(&exponent[i], &a, &b);
            }
            for (size_t i = 0; i <= count; i++) {
                c->scalar_add(&sum, &sum, &exponent[i]);
            }
            for (size_t i = 0; i < count; i++) {
                c->lines(lines[i], &q[1 + i]);
            }
            c->scalar_sub(&sum, &zero, &sum);
            struct gt factor;
            for (int wrong = 0; wrong < 2; wrong++) {
                struct g1 last;
                c->g1_mul(&last, &c->g1_generator, &sum);
                if (wrong) {
                    c->g1_add(&last, &last, &c->g1_generator);
                }
                c->pairing_factor(&factor, &last, &c->g2_generator);
                const void *lent[KEPT] = {lines[0], lines[1], lines[2], lines[3]};
                const struct pairing_kept kept = {p + 1, lent, count, &factor};
                CHECK_MSG(c->pairing_with_kept_is_one(p, q, &kept) == !wrong,
                          "%s, %zu kept, infinity at %d", c->name, count, infinite);
            }
        }
    }
    for (int i = 0; i < KEPT; i++) {
        mem_free(lines[i]);
    }
}

static void claim_kept(void) {
    for_each_table(check_kept);
}

/* EIP-197 input: pairs of G1 (x, y) and G2 (x.c1, x.c0, y.c1, y.c0), big-endian: bellman's uncompressed layout. */
static void eip197(const struct curve *c, const char *hex, size_t pairs, bool want) {
    struct g1 p[4];
    struct g2 q[4];
    for (size_t i = 0; i < pairs; i++) {
        char one[385];
        uint8_t bytes[192];
        snprintf(one, sizeof one, "%s", hex + i * 384);
        CHECK_OK(hex_decode(bytes, sizeof bytes, one));
        CHECK_OK(bellman_g1_read(&p[i], c, bytes_of(bytes, 64), false, true));
        CHECK_OK(bellman_g2_read(&q[i], c, bytes_of(bytes + 64, 128), false, true));
    }
    CHECK(c->pairing_is_one(p, q, pairs) == want);
}

/* clang-format off */
#define EIP197_HEAD \
    "1c76476f4def4bb94541d57ebba1193381ffa7aa76ada664dd31c16024c43f59" \
    "3034dd2920f673e204fee2811c678745fc819b55d3e9d294e45c9b03a76aef41" \
    "209dd15ebff5d46c4bd888e51a93cf99a7329636c63514396b4a452003a35bf7" \
    "04bf11ca01483bfa8b34b43561848d28905960114c8ac04049af4b6315a41678" \
    "2bb8324af6cfc93537a2ad1a445cfd0ca2a71acd7ac41fadbf933c2a51be344d" \
    "120a2a4cf30c1bf9845f20c6fe39e07ea2cce61f0c9bb048165fe5e4de877550" \
    "111e129f1cf1097710d41c4ac70fcdfa5ba2023c6ff1cbeac322de49d1b6df7c"
#define EIP197_G2 \
    "198e9393920d483a7260bfb731fb5d25f1aa493335a9e71297e485b7aef312c2" \
    "1800deef121f1e76426a00665e5c4479674322d4f75edadd46debd5cd992f6ed" \
    "090689d0585ff075ec9e99ad690c3395bc4b313370b38ef355acdadcd122975b" \
    "12c85ea5db8c6deb4aab71808dcb408fe3d1e7690c43d37b4ce6cc0166fa7daa"
/* clang-format on */

static void check_eip197(const struct curve *c) {
    if (c->id == CURVE_BN254) {
        eip197(c,
               EIP197_HEAD
               "2032c61a830e3c17286de9462bf242fca2883585b93870a73853face6a6bf411" EIP197_G2,
               2, true);
        eip197(c,
               EIP197_HEAD
               "103188585e2364128fe25c70558f1560f4f9350baf3959e603cc91486e110936" EIP197_G2,
               2, false);
    }
}

static void claim_eip197(void) {
    for_each_table(check_eip197);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"pairings of known multiples equal ffjavascript's", claim_ffjavascript},
        {"e(alpha, beta) equals vk_alphabeta_12 of snarkjs's verifying keys", claim_alphabeta},
        {"pairings are bilinear and not constant", claim_bilinear},
        {"a pair with an infinity, and no pairs at all, give one", claim_infinity},
        {"products of more pairs than share a loop", claim_many},
        {"pairs that stay count as any others", claim_kept},
        {"the pairing cases of EIP-197", claim_eip197},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
