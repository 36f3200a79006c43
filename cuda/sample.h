/* How many rounds of an MSM are worth sifting (msm_sift.cu), from a sample of its points.
 *
 * Threads  any.
 */
#pragma once
#include "node/base/bytes.h"

enum { SIFT_ROUNDS_MAX = 4 };

/* Packed points as a key stores them, of so many bytes; infinity is all zero. 0: hardly any pair would be without an addition. */
unsigned sample_sift_rounds(struct bytes points, size_t point_bytes);
