/* A simulated prover behind the operations interface: it takes the time of a model, fails by chance, and answers sums that were computed
 * once. Assembly and check of a proof, milliseconds of arithmetic each, are linked away (--wrap): a lane here delivers the proof that
 * was assembled and verified when its key was learnt, and only one that differs from it is checked in earnest. In the simulation's
 * program only: no production binary holds it.
 *
 * Owner    the caller; a model is shared by all provers and outlives them.
 * Threads  as any backend: one drives it. Counters any.
 * Errors   E_DEVICE by the model's chance; E_CANCELLED; those of key and witness.
 */
#pragma once
#include "node/base/rng.h"
#include "node/groth16/backend.h"
#include "node/groth16/proof.h"

#include <stdatomic.h>

enum { SIM_KEYS = 4 };

/* A chance is in parts of a million, per job. */
struct sim_model {
    uint64_t mean_ns; /* of a job: log-normal */
    double sigma;     /* of its logarithm; 0: always the mean */
    uint64_t load_ns; /* of a key */
    bool brings;      /* jobs are brought to it beside its work, as to a GPU */
    unsigned device_ppm, stuck_ppm, wrong_ppm;
    struct sha256 digests[SIM_KEYS]; /* of the keys known */
    struct sums sums[SIM_KEYS];
    struct proof proofs[SIM_KEYS]; /* verified */
};
/* Computes the answers: a case of the corpus for each key. The process has one model: from now on it is this one. */
FALLIBLE sim_model_learn(struct sim_model *m, unsigned idx, const char *key_path,
                         const char *witness_path);

struct sim_counts {                /* of all provers together */
    _Atomic uint64_t begun, ended; /* jobs; ended: also those that failed */
    _Atomic uint64_t busy;         /* provers at work now, key loads included */
    _Atomic uint64_t work_ns;      /* drawn for jobs that were proved */
    _Atomic uint64_t longest_ns;
    uint64_t *drawn_ns; /* lent; of each job in the order of their begins, drawn_max places */
    uint64_t drawn_max;
    _Atomic uint64_t loads, device_errors, stuck, wrong;
    atomic_bool hurry; /* the end: nobody sleeps any longer, nobody is stuck */
};

FALLIBLE sim_prover_open(struct backend **out, const struct sim_model *m, struct sim_counts *counts,
                         uint64_t seed);
/* Proofs whose pairings were computed: no more than were wrong, else lanes take another way than the one that is linked away. */
uint64_t sim_checks_in_earnest(void);
