/* One partition in a lane's hands: from the assignment's bytes to a witness, a proof and a story.
 *
 *   job_take ──▶ job_choose_way ──▶ job_stage_body ──▶ job_make_witness, or job_bring ──▶ proved or fault ──▶ job_free
 *                              └──▶ job_stream: both at once
 *
 * Owner    the lane.
 * Threads  one at a time, the one that it was handed to; `watch` and what is atomic any.
 * Errors   job_take: E_FORMAT, E_LIMIT, E_RANGE for an assignment that is not sound. The others: those of body.h, witness.h, the
 *          backend and the transport; E_CANCELLED.
 * Secrets  job_free wipes the witness; its block is wiped when it goes back to the arena.
 */
#pragma once
#include "node/daemon/decoders.h"
#include "node/daemon/keycache.h"
#include "node/daemon/keyfile.h"
#include "node/groth16/prove.h"
#include "node/job/result.h"
#include "node/job/shared.h"
#include "node/staging/pinned.h"
#include "node/telemetry/ledger.h"
#include "proto/body.h"
#include "proto/fleet.pb-c.h"

/* Where a job is in its lane, for those who watch, and what an idle device that waits for it waits for. */
enum job_stage {
    JOB_STAGE_QUEUED,  /* behind others */
    JOB_STAGE_RECORD,  /* its record is read or moved */
    JOB_STAGE_KEY,     /* its key is fetched or opened */
    JOB_STAGE_MEMORY,  /* waits for room */
    JOB_STAGE_FETCH,   /* its body is on the way */
    JOB_STAGE_DECODE,  /* and being unpacked */
    JOB_STAGE_UPLOAD,  /* on the way into the device's memory */
    JOB_STAGE_READY,   /* waits for the device */
    JOB_STAGE_PROVING, /* on the device: from here on no device waits for it */
    JOB_STAGE_SETTLING,
    JOB_STAGE_REPLYING,
    JOB_STAGES_COUNT
};
const char *job_stage_name(enum job_stage stage); /* "fetch" */

enum { JOB_VECTORS_MAX = 3 };

/* How a body comes to where it is computed with: by what there is room for. */
enum job_way {
    JOB_WAY_PLAIN, /* plain scalars in host memory, which the backend takes when the turn has come */
    JOB_WAY_BRING, /* as it came into host memory, from there into the backend's, ahead of its turn */
    JOB_WAY_STREAM, /* the same frame by frame: the host never has the whole */
};

struct lane_job {
    struct message message;              /* owned: the delivery; its reply is the ack subject */
    Bellows__V1__Assignment *assignment; /* owned */
    job_message *job;                    /* owned */
    struct job_name name;                /* lent from job */
    uint64_t generation, epoch;
    uint32_t index;
    struct sha256 key_digest;
    struct shared_record *record; /* a reference */
    uint64_t queued_unix_ms;      /* as the record says; 0: not read yet */

    struct key *key; /* shared (ref) */
    struct loaded_key
        loaded; /* a reference, given back by the lane; none: loaded when its turn comes */
    struct pinned_block
        block; /* lent from the lane's arena: the body as it came, and what is unpacked from it, or slots that it streams through */
    enum job_way way;
    struct scalars vectors[JOB_VECTORS_MAX]; /* owned; over the block: as they came */
    unsigned vectors_count;
    struct witness witness; /* owned; over the block */
    uint64_t brought;       /* not 0: its vectors are in the slot of `loaded` */

    struct job_watch watch;
    _Atomic int stage;         /* enum job_stage */
    _Atomic uint64_t stage_ns; /* since when, on clock_ns */
    struct ledger *ledger;     /* lent from the lane; NULL: nobody keeps books */
    uint64_t ticket;           /* there, until it is on the device */
    uint64_t ready_ns;         /* on clock_ns: from then on only the device was missing */
    uint64_t device_ns;        /* that the device spent on it */
    _Atomic bool started;      /* the record says running: giving it back needs the lane's word */
    bool ahead;                /* counted by the lane as started, and not begun by the device */
    bool suspected;            /* of killing its workers: nothing else starts with it */
    uint64_t expected_ns;      /* of the device's time; 0: not known */
    _Atomic bool handed_back;  /* by a drain: ends as a take-back, not as cancelled */
    bool stale;                /* somebody else's by now: acknowledged and dropped */

    struct prove_result proved; /* owned when has_sums */
    bool has_sums;              /* in `proved`: the device is done with it */
    bool has_proof;
    bool checked;       /* the proof verifies: it may leave */
    struct sums first;  /* of a proof that did not, until they are settled; wiped */
    struct fault fault; /* OK or why not */
    struct part_report report;
    uint64_t taken_ns;
};

/* It has come to this stage. */
void job_mark(struct lane_job *job, enum job_stage stage);

/* Takes the message over (clearing *m) on OK. `records`: lent, where its record is shared with other partitions of the job. */
FALLIBLE job_take(struct lane_job **out, struct message *m, struct shared_records *records);
void job_free(struct lane_job **job);
struct job_place job_place_of(const struct lane_job *job, struct transport *t,
                              const struct subject_space *space);

/* Decides the job's way, and what of the arena's `arena_bytes` it takes. E_FORMAT when the body is not what lanes of this version
 * prove; E_LIMIT when no way has room, with what is needed and the option. */
FALLIBLE job_choose_way(uint64_t *bytes, struct lane_job *job, const struct backend *backend,
                        const struct decoders *decoders, uint64_t arena_bytes);
/* Key and block there: does the body fit the key? Then fetches and decodes it into the block. Called again after a failure, it
 * starts anew. */
FALLIBLE job_stage_body(struct lane_job *job, struct decoders *decoders,
                        const struct bulk_links *bulk);
/* After that one of two, by its way: the witness as plain scalars in host memory, or the vectors into the memory of the backend,
 * waiting there for their turn. */
FALLIBLE job_make_witness(struct lane_job *job, struct pool *pool);
FALLIBLE job_bring(struct lane_job *job, struct backend *backend);
/* Instead of staging and bringing: both at once. */
FALLIBLE job_stream(struct lane_job *job, struct decoders *decoders, const struct bulk_links *bulk,
                    struct backend *backend);
/* A plain witness, in memory of its own, from what was brought: for a computation elsewhere. A body that streamed is fetched again. */
FALLIBLE job_unpack_brought(struct lane_job *job, struct decoders *decoders,
                            const struct bulk_links *bulk);
/* Forgets what was staged; the block stays. */
void job_unstage(struct lane_job *job);
