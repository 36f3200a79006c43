/* Proving keys, both formats: whatever was taken must hold together. */
#include "node/base/mem.h"
#include "node/key/native.h"
#include "tests/fuzz/targets.h"

#include <string.h>

static void rows_hold(const struct key_parts *p) {
    for (unsigned m = 0; m < 2; m++) {
        const struct rows *r = &p->rows[m];
        uint32_t terms = r->start[r->rows_count];
        ASSERT(r->rows_count == p->shape.domain_size && terms == p->shape.terms_count[m]);
        for (uint32_t i = 0; i < r->rows_count; i++) {
            ASSERT(r->start[i] <= r->start[i + 1]);
        }
        for (uint32_t i = 0; i < terms; i++) {
            ASSERT(r->columns[i] < p->shape.wires_count);
            ASSERT(r->coefficients[i] < p->dictionary.len / SCALAR_BYTES);
        }
        for (uint32_t i = 0; i < r->long_count; i++) {
            ASSERT(r->long_rows[i] < r->rows_count);
        }
    }
}

static void parts_hold(const struct key_parts *p, struct bytes file) {
    const struct key_shape *s = &p->shape;
    ASSERT(s->domain_size == 1ull << s->domain_log2 && s->public_count < s->wires_count);
    for (unsigned which = 0; which < KEY_POINTS_COUNT; which++) {
        size_t each = curve_point_bytes(p->curve, key_points_group((enum key_points)which));
        struct bytes points = p->points[which];
        ASSERT(points.len == each * s->points_count[which]);
        ASSERT(points.ptr >= file.ptr && points.ptr + points.len <= file.ptr + file.len);
    }
    if (s->format == KEY_FORMAT_NATIVE) {
        rows_hold(p);
        return;
    }
    ASSERT(p->terms.len == (s->terms_count[0] + s->terms_count[1]) * KEY_TERM_BYTES);
    for (size_t i = 0; i < p->terms.len / KEY_TERM_BYTES; i++) {
        struct key_term term = key_term_at(p->terms, i);
        ASSERT(term.matrix <= 1 && term.row < s->domain_size && term.wire < s->wires_count);
        ASSERT(scalar_is_valid(p->curve, &term.value_r2));
    }
}

void fuzz_zkey(struct bytes input) {
    struct key_parts parts;
    if (zkey_parse(&parts, input, "fuzz.zkey") == OK) {
        parts_hold(&parts, input);
        key_parts_done(&parts);
    }
}

void fuzz_params(struct bytes input) {
    struct key_parts parts;
    if (key_parse(&parts, input, "fuzz.params") == OK) {
        parts_hold(&parts, input);
        key_parts_done(&parts);
    }
}

/* As it comes, and with its checksums made right: what then passes must hold together by itself. */
void fuzz_native(struct bytes input) {
    struct key_parts parts;
    if (native_parse(&parts, input, "fuzz.native", false) == OK) {
        parts_hold(&parts, input);
        key_parts_done(&parts);
    }
    struct bytes_mut sealed = {mem_alloc(input.len), input.len};
    ASSERT(sealed.ptr);
    memcpy(sealed.ptr, input.ptr, input.len);
    struct bytes file = bytes_of(sealed.ptr, sealed.len);
    if (native_seal(sealed) == OK && native_parse(&parts, file, "fuzz.native", false) == OK) {
        parts_hold(&parts, file);
        key_parts_done(&parts);
    }
    mem_free(sealed.ptr);
}
