/* A point's third coordinate is read only to be refused: JavaScript peers accept any projective triple there, which
 * gives one proof many spellings. All-zero coordinates are infinity in our layout, so (0, 0, "1"), a point off the
 * curve, is caught before it can turn into one.
 */
#include "node/curve/json.h"
#include "node/curve/encode.h"

#include <string.h>

static enum err read_coordinate(uint64_t *out, const struct curve *c, const char *digits,
                                const char *field) {
    enum err code = fp_from_decimal(out, c, digits);
    return code == OK ? OK : err_prefix(code, "%s", field);
}

static enum err off_curve(const struct curve *c, const char *field) {
    FAIL(E_CURVE, "%s is not a point of the curve %s", field, c->snarkjs_name);
}

enum err json_g1_read(struct g1 *out, const struct curve *c, const cJSON *value,
                      const char *field) {
    const char *t[3];
    TRY(json_texts(t, 3, value, field));
    struct g1 p = {{0}};
    if (!strcmp(t[0], "0") && !strcmp(t[1], "1") && !strcmp(t[2], "0")) {
        *out = p;
        return OK;
    }
    REQUIRE(
        !strcmp(t[2], "1"), E_FORMAT,
        "%s: the third coordinate is \"%.32s\"; \"1\" is expected (infinity is \"0\",\"1\",\"0\")",
        field, t[2]);
    size_t limbs = c->fp_bytes / 8, bad_idx = 0;
    TRY(read_coordinate(p.w, c, t[0], field));
    TRY(read_coordinate(p.w + limbs, c, t[1], field));
    if (g1_is_infinity(&p) || c->g1_check(&bad_idx, (const uint8_t *)p.w, 1, false) != OK) {
        return off_curve(c, field);
    }
    *out = p;
    return OK;
}

enum err json_g2_read(struct g2 *out, const struct curve *c, const cJSON *value,
                      const char *field) {
    REQUIRE(cJSON_IsArray(value) && cJSON_GetArraySize(value) == 3, E_FORMAT,
            "%s is not a list of 3 pairs", field);
    const char *t[3][2];
    for (int i = 0; i < 3; i++) {
        TRY(json_texts(t[i], 2, cJSON_GetArrayItem(value, i), field));
    }
    struct g2 p = {{0}};
    if (!strcmp(t[2][0], "0") && !strcmp(t[2][1], "0")) {
        REQUIRE(!strcmp(t[0][0], "0") && !strcmp(t[0][1], "0") && !strcmp(t[1][0], "1") &&
                    !strcmp(t[1][1], "0"),
                E_FORMAT, "%s: infinity is written (\"0\",\"0\"), (\"1\",\"0\"), (\"0\",\"0\")",
                field);
        *out = p;
        return OK;
    }
    REQUIRE(!strcmp(t[2][0], "1") && !strcmp(t[2][1], "0"), E_FORMAT,
            "%s: the third coordinate is (\"%.32s\",\"%.32s\"); (\"1\",\"0\") is expected", field,
            t[2][0], t[2][1]);
    size_t limbs = c->fp_bytes / 8, bad_idx = 0;
    for (size_t i = 0; i < 4; i++) {
        TRY(read_coordinate(p.w + i * limbs, c, t[i / 2][i % 2], field));
    }
    if (g2_is_infinity(&p) || c->g2_check(&bad_idx, (const uint8_t *)p.w, 1, false) != OK) {
        return off_curve(c, field);
    }
    *out = p;
    return OK;
}

static void new_line(struct text *out, unsigned depth) {
    text_addf(out, "\n%*s", (int)depth, "");
}

static void add_coordinate(struct text *out, const struct curve *c, const uint64_t *mont) {
    char digits[FP_DECIMAL_MAX];
    fp_to_decimal(digits, c, mont);
    text_addf(out, "\"%s\"", digits);
}

void json_g1_write(struct text *out, const struct curve *c, const struct g1 *p, unsigned depth) {
    bool infinity = g1_is_infinity(p);
    text_add(out, "[");
    for (size_t i = 0; i < 2; i++) {
        new_line(out, depth + 1);
        if (infinity) {
            text_add(out, i == 0 ? "\"0\"" : "\"1\"");
        } else {
            add_coordinate(out, c, p->w + i * (c->fp_bytes / 8));
        }
        text_add(out, ",");
    }
    new_line(out, depth + 1);
    text_add(out, infinity ? "\"0\"" : "\"1\"");
    new_line(out, depth);
    text_add(out, "]");
}

void json_g2_write(struct text *out, const struct curve *c, const struct g2 *p, unsigned depth) {
    static const char *const at_infinity[6] = {"0", "0", "1", "0", "0", "0"};
    static const char *const third[2] = {"1", "0"};
    bool infinity = g2_is_infinity(p);
    text_add(out, "[");
    for (size_t i = 0; i < 6; i++) {
        if (i % 2 == 0) {
            new_line(out, depth + 1);
            text_add(out, "[");
        }
        new_line(out, depth + 2);
        if (infinity) {
            text_addf(out, "\"%s\"", at_infinity[i]);
        } else if (i >= 4) {
            text_addf(out, "\"%s\"", third[i - 4]);
        } else {
            add_coordinate(out, c, p->w + i * (c->fp_bytes / 8));
        }
        text_add(out, i % 2 == 0 ? "," : "");
        if (i % 2 == 1) {
            new_line(out, depth + 1);
            text_add(out, i < 5 ? "]," : "]");
        }
    }
    new_line(out, depth);
    text_add(out, "]");
}
