/* Estimates: how long a job under a key takes on a kind of device, what loading the key costs there, and where it does not fit.
 *
 * Learnt from three sources, the better one first: what the coordinator sees lanes finish, what lanes say of themselves in their
 * directory entries, and what another kind of device takes. Only then it is a guess from the key's size. A lane's own pace is
 * mixed in by lanes.h, as a device that is hot, shared or sick differs from its kind.
 *
 * Where a key does not fit is told by lanes that refused it for lack of room (E_LIMIT): of that kind of device those with as much
 * memory or less are not asked again for a while. For CPU lanes the plan says it beforehand.
 *
 * Owner    the coordinator.
 * Threads  one.
 * Units    nanoseconds, bytes.
 * Errors   E_LIMIT when KEYS_KNOWN_MAX keys have open jobs, or without memory.
 */
#pragma once
#include "node/base/hash.h"

enum { KEYS_KNOWN_MAX = 4096, DEVICES_KNOWN_MAX = 64 };

struct speed {
    uint64_t job_ns, load_ns;           /* averages; 0: not known */
    uint32_t jobs, loads;               /* behind them, up to a limit */
    uint64_t told_job_ns, told_load_ns; /* by lanes, not seen here */
    uint64_t unfit_bytes;               /* lanes with at most so much memory have refused it */
    uint64_t unfit_until_ns;
};

struct key_view {
    struct sha256 digest;
    uint32_t users;      /* open jobs, and lanes that told of it */
    uint64_t used_at;    /* for who leaves first */
    uint64_t guess_ns;   /* from its size; 0: size not known */
    uint64_t need_bytes; /* host memory on a CPU lane, from the plan; 0: not known */
    uint64_t ask_at_ns;  /* when the registry is to be looked at; UINT64_MAX: it has been */
    uint64_t looked_ns;  /* when `fits_nowhere` was found: the round's time */
    bool
        fits_nowhere; /* on no open lane: then any is asked, so that the job gets its refusals and ends */
    struct speed *speeds; /* owned; by device */
    uint32_t next;        /* in its hash chain, index + 1 */
};

struct estimates {
    struct key_view *keys; /* owned */
    size_t keys_count;
    uint32_t *chains;     /* owned */
    char (*devices)[128]; /* owned */
    size_t devices_count;
    uint64_t clock;
};
FALLIBLE estimates_init(struct estimates *out);
void estimates_done(struct estimates *e);
void estimates_forget_users(struct estimates *e); /* what was learnt stays */

/* The key's number; a new one pushes out the one unused for longest. */
FALLIBLE estimates_key(uint32_t *key_idx, struct estimates *e, const struct sha256 *digest);
void estimates_key_ref(struct estimates *e, uint32_t key_idx);
void estimates_key_unref(struct estimates *e, uint32_t key_idx);
/* Backend and device in the lane's words. Beyond DEVICES_KNOWN_MAX kinds all others share the last one. */
uint32_t estimates_device(struct estimates *e, const char *backend, const char *device);

/* A job took so long there, its key being loaded already; loading the key did. */
void estimates_learn_job(struct estimates *e, uint32_t key_idx, uint32_t device_idx, uint64_t ns);
void estimates_learn_load(struct estimates *e, uint32_t key_idx, uint32_t device_idx, uint64_t ns);
void estimates_tell(struct estimates *e, uint32_t key_idx, uint32_t device_idx, uint64_t job_ns,
                    uint64_t load_ns);
/* A lane of the kind with so much memory had no room for the key. */
void estimates_unfit(struct estimates *e, uint32_t key_idx, uint32_t device_idx, uint64_t bytes,
                     uint64_t now_ns);
bool estimates_fits(const struct estimates *e, uint32_t key_idx, uint32_t device_idx,
                    uint64_t bytes, uint64_t now_ns);
uint64_t estimates_job_ns(const struct estimates *e, uint32_t key_idx, uint32_t device_idx);
/* Of a job there only what keeps the device busy, as lanes tell it; 0: nobody has told. */
uint64_t estimates_device_ns(const struct estimates *e, uint32_t key_idx, uint32_t device_idx);
uint64_t estimates_load_ns(const struct estimates *e, uint32_t key_idx, uint32_t device_idx);
