/* The check of every point of a key, for whoever has time for it now and then. See key_check in key.h.
 *
 * Threads  any; `pace` is called on the calling thread.
 * Errors   those of key_check; E_CANCELLED when `pace` ended it.
 */
#pragma once
#include "node/key/key.h"

/* Called before and between rounds of some milliseconds, with the share that is done (0 to 1); may wait. false ends the check, and nothing is
 * remembered. */
typedef bool key_pace(void *ctx, double done);
FALLIBLE key_check_paced(struct key_report *out, struct key *key, struct pool *pool, key_pace *pace,
                         void *pace_ctx);
