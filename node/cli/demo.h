/* Demo: a small endless load for `bellows dev --demo`, so that a fleet shows itself at work seconds after its start.
 *
 * Makes a few synthetic keys with witnesses in DIR/demo, then keeps sending jobs of one to six proofs with varying priority, each by a `bellows
 * submit` of its own, as a user would. What the children say goes to DIR/demo.log.
 *
 * Owner    `bellows dev`.
 * Threads  the main thread.
 * Errors   E_NET with the log's name when several jobs in a row came to nothing.
 */
#pragma once
#include "node/base/err.h"

struct demo; /* opaque */

/* Nothing runs yet. On OK *out is the caller's, to demo_close(), before the folder goes. */
FALLIBLE demo_open(struct demo **out, const char *dir, const char *server);
/* Starts what is due and looks after what runs; called again and again, never waits. */
FALLIBLE demo_step(struct demo *demo);
void demo_close(struct demo **demo); /* ends the children; for AUTO */
