/* Looks for every term in its row; the dictionary's values are compared as a .zkey holds them. */
#include "tests/unit/groth16/terms.h"

#include "node/key/rows.h"
#include "tests/check/check.h"

#include <string.h>

void check_terms(const struct key *zkey, const struct key *native) {
    struct bytes terms = key_terms_raw(zkey), dictionary = key_dictionary(native);
    uint64_t counts[2] = {0};
    for (size_t i = 0; i < terms.len / KEY_TERM_BYTES; i++) {
        struct key_term t = key_term_at(terms, i);
        const struct rows *rows = key_rows(native, t.matrix);
        bool here = false;
        for (uint32_t k = rows->start[t.row]; k < rows->start[t.row + 1]; k++) {
            here = here || (rows->columns[k] == t.wire &&
                            !memcmp(dictionary.ptr + SCALAR_BYTES * (size_t)rows->coefficients[k],
                                    &t.value_r2, SCALAR_BYTES));
        }
        CHECK_MSG(here, "term %zu is missing", i);
        counts[t.matrix]++;
    }
    for (unsigned m = 0; m < 2; m++) {
        CHECK_EQ(counts[m], key_rows(native, m)->start[key_shape(native)->domain_size]);
    }
}
