/* Gigabytes of zero memory straight from the system: for what is too large to be cleared by one thread before others fill it.
 *
 * Nothing is touched here: whoever fills the memory takes its pages, in parallel then, and huge ones where the system has them.
 *
 * Owner    the caller, to bulk_close.
 * Threads  any.
 * Errors   E_LIMIT when the system refuses so much.
 */
#pragma once
#include "node/base/bytes.h"

FALLIBLE bulk_open(struct bytes_mut *out, size_t bytes); /* bytes > 0; aligned to a page */
void bulk_close(struct bytes_mut *bulk);                 /* empty is fine; becomes empty */
