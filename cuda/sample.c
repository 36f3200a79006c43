/* Two shares say what becomes of a pair: f, of points at infinity, and e, how likely two others are the same point. A pair takes no addition
 * when one of the two is infinite, and half of those of equal points cancel, as the signs of digits fall. What a round leaves is infinite
 * where both were, or where they cancelled:
 *
 *   settled = 1 - (1 - f)² · (1 - e/2)        f' = f² + (1 - f)² · e/2
 *
 * Sums of points that repeat repeat less; e is kept all the same, as it only tells how long to go on.
 */
#include "cuda/sample.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLE_POINTS = 1024 };
static const double WORTH = 0.4; /* of the pairs, which pays for looking at them all */

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* How likely two of the values are the same. */
static double same_share(uint64_t *values, size_t count) {
    double pairs = 0;
    qsort(values, count, sizeof *values, by_value);
    for (size_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && values[i + n] == values[i]; n++) {
        }
        pairs += (double)n * (double)(n - 1);
    }
    return count > 1 ? pairs / ((double)count * (double)(count - 1)) : 0;
}

unsigned sample_sift_rounds(struct bytes points, size_t point_bytes) {
    static const uint8_t infinity[4 * 48];
    uint64_t words[SAMPLE_POINTS];
    size_t all = points.len / point_bytes, taken = all < SAMPLE_POINTS ? all : SAMPLE_POINTS,
           finite = 0;
    ASSERT(point_bytes <= sizeof infinity);
    for (size_t i = 0; i < taken; i++) { /* spread over all, by no fixed step */
        size_t from = all / taken * i, step = all / taken;
        const uint8_t *point = points.ptr + (from + i * 2654435761u % step) * point_bytes;
        if (memcmp(point, infinity, point_bytes) != 0) {
            memcpy(&words[finite++], point, sizeof *words);
        }
    }
    double f = taken ? 1 - (double)finite / (double)taken : 0, e = same_share(words, finite);
    unsigned rounds = 0;
    while (rounds < SIFT_ROUNDS_MAX) {
        double both = (1 - f) * (1 - f), cancel = both * e / 2;
        if (1 - both + cancel < WORTH) {
            break;
        }
        f = f * f + cancel;
        rounds++;
    }
    return rounds;
}
