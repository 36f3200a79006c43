/* Every point of a key: minutes on a large one, so done once per digest and remembered.
 *
 * The points are cut into chunks that take a few milliseconds each, handed to the pool in rounds; between rounds the
 * caller's thread reports progress and stops at the first fault. The fault reported is the first in the order of the
 * sets and indices among those found, so the same damage gives the same sentence on any number of threads. Two
 * pairings at the end tie beta and delta in G1 to their twins in G2: a key that mixes them makes proofs that never
 * verify, and no single point of it is wrong.
 */
#include "node/key/check.h"
#include "node/base/clock.h"
#include "node/base/lock.h"
#include "node/key/parts.h"
#include "node/key/remembered.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { CHUNK_POINTS = 256, ROUND_CHUNKS_PER_THREAD = 16 };

struct chunk {
    enum key_points which;
    uint64_t from;
};

struct check {
    const struct key_parts *parts; /* lent */
    const char *name;              /* lent */
    uint64_t first_chunk;          /* of this round */
    struct lock lock;              /* guards the rest */
    struct key_report report;      /* [lock] */
    bool failed;                   /* [lock] */
    uint64_t failed_chunk;         /* [lock] the lowest one */
    struct fault fault;            /* [lock] */
};

static uint64_t chunks_of(const struct key_parts *parts, enum key_points which) {
    return (parts->shape.points_count[which] + CHUNK_POINTS - 1) / CHUNK_POINTS;
}

static struct chunk chunk_at(const struct key_parts *parts, uint64_t idx) {
    for (unsigned which = 0; which < KEY_POINTS_COUNT; which++) {
        uint64_t here = chunks_of(parts, (enum key_points)which);
        if (idx < here) {
            return (struct chunk){(enum key_points)which, idx * CHUNK_POINTS};
        }
        idx -= here;
    }
    ASSERT(false);
    return (struct chunk){0};
}

static void check_chunk(void *ctx, size_t idx, unsigned worker_idx) {
    (void)worker_idx;
    struct check *check = ctx;
    uint64_t nth = check->first_chunk + idx;
    struct chunk chunk = chunk_at(check->parts, nth);
    uint64_t left = check->parts->shape.points_count[chunk.which] - chunk.from;
    struct point_range range = {chunk.which, chunk.from, left < CHUNK_POINTS ? left : CHUNK_POINTS,
                                true};
    uint64_t infinities = 0;
    enum err e = key_points_check(&infinities, check->parts, check->name, range);
    struct fault fault = fault_of(e);
    lock_take(&check->lock);
    check->report.points_checked += range.count;
    check->report.infinities_count[chunk.which] += infinities;
    if (e != OK && (!check->failed || nth < check->failed_chunk)) {
        check->failed = true;
        check->failed_chunk = nth;
        check->fault = fault;
    }
    lock_give(&check->lock);
}

/* e(beta1, G2) = e(G1, beta2), and delta likewise. */
static FALLIBLE twins_check(const struct vkey *vk, const char *name) {
    const struct curve *c = vk->curve;
    struct g1 pairs1[2];
    struct g2 pairs2[2];
    c->g1_neg(&pairs1[1], &c->g1_generator);
    pairs2[0] = c->g2_generator;
    pairs1[0] = vk->beta1;
    pairs2[1] = vk->beta2;
    REQUIRE(c->pairing_is_one(pairs1, pairs2, 2), E_CURVE,
            "%s: beta in G1 and beta in G2 belong to different keys; fetch the file again", name);
    pairs1[0] = vk->delta1;
    pairs2[1] = vk->delta2;
    REQUIRE(c->pairing_is_one(pairs1, pairs2, 2), E_CURVE,
            "%s: delta in G1 and delta in G2 belong to different keys; fetch the file again", name);
    return OK;
}

static FALLIBLE check_all(struct key_report *out, const struct key_parts *parts, const char *name,
                          struct pool *pool, key_pace *pace, void *pace_ctx) {
    struct check check = {.parts = parts, .name = name, .lock = LOCK_STATIC(LOCK_KEY)};
    uint64_t total = 0;
    for (unsigned which = 0; which < KEY_POINTS_COUNT; which++) {
        total += chunks_of(parts, (enum key_points)which);
    }
    size_t round = ROUND_CHUNKS_PER_THREAD * (pool ? pool_threads_count(pool) : 1);
    while (check.first_chunk < total && !check.failed) {
        uint64_t left = total - check.first_chunk;
        size_t now = left < round ? left : round;
        pool_for(pool, now, check_chunk, &check);
        check.first_chunk += now;
        if (pace && !pace(pace_ctx, (double)check.first_chunk / (double)total)) {
            break;
        }
    }
    lock_done(&check.lock);
    if (check.failed) {
        return fault_raise(&check.fault);
    }
    REQUIRE(check.first_chunk >= total, E_CANCELLED, "%s: the check of its points was interrupted",
            name);
    TRY(twins_check(&parts->vkey, name));
    *out = check.report;
    return OK;
}

/* "points 1 <checked> <infinities …>": the number after the word rises when the check learns something new. */
#define CHECK_LINE                                                                                 \
    "points 1 %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n"
#define CHECK_LINE_READ                                                                            \
    "points 1 %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 "\n"

static bool report_recall(struct key_report *out, const struct key_parts *parts,
                          const char *digest_hex) {
    char line[REMEMBERED_BYTES_MAX], again[REMEMBERED_BYTES_MAX];
    struct key_report r = {.remembered = true};
    uint64_t *inf = r.infinities_count, points = 0;
    if (!remembered_get(line, "checked", digest_hex) ||
        sscanf(line, CHECK_LINE_READ, &r.points_checked, &inf[0], &inf[1], &inf[2], &inf[3],
               &inf[4]) != 6) {
        return false;
    }
    for (unsigned which = 0; which < KEY_POINTS_COUNT; which++) {
        points += parts->shape.points_count[which];
    }
    snprintf(again, sizeof again, CHECK_LINE, r.points_checked, inf[0], inf[1], inf[2], inf[3],
             inf[4]);
    if (points != r.points_checked || strcmp(line, again) != 0) {
        return false;
    }
    *out = r;
    return true;
}

static void report_remember(const struct key_report *r, const char *digest_hex) {
    char line[REMEMBERED_BYTES_MAX];
    const uint64_t *inf = r->infinities_count;
    snprintf(line, sizeof line, CHECK_LINE, r->points_checked, inf[0], inf[1], inf[2], inf[3],
             inf[4]);
    remembered_put("checked", digest_hex, line);
}

static FALLIBLE check_once(struct key_report *out, struct key *key, struct pool *pool,
                           key_pace *pace, void *pace_ctx) {
    _Static_assert(KEY_POINTS_COUNT == 5, "the remembered line has five infinity counts");
    const struct key_parts *parts = key_parts_of(key);
    uint64_t start_ns = clock_ns();
    struct sha256 digest;
    char hex[SHA256_HEX_BYTES];
    TRY(key_digest(&digest, key));
    sha256_hex(hex, &digest);
    struct key_report report;
    if (!report_recall(&report, parts, hex)) {
        enum err e = check_all(&report, parts, key_path(key), pool, pace, pace_ctx);
        TRY(key_intact(key));
        TRY(e);
        report_remember(&report, hex);
    }
    report.elapsed_ns = clock_ns() - start_ns;
    *out = report;
    return OK;
}

struct progress {
    void (*call)(void *ctx, double done);
    void *ctx;
};

static bool report_progress(void *ctx, double done) {
    const struct progress *p = ctx;
    if (p->call) {
        p->call(p->ctx, done);
    }
    return true;
}

FALLIBLE key_check(struct key_report *out, struct key *key, struct pool *pool,
                   void (*progress)(void *ctx, double done), void *progress_ctx) {
    struct progress p = {progress, progress_ctx};
    return check_once(out, key, pool, report_progress, &p);
}

FALLIBLE key_check_paced(struct key_report *out, struct key *key, struct pool *pool, key_pace *pace,
                         void *pace_ctx) {
    REQUIRE(pace(pace_ctx, 0), E_CANCELLED, "%s: the check of its points was put off",
            key_path(key));
    return check_once(out, key, pool, pace, pace_ctx);
}
