/* "Did you mean …?"
 *
 * Threads  any.
 */
#pragma once
#include <stddef.h>

/* The entry of `names` closest to `word`, NULL when none is close. Lent from `names`. */
const char *nearest_name(const char *word, const char *const *names, size_t names_count);
