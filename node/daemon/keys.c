/* A job's key: its file on this machine, and where the backend computes. A backend that loads keys beside its work has that done by stage
 * threads, ahead of the job's turn; for another the device thread does it when the turn has come.
 */
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/daemon/lane_threads.h"

static const uint64_t LOOK_NS = UINT64_C(100000000); /* so often a waiting job looks for its end */

static enum err open_key(struct lane *lane, struct lane_job *job) {
    struct keyfile_times times;
    uint64_t start_ns = clock_ns();
    enum err code = keyfiles_get(&job->key, &times, lane->keyfiles, &lane->links.bulk, &lane->space,
                                 &job->key_digest, &job->watch.cancel);
    if (code != OK) {
        spans_end(&job->report.spans, SPAN_KEY_OPEN, start_ns, 0, code);
        return code;
    }
    if (times.fetch_ns) {
        spans_add(&job->report.spans, SPAN_KEY_FETCH, start_ns, times.fetch_ns, times.fetch_bytes,
                  OK);
        atomic_store(&lane->info_due, true);
    }
    if (times.open_ns) {
        spans_add(&job->report.spans, SPAN_KEY_OPEN, start_ns + times.fetch_ns, times.open_ns, 0,
                  OK);
    }
    return OK;
}

/* Key files are opened by one thread at a time. */
static enum err take_key_turn(struct lane *lane, const _Atomic int *cancel) {
    LOCK_SCOPE(&lane->lock);
    while (lane->key_turn) {
        REQUIRE(!atomic_load(cancel), E_CANCELLED, "cancelled before it started");
        struct timespec until = clock_wait_until(LOOK_NS);
        condition_wait_until(&lane->changed, &lane->lock, &until);
    }
    lane->key_turn = true;
    return OK;
}

static void give_key_turn(struct lane *lane) {
    LOCK_SCOPE(&lane->lock);
    lane->key_turn = false;
    condition_wake_all(&lane->changed);
}

enum err lane_get_key(struct lane *lane, struct lane_job *job) {
    job_mark(job, JOB_STAGE_KEY);
    if (!job->key && lane_brings(lane) &&
        keycache_find(&job->loaded, lane->keycache, &job->key_digest)) {
        job->key = key_ref(job->loaded.key);
    }
    if (!job->key) {
        TRY(take_key_turn(lane, &job->watch.cancel));
        enum err code = open_key(lane, job);
        give_key_turn(lane);
        TRY(code);
    }
    if (!lane_brings(lane) || job->loaded.resident) {
        return OK;
    }
    return lane_load_key(lane, job);
}

bool lane_key_is_far(struct lane *lane, const struct lane_job *job) {
    lock_take(&lane->lock);
    bool busy = lane->key_turn;
    lock_give(&lane->lock);
    return busy && !job->key && !keycache_has(lane->keycache, &job->key_digest);
}

enum err lane_load_key(struct lane *lane, struct lane_job *job) {
    TRY(keycache_get(&job->loaded, lane->keycache, &job->key_digest, job->key, &job->watch.cancel));
    if (job->loaded.load_ns) {
        spans_add(&job->report.spans, SPAN_KEY_LOAD, clock_ns() - job->loaded.load_ns,
                  job->loaded.load_ns, key_shape(job->key)->file_bytes, OK);
        atomic_store(&lane->info_due, true);
    }
    return OK;
}

/* --- Keys that are kept --- */

static enum err keep_key(struct lane *lane, const struct sha256 *digest) {
    static const _Atomic int never;
    struct keyfile_times times;
    char hex[SHA256_HEX_BYTES];
    AUTO(key_unref) struct key *key = NULL;
    TRY(take_key_turn(lane, &never));
    enum err code =
        keyfiles_get(&key, &times, lane->keyfiles, &lane->links.bulk, &lane->space, digest, NULL);
    give_key_turn(lane);
    TRY(code);
    TRY(keycache_keep(lane->keycache, digest, key));
    atomic_store(&lane->info_due, true);
    sha256_hex(hex, digest);
    log_info("key.kept", "key=%.16s", hex);
    return OK;
}

void lane_drop_keys(struct lane *lane) {
    if (atomic_exchange(&lane->distrust, false)) {
        keycache_drop_all(lane->keycache);
        atomic_store(&lane->keeping, false);
        lane_keep_keys_again(lane);
    }
}

void lane_keep_keys_again(struct lane *lane) {
    struct lane_job *none = NULL;
    struct queue *loads = lane_brings(lane) ? lane->to_stage : lane->to_prove;
    if (lane->config.keep) {
        IGNORE(queue_try_put(loads, &none)); /* full: whoever empties it comes by */
    }
}

void lane_keep_keys(struct lane *lane) {
    bool starts = !atomic_load(&lane->kept_once);
    if (!lane->config.keep || (atomic_load(&lane->draining) && !starts)) {
        return;
    }
    lane_drop_keys(lane);
    if (atomic_exchange(&lane->keeping, true)) {
        return;
    }
    atomic_store(&lane->kept_once, true);
    for (const char *at = lane->config.keep; *at && !atomic_load(&lane->leaving);) {
        char quoted[ERR_DETAIL_BYTES + 64], hex[SHA256_HEX_BYTES];
        struct sha256 digest;
        size_t len = strcspn(at, ",");
        snprintf(hex, sizeof hex, "%.*s", (int)len, at);
        enum err code = sha256_from_hex(&digest, hex);
        if (code == OK) {
            code = keep_key(lane, &digest);
        }
        if (code != OK) {
            log_warn("key.not_kept", "key=%.16s error=%s detail=%s", hex, err_name(code),
                     log_quote(quoted, sizeof quoted, err_detail()));
        }
        at += len + (at[len] == ',');
    }
}
