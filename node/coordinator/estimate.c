/* A table of keys, hashed by digest, each with one row of speeds, one for each kind of device.
 *
 * Averages move by 1/n for the first AVERAGE_OVER jobs, then by 1/AVERAGE_OVER: quick at first, steady later, and never stuck.
 */
#include "node/coordinator/estimate.h"

#include <stdio.h>
#include <string.h>

#include "node/base/mem.h"

enum { KEY_CHAINS = 4096, AVERAGE_OVER = 32 };
static const uint64_t GUESS_JOB_NS = UINT64_C(1000000000);
/* Who guesses too little fills a few lanes with what takes long, and lets the rest wait for them. */
static const uint64_t GUESS_LEAST_NS = UINT64_C(250000000);
static const uint64_t GUESS_LOAD_NS = UINT64_C(500000000);
static const uint64_t UNFIT_NS = UINT64_C(60000000000);

enum err estimates_init(struct estimates *out) {
    AUTO(estimates_done) struct estimates e = {0};
    TRY(mem_new(&e.keys, KEYS_KNOWN_MAX, sizeof *e.keys));
    TRY(mem_new(&e.chains, KEY_CHAINS, sizeof *e.chains));
    TRY(mem_new(&e.devices, DEVICES_KNOWN_MAX, sizeof *e.devices));
    *out = e;
    e = (struct estimates){0};
    return OK;
}

void estimates_done(struct estimates *e) {
    for (size_t i = 0; i < e->keys_count; i++) {
        mem_free(e->keys[i].speeds);
    }
    mem_free(e->keys);
    mem_free(e->chains);
    mem_free(e->devices);
    *e = (struct estimates){0};
}

void estimates_forget_users(struct estimates *e) {
    for (size_t i = 0; i < e->keys_count; i++) {
        e->keys[i].users = 0;
    }
}

/* --- Keys --- */

static uint32_t *chain_of(const struct estimates *e, const struct sha256 *digest) {
    return &e->chains[hash_xxh64(bytes_of(digest->b, sizeof digest->b)) % KEY_CHAINS];
}

static void unchain(struct estimates *e, size_t idx) {
    uint32_t *link = chain_of(e, &e->keys[idx].digest);
    while (*link != idx + 1) {
        link = &e->keys[*link - 1].next;
    }
    *link = e->keys[idx].next;
}

/* A slot for a new key: a fresh one, or that of the key unused for longest. */
static enum err slot_for_key(size_t *idx, struct estimates *e) {
    if (e->keys_count < KEYS_KNOWN_MAX) {
        struct speed *speeds = NULL;
        TRY(mem_new(&speeds, DEVICES_KNOWN_MAX, sizeof *speeds));
        e->keys[e->keys_count].speeds = speeds;
        *idx = e->keys_count++;
        return OK;
    }
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < e->keys_count; i++) {
        if (!e->keys[i].users && (best == SIZE_MAX || e->keys[i].used_at < e->keys[best].used_at)) {
            best = i;
        }
    }
    REQUIRE(best != SIZE_MAX, E_LIMIT, "more than %d keys have open jobs", KEYS_KNOWN_MAX);
    unchain(e, best);
    memset(e->keys[best].speeds, 0, DEVICES_KNOWN_MAX * sizeof(struct speed));
    *idx = best;
    return OK;
}

enum err estimates_key(uint32_t *key_idx, struct estimates *e, const struct sha256 *digest) {
    uint32_t *chain = chain_of(e, digest);
    for (uint32_t i = *chain; i; i = e->keys[i - 1].next) {
        if (!memcmp(&e->keys[i - 1].digest, digest, sizeof *digest)) {
            e->keys[i - 1].used_at = ++e->clock;
            *key_idx = i - 1;
            return OK;
        }
    }
    size_t idx = 0;
    TRY(slot_for_key(&idx, e));
    struct key_view *key = &e->keys[idx];
    *key = (struct key_view){
        .digest = *digest, .speeds = key->speeds, .used_at = ++e->clock, .next = *chain};
    *chain = (uint32_t)idx + 1;
    *key_idx = (uint32_t)idx;
    return OK;
}

void estimates_key_ref(struct estimates *e, uint32_t key_idx) {
    e->keys[key_idx].users++;
}

void estimates_key_unref(struct estimates *e, uint32_t key_idx) {
    ASSERT(e->keys[key_idx].users > 0);
    e->keys[key_idx].users--;
}

uint32_t estimates_device(struct estimates *e, const char *backend, const char *device) {
    char name[sizeof e->devices[0]];
    snprintf(name, sizeof name, "%.20s: %.100s", backend, device);
    for (size_t i = 0; i < e->devices_count; i++) {
        if (!strcmp(e->devices[i], name)) {
            return (uint32_t)i;
        }
    }
    if (e->devices_count == DEVICES_KNOWN_MAX) {
        return DEVICES_KNOWN_MAX - 1;
    }
    memcpy(e->devices[e->devices_count], name, sizeof name);
    return (uint32_t)e->devices_count++;
}

/* --- Learning --- */

static void average(uint64_t *mean, uint32_t *count, uint64_t ns) {
    *count += *count < AVERAGE_OVER;
    *mean = ns > *mean ? *mean + (ns - *mean) / *count : *mean - (*mean - ns) / *count;
}

void estimates_learn_job(struct estimates *e, uint32_t key_idx, uint32_t device_idx, uint64_t ns) {
    struct speed *s = &e->keys[key_idx].speeds[device_idx];
    average(&s->job_ns, &s->jobs, ns);
}

void estimates_learn_load(struct estimates *e, uint32_t key_idx, uint32_t device_idx, uint64_t ns) {
    struct speed *s = &e->keys[key_idx].speeds[device_idx];
    average(&s->load_ns, &s->loads, ns);
}

void estimates_tell(struct estimates *e, uint32_t key_idx, uint32_t device_idx, uint64_t job_ns,
                    uint64_t load_ns) {
    struct speed *s = &e->keys[key_idx].speeds[device_idx];
    s->told_job_ns = job_ns ? job_ns : s->told_job_ns;
    s->told_load_ns = load_ns ? load_ns : s->told_load_ns;
}

void estimates_unfit(struct estimates *e, uint32_t key_idx, uint32_t device_idx, uint64_t bytes,
                     uint64_t now_ns) {
    struct speed *s = &e->keys[key_idx].speeds[device_idx];
    bool still = now_ns < s->unfit_until_ns;
    s->unfit_bytes = still && s->unfit_bytes > bytes ? s->unfit_bytes : bytes;
    s->unfit_until_ns = now_ns + UNFIT_NS;
}

/* --- Asking --- */

bool estimates_fits(const struct estimates *e, uint32_t key_idx, uint32_t device_idx,
                    uint64_t bytes, uint64_t now_ns) {
    const struct key_view *key = &e->keys[key_idx];
    const struct speed *s = &key->speeds[device_idx];
    bool refused = now_ns < s->unfit_until_ns && bytes <= s->unfit_bytes;
    bool is_cpu = !strncmp(e->devices[device_idx], "cpu:", 4);
    bool too_small = is_cpu && bytes && key->need_bytes > bytes;
    return !refused && !too_small;
}

static uint64_t known_job_ns(const struct speed *s) {
    return s->jobs ? s->job_ns : s->told_job_ns;
}

static uint64_t known_load_ns(const struct speed *s) {
    return s->loads ? s->load_ns : s->told_load_ns;
}

/* What the other kinds take, where this one is not known yet. */
static uint64_t mean_of_others(const struct estimates *e, uint32_t key_idx,
                               uint64_t (*known)(const struct speed *s)) {
    uint64_t mean = 0, count = 0;
    for (size_t i = 0; i < e->devices_count; i++) {
        uint64_t ns = known(&e->keys[key_idx].speeds[i]);
        count += ns > 0;
        if (ns > mean) {
            mean += (ns - mean) / count;
        } else if (ns > 0) {
            mean -= (mean - ns) / count;
        }
    }
    return mean;
}

uint64_t estimates_job_ns(const struct estimates *e, uint32_t key_idx, uint32_t device_idx) {
    const struct key_view *key = &e->keys[key_idx];
    uint64_t ns = known_job_ns(&key->speeds[device_idx]);
    ns = ns ? ns : mean_of_others(e, key_idx, known_job_ns);
    if (ns || !key->guess_ns) {
        return ns ? ns : GUESS_JOB_NS;
    }
    return key->guess_ns > GUESS_LEAST_NS ? key->guess_ns : GUESS_LEAST_NS;
}

uint64_t estimates_device_ns(const struct estimates *e, uint32_t key_idx, uint32_t device_idx) {
    return e->keys[key_idx].speeds[device_idx].told_job_ns;
}

uint64_t estimates_load_ns(const struct estimates *e, uint32_t key_idx, uint32_t device_idx) {
    uint64_t ns = known_load_ns(&e->keys[key_idx].speeds[device_idx]);
    ns = ns ? ns : mean_of_others(e, key_idx, known_load_ns);
    return ns ? ns : GUESS_LOAD_NS;
}
