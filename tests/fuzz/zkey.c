/* Proving keys, both formats: whatever was taken must hold together. */
#include "node/key/parts.h"
#include "tests/fuzz/targets.h"

static void parts_hold(const struct key_parts *p, struct bytes file) {
    const struct key_shape *s = &p->shape;
    ASSERT(s->domain_size == 1ull << s->domain_log2 && s->public_count < s->wires_count);
    for (unsigned which = 0; which < KEY_POINTS_COUNT; which++) {
        size_t each = curve_point_bytes(p->curve, key_points_group((enum key_points)which));
        struct bytes points = p->points[which];
        ASSERT(points.len == each * s->points_count[which]);
        ASSERT(points.ptr >= file.ptr && points.ptr + points.len <= file.ptr + file.len);
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
