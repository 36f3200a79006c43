/* Two layouts of one key's matrices against each other.
 *
 * Threads  the claim's.
 */
#pragma once
#include "node/key/key.h"

/* Fails the claim unless each term of the .zkey, by its value, is in its row of the native key, and nothing else is. */
void check_terms(const struct key *zkey, const struct key *native);
