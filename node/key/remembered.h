/* What this machine already knows about files: digests and checks that took minutes, one small file each.
 *
 * The folder is $BELLOWS_CACHE, else $XDG_CACHE_HOME/bellows, else ~/.cache/bellows. Everything in it can be lost or
 * deleted at any time: what is not remembered is computed again, and a folder that cannot be written costs only that.
 * Files appear whole or not at all.
 *
 * Threads  any.
 */
#pragma once
#include "node/base/bytes.h"

enum { REMEMBERED_BYTES_MAX = 512 };

/* The text stored as `kind`/`name` below the cache folder. false: not known. */
bool remembered_get(char out[REMEMBERED_BYTES_MAX], const char *kind, const char *name);
/* Stores it; failures are swallowed, see above. */
void remembered_put(const char *kind, const char *name, const char *text);
