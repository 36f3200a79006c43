/* What a prover backend is: the operations of one Groth16 proof, in the order prove.c calls them.
 *
 * Two backends implement it, CPU and CUDA, with the same file names for the same operations. Given the same blinding
 * both give bit-identical sums. An operation may return before its work is done (CUDA queues it); `sums` waits.
 *
 *   key_load ── once per key ──▶ slot_open ── once per job in flight ──▶ witness → evaluate → quotient → msm ×5 → sums
 *
 * Owner    whoever opened it; keys and slots are closed before their backend.
 * Threads  one thread computes with a backend (the `device` thread); the backend has its own workers. One thread at a time loads and
 *          drops keys and opens slots, beside it; pin and bring any.
 * Errors   E_DEVICE, E_DEVICE_LOST, E_LIMIT (does not fit), E_CANCELLED when the job's cancel flag was seen; of a key that cannot be
 *          proved under, E_USAGE, E_FORMAT, E_RANGE; of bring, E_FORMAT and E_RANGE for scalars that are not sound.
 *          Nothing allocates after slot_open.
 */
#pragma once
#include "node/groth16/plan.h"
#include "node/key/key.h"
#include "node/witness/witness.h"
#include "proto/codec.h"

enum prove_step {
    STEP_WITNESS,  /* scalars to where the backend computes */
    STEP_EVALUATE, /* a = A·w, b = B·w, where they did not come with the witness */
    STEP_QUOTIENT, /* six transforms: scalars of H */
    STEP_MSM_A,
    STEP_MSM_B1,
    STEP_MSM_B2,
    STEP_MSM_L,
    STEP_MSM_H,
    STEP_ASSEMBLE, /* blinding */
    STEP_VERIFY,   /* the self-check */
    STEP_COUNT
};
const char *prove_step_name(enum prove_step step); /* "msm_b2" */

/* The five sums before blinding, affine. */
struct sums {
    struct g1 a, b1, l, h;
    struct g2 b2;
};

/* The order of a proof's MSMs. B2 is first, as what a device does behind it takes longest and then lies beside the others; H is last,
 * as its scalars come last. */
extern const enum key_points msm_order[KEY_POINTS_COUNT];
enum prove_step msm_step(enum key_points which);

struct step_times {
    /* Of steps that run beside each other each has what it took longer than those before it. */
    uint64_t ns[STEP_COUNT];
    /* The part of STEP_WITNESS in which the device waited for its data; 0 where nothing is copied. */
    uint64_t upload_ns;
    uint64_t
        finish_ns; /* of the host behind the device's last step, while the device has nothing of this job */
};

/* Where the time of loading a key went: until its memory was there, then until the host had handed everything over, then until the last
 * of it had arrived. */
struct load_times {
    uint64_t memory_ns, hand_over_ns, arrival_ns;
};

/* What operations are held against: products a second of everything the backend computes with, operands in registers. */
struct rates {
    double fp, fr; /* a device's fr: by constants, as nearly all of its are */
};

struct backend;
struct backend_key;        /* a key where the backend computes */
struct backend_slot;       /* workspace of one job in flight under one key */
struct backend_rest;       /* of a job that has left its slot: what is to be added on the host */
struct backend_multiplier; /* multiples of a curve's generator in one group */

/* Watched between and inside steps: set from any thread to end the job with E_CANCELLED; progress is read by `top`,
 * the watchdog and progress bars. */
struct job_watch {
    _Atomic int cancel;
    _Atomic int step;             /* enum prove_step */
    _Atomic uint32_t permille;    /* of the whole proof */
    _Atomic uint64_t progress_ns; /* clock_ns of the last sign of life */
    bool in_turn; /* benches: no step runs beside another, so that each has its own time */
};

/* A job's vectors on their way to where the backend computes, ahead of its turn: the assignment, or a, b and the assignment. */
struct bring {
    const struct scalars
        *vectors;              /* lent until it returns; the host bytes are not needed after that */
    unsigned vectors_count;    /* 1 or 3 */
    const char *name;          /* for errors: "partition 3" */
    uint64_t upload_ns, bytes; /* out: what the copy took, by the device's clock */
    uint64_t ticket;           /* out: names what was brought, for the witness; never 0 */
    bool
        in_pieces; /* the vectors' bytes come by bring_piece: of what is behind their pointers no more than heads, directories and first
                       values is there */
};

struct backend_ops {
    const char *name; /* "cpu", "cuda" */
    void (*close)(struct backend *b);
    FALLIBLE (*plan)(struct plan *out, struct backend *b, const struct key_shape *shape);
    FALLIBLE(*key_load)
    (struct backend_key **out, struct backend *b, struct key *key); /* refs the key */
    void (*key_drop)(struct backend_key **key);
    void (*key_load_times)(struct load_times *out, const struct backend_key *key); /* NULL: CPU */
    FALLIBLE (*slot_open)(struct backend_slot **out, struct backend_key *key);
    void (*slot_close)(struct backend_slot **slot);

    /* One job. `w` stays valid until sums returned. Evaluations in it take the place of the key's matrices; they are shorter
     * than the domain by rows of 0. */
    FALLIBLE (*witness)(struct backend_slot *s, const struct witness *w, struct job_watch *watch);
    FALLIBLE (*evaluate)(struct backend_slot *s);
    FALLIBLE (*quotient)(struct backend_slot *s);
    FALLIBLE (*msm)(struct backend_slot *s, enum key_points which);
    FALLIBLE (*sums)(struct sums *out, struct step_times *times, struct backend_slot *s);
    /* The same in two, NULL where nothing is left to do: `collect` waits, and leaves in *rest what `finish` then makes of it on any
     * thread, while the slot computes the next job. finish with sums NULL throws it away; fine on no rest. */
    FALLIBLE(*collect)
    (struct backend_rest **rest, struct sums *out, struct step_times *times,
     struct backend_slot *s);
    void (*finish)(struct sums *sums, struct backend_rest **rest);
    /* Test only: the domain_size canonical H scalars of the last job. */
    FALLIBLE (*h_scalars)(uint8_t *out, struct backend_slot *s);
    /* Wipes what a job left behind. */
    void (*wipe)(struct backend_slot *s);

    /* Of a backend with memory of its own; else NULL, all of them. */
    /* Host memory that its copy engines are to read. */
    FALLIBLE (*pin)(struct backend *b, void *host, size_t bytes);
    void (*unpin)(struct backend *b, void *host);
    /* Takes in, checks and keeps the next job's vectors, on any thread while the slot's thread computes another job: waits until
     * that one has begun. The job's witness then carries the ticket. E_LIMIT: too large for what the plan set aside. */
    FALLIBLE (*bring)(struct backend_slot *s, struct bring *what, struct job_watch *watch);
    /* Would vectors of such lengths and forms have room there? NULL: always. */
    bool (*bring_fits)(const struct backend_slot *s, const struct scalars *vectors, unsigned count);
    /* The same in pieces, for vectors that are nowhere whole; NULL, all three: not here. bring_begin waits like bring, and needs counts, forms
     * and lengths alone; bring_piece, on any thread, returns when the bytes are copied; bring_end checks, or, not `whole`, gives up. */
    FALLIBLE (*bring_begin)(struct backend_slot *s, struct bring *what, struct job_watch *watch);
    FALLIBLE(*bring_piece)
    (struct backend_slot *s, unsigned vector_idx, uint64_t at, struct bytes piece);
    FALLIBLE (*bring_end)(struct backend_slot *s, struct bring *what, bool whole);
    /* What was brought under this ticket will not be computed, or has been: its place is free. */
    void (*unbring)(struct backend_slot *s, uint64_t ticket);

    /* No part of a proof, but how keys are made from known secrets (setup.h): out[i] = scalars[i]·G as packed points, scalars
     * below r. `count`: about how many there will be, which chooses the size of tables. `multiply` allocates nothing and waits. */
    FALLIBLE(*multiplier_open)
    (struct backend_multiplier **out, struct backend *b, const struct curve *c,
     enum point_group group, uint64_t count);
    FALLIBLE(*multiply)
    (uint8_t *out, struct backend_multiplier *m, const struct scalar *scalars, size_t count);
    void (*multiplier_close)(struct backend_multiplier **m);

    /* Benches only, in memory of their own: rates take 40 ms or less; transforms fills ns with the times of `count` forward
     * transforms of 2^log2 elements. */
    FALLIBLE (*rates)(struct rates *out, struct backend *b, enum curve_id id);
    FALLIBLE(*transforms)
    (uint64_t *ns, size_t count, struct backend *b, enum curve_id id, unsigned log2);
};

struct backend {
    const struct backend_ops *ops;
    char device_name[96];  /* "cpu: 2 threads, ifma"; "cuda: NVIDIA H200 GPU-…" */
    uint64_t memory_bytes; /* of its own, for keys and jobs; 0: it computes in the host's */
    /* Of memory_bytes, what other keys have left: plan and key_load choose by it. Set by whoever loads several, before the two. */
    uint64_t room_bytes;
    int numa_node; /* nearest to its memory; negative: not known */
};

/* CUDA: multiples of a key's points in device memory, for a tenth less time. They make a key ten times as large there, and take as
 * long again to load. AUTO: where a key with them and one job's workspace take at most half of room_bytes, and are expected to be
 * faster; so at least half of what others have left stays for the keys to come. */
enum key_tables { KEY_TABLES_OFF, KEY_TABLES_AUTO, KEY_TABLES_ON };
enum backend_kind { BACKEND_AUTO, BACKEND_CUDA, BACKEND_CPU };
struct backend_options {
    enum backend_kind kind;
    unsigned threads_count;     /* CPU; 0 = all usable cores */
    const char *cpu_tier;       /* "portable", "adx", "ifma"; NULL = best */
    const char *device;         /* CUDA: index or UUID; NULL = first usable */
    uint64_t device_memory_max; /* bytes; 0 = all */
    enum key_tables key_tables;
};
void backend_close(struct backend **b);
