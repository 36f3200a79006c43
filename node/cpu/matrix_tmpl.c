/* a = A·w and b = B·w: sparse products straight from a .zkey's list of terms.
 *
 * A term is (matrix, row, wire, value·R²): one Montgomery product of the stored value with the plain witness scalar is the
 * product in Montgomery form, so neither is ever converted. The list may be in any order and is not copied or sorted; a
 * task owns a range of rows and reads the zones of the list that touch them. In files as snarkjs writes them rows rise,
 * so tasks read disjoint parts; in the worst order every task reads all and still multiplies only its own.
 *
 * Zero witness values are skipped: half of all in circuits of bits. Cost: a product and an addition a term.
 */
#include "node/cpu/ops.h"
#include "node/cpu/tmpl.h"
#include "node/key/key.h"

#include <string.h>

static void term_add(const struct matrix *m, const uint8_t *term, size_t from, size_t to) {
    uint32_t head[3]; /* matrix, row, wire */
    memcpy(head, term, sizeof head);
    if (head[1] < from || head[1] >= to || head[0] > 1 || head[2] >= m->wires_count) {
        return; /* the latter two were checked at opening, but the file may have changed since */
    }
    fr value, scalar, product;
    memcpy(&scalar, m->witness + (size_t)SCALAR_BYTES * head[2], sizeof scalar);
    if (fr_is_zero(&scalar)) {
        return;
    }
    memcpy(&value, term + sizeof head, sizeof value);
    fr_mul(&product, &value, &scalar);
    fr *sum = (fr *)(void *)(m->rows[head[0]] + (size_t)FR_LIMBS * head[1]);
    fr_add(sum, sum, &product);
}

static void evaluate(const struct matrix *m, size_t from, size_t to) {
    for (int k = 0; k < 2; k++) {
        memset(m->rows[k] + FR_LIMBS * from, 0, sizeof(fr) * (to - from));
    }
    const size_t zones = (m->terms_count + MATRIX_ZONE_TERMS - 1) / MATRIX_ZONE_TERMS;
    for (size_t zone = 0; zone < zones; zone++) {
        if (m->zones[zone].row_most < from || m->zones[zone].row_least >= to) {
            continue;
        }
        const size_t first = zone * MATRIX_ZONE_TERMS;
        size_t last = first + MATRIX_ZONE_TERMS;
        last = last < m->terms_count ? last : m->terms_count;
        for (size_t i = first; i < last; i++) {
            term_add(m, m->terms.ptr + KEY_TERM_BYTES * i, from, to);
        }
    }
}

extern const struct matrix_ops CPU_FN(matrix_ops);
const struct matrix_ops CPU_FN(matrix_ops) = {.evaluate = evaluate};
