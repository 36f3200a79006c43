/* Damerau-Levenshtein distance: an edit is a letter added, dropped, changed, or two swapped. Close means one edit and one
 * more for every four letters of the name, or that one word begins with the other.
 */
#include "node/base/nearest.h"

#include <stdint.h>
#include <string.h>

enum { WORD_MAX = 64 };

static size_t least_of(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t edit_distance(const char *a, const char *b) {
    size_t d[WORD_MAX + 1][WORD_MAX + 1];
    size_t m = strlen(a), n = strlen(b);
    if (m > WORD_MAX || n > WORD_MAX) {
        return SIZE_MAX;
    }
    for (size_t i = 0; i <= m; i++) {
        for (size_t j = 0; j <= n; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
                continue;
            }
            size_t changed = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = least_of(changed, 1 + least_of(d[i - 1][j], d[i][j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                d[i][j] = least_of(d[i][j], d[i - 2][j - 2] + 1);
            }
        }
    }
    return d[m][n];
}

const char *nearest_name(const char *word, const char *const *names, size_t names_count) {
    const char *best = NULL;
    size_t best_distance = SIZE_MAX, len = strlen(word);
    for (size_t i = 0; i < names_count; i++) {
        size_t name_len = strlen(names[i]);
        size_t distance = edit_distance(word, names[i]);
        if (len >= 3 && !strncmp(word, names[i], least_of(len, name_len))) {
            distance = least_of(distance, 1);
        }
        if (distance <= 1 + name_len / 4 && distance < best_distance) {
            best_distance = distance;
            best = names[i];
        }
    }
    return best;
}
