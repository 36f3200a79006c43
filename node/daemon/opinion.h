/* Second opinion: who is wrong when a proof fails its own check?
 *
 * The five unblinded sums are a function of key and witness alone. They are computed again elsewhere, and digests under a fresh salt are
 * compared, so that no sum needs to be kept:
 *
 *   first = second              the witness does not satisfy the circuit                OPINION_UNSAT
 *   first ≠ second = third      the first was computed wrongly                          OPINION_DEVICE
 *   first = third ≠ second      the second was; and the witness does not satisfy        OPINION_OTHER
 *   all differ                  both                                                    OPINION_NEITHER
 *
 * Elsewhere is the processor. A lane whose device is the processor asks its plainest code, with a key and a workspace loaded anew; the
 * third run loads them anew again.
 *
 * Owner    the lane.
 * Threads  one.
 * Memory   bytes_max, for the key and workspace of one job at a time; both are given up after each job.
 * Errors   E_LIMIT when the key does not fit: then nobody is blamed; E_CANCELLED; those of the second backend.
 * Secrets  sums are wiped.
 */
#pragma once
#include "node/groth16/prove.h"

struct opinion;

struct opinion_options {
    enum err (*open)(struct backend **out, void *ctx); /* NULL: the processor */
    void *open_ctx;
    const struct backend *device; /* lent for the call: whose work is looked at */
    unsigned threads_count;       /* 0: all usable cores */
    uint64_t bytes_max;
};
FALLIBLE opinion_new(struct opinion **out, const struct opinion_options *options);
void opinion_free(struct opinion **o);

enum opinion_finding { OPINION_UNSAT, OPINION_DEVICE, OPINION_OTHER, OPINION_NEITHER };
FALLIBLE opinion_ask(enum opinion_finding *out, struct opinion *o, const struct sums *first,
                     struct key *key, const struct witness *w, struct job_watch *watch);
