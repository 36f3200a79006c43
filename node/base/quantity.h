/* Sizes and spans of time as people write them: "4MiB", "500ms".
 *
 * Whole numbers with a unit right behind. Sizes: B KiB MiB GiB TiB, kB MB GB TB; a number alone is bytes. Spans: ns us ms
 * s m min h d; only 0 may stand alone, as nobody can guess the unit of "5".
 *
 * Threads  any.
 * Errors   E_FORMAT for what is not a quantity, E_RANGE for what does not fit 64 bits; outputs untouched unless OK.
 */
#pragma once
#include "node/base/err.h"

enum { QUANTITY_TEXT_BYTES = 32 };

FALLIBLE quantity_number(uint64_t *out, const char *text);  /* decimal digits only */
FALLIBLE quantity_bytes(uint64_t *out, const char *text);   /* bytes */
FALLIBLE quantity_span_ns(uint64_t *out, const char *text); /* nanoseconds */

/* Exact and in the largest unit that divides: 4194304 is "4MiB", 4194305 "4194305B". */
void quantity_bytes_text(char out[QUANTITY_TEXT_BYTES], uint64_t bytes);
void quantity_span_text(char out[QUANTITY_TEXT_BYTES], uint64_t span_ns);
