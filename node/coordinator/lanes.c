/* A flat table with a hash from names to places in it; a lane's keys are few and searched linearly. */
#include "node/coordinator/lanes.h"

#include <stdio.h>
#include <string.h>

#include "node/base/mem.h"
#include "proto/fleet.pb-c.h"
#include "proto/unpack.h"

enum { LANE_CHAINS = 4096, PACE_ONE = 1024, PACE_OVER = 32, PACE_MOST = 64 * PACE_ONE, DEPTH = 4 };
static const uint64_t GUESS_FETCH_NS = UINT64_C(1000000000);

enum err lanes_init(struct lanes *out, struct estimates *estimates) {
    AUTO(lanes_done) struct lanes l = {.estimates = estimates};
    TRY(mem_new(&l.views, LANES_MAX, sizeof *l.views));
    TRY(mem_new(&l.chains, LANE_CHAINS, sizeof *l.chains));
    *out = l;
    l = (struct lanes){0};
    return OK;
}

void lanes_done(struct lanes *l) {
    mem_free(l->views);
    mem_free(l->chains);
    *l = (struct lanes){0};
}

/* --- Names --- */

static uint32_t *chain_of(const struct lanes *l, const struct lane_ref *ref) {
    char text[ID_BYTES_MAX + 16];
    int len = snprintf(text, sizeof text, "%s.%u", ref->node, ref->gpu);
    return &l->chains[hash_xxh64(bytes_of(text, (size_t)len)) % LANE_CHAINS];
}

size_t lanes_find(const struct lanes *l, const struct lane_ref *ref) {
    uint32_t i = *chain_of(l, ref);
    while (i && !lane_ref_is(&l->views[i - 1].ref, lane_name_of(ref))) {
        i = l->views[i - 1].next;
    }
    return i ? i - 1 : SIZE_MAX;
}

static void forget_keys(struct lanes *l, struct lane_view *v) {
    for (size_t i = 0; i < v->keys_count; i++) {
        estimates_key_unref(l->estimates, v->keys[i].key_idx);
    }
    v->keys_count = 0;
}

static void unchain(struct lanes *l, size_t idx) {
    uint32_t *link = chain_of(l, &l->views[idx].ref);
    while (*link != idx + 1) {
        link = &l->views[*link - 1].next;
    }
    *link = l->views[idx].next;
    forget_keys(l, &l->views[idx]);
}

/* Where names change with every start, dead lanes make room for living ones. */
static size_t longest_dead(const struct lanes *l) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < l->count; i++) {
        const struct lane_view *v = &l->views[i];
        if (!v->alive && !v->held && (best == SIZE_MAX || v->seen_ns < l->views[best].seen_ns)) {
            best = i;
        }
    }
    return best;
}

enum err lanes_add(size_t *lane_idx, struct lanes *l, const struct lane_ref *ref) {
    size_t at = lanes_find(l, ref);
    if (at == SIZE_MAX) {
        bool fresh = l->count < LANES_MAX;
        at = fresh ? l->count : longest_dead(l);
        REQUIRE(at != SIZE_MAX, E_LIMIT, "more than %d lanes", LANES_MAX);
        if (fresh) {
            l->count++;
        } else {
            unchain(l, at);
        }
        uint32_t *chain = chain_of(l, ref);
        l->views[at] = (struct lane_view){.ref = *ref,
                                          .depth_wanted = DEPTH,
                                          .pace = PACE_ONE,
                                          .device_idx = estimates_device(l->estimates, "", ""),
                                          .next = *chain};
        *chain = (uint32_t)at + 1;
    }
    *lane_idx = at;
    return OK;
}

static enum err find_or_add(size_t *idx, struct lanes *l, const char *node, uint32_t gpu) {
    struct lane_ref ref = {.gpu = gpu};
    TRY(id_check(node, "node of a lane"));
    snprintf(ref.node, sizeof ref.node, "%s", node);
    return lanes_add(idx, l, &ref);
}

/* --- Heartbeats --- */

static bool is_retired(const struct lane_view *v, const char *session) {
    for (size_t i = 0; i < LANE_SESSIONS_KEPT; i++) {
        if (!strcmp(v->retired[i], session)) {
            return true;
        }
    }
    return false;
}

static enum lane_news note_session(struct lane_view *v, const char *session, bool alive) {
    bool known = v->session[0] != 0, same = !strcmp(v->session, session);
    if (!same) {
        if (!alive) {
            return LANE_NEWS_NONE; /* the last words of an older process */
        }
        if (is_retired(v, session)) {
            return LANE_NEWS_GHOST;
        }
        snprintf(v->retired[v->retired_count++ % LANE_SESSIONS_KEPT], sizeof v->retired[0], "%s",
                 v->session);
        snprintf(v->session, sizeof v->session, "%s", session);
        v->empty_since_ns = 0;
        return known ? LANE_NEWS_REBORN : LANE_NEWS_CAME;
    }
    return v->alive || !alive ? LANE_NEWS_NONE : LANE_NEWS_CAME;
}

enum err lanes_hear(enum lane_news *news, size_t *lane_idx, struct lanes *l, struct bytes heartbeat,
                    uint64_t now_ns) {
    AUTO(message_free) Bellows__V1__Heartbeat *m = NULL;
    TRY(message_unpack(&m, &bellows__v1__heartbeat__descriptor, heartbeat, HEARTBEAT_BYTES_MAX,
                       "heartbeat"));
    TRY(id_check(m->session, "session of a lane"));
    TRY(find_or_add(lane_idx, l, m->node, m->gpu));
    struct lane_view *v = &l->views[*lane_idx];
    bool alive = m->state == BELLOWS__V1__LANE_STATE__LANE_READY ||
                 m->state == BELLOWS__V1__LANE_STATE__LANE_STARTING ||
                 m->state == BELLOWS__V1__LANE_STATE__LANE_DRAINING;
    bool was_alive = v->alive, was_open = v->open;
    *news = note_session(v, m->session, alive);
    if (strcmp(v->session, m->session)) {
        return OK;
    }
    v->seen_ns = now_ns;
    v->alive = alive;
    v->silent = false;
    v->open = m->state == BELLOWS__V1__LANE_STATE__LANE_READY;
    v->full = false;
    v->depth = m->depth;
    v->empty_since_ns = m->depth > 0 ? 0 : v->empty_since_ns ? v->empty_since_ns : now_ns;
    if (was_alive && !alive) {
        *news = LANE_NEWS_DIED;
    } else if (*news == LANE_NEWS_NONE && was_open && !v->open) {
        *news = LANE_NEWS_LEAVING;
    }
    return OK;
}

size_t lanes_next_silent(struct lanes *l, uint64_t now_ns, uint64_t silence_ns) {
    for (size_t i = 0; i < l->count; i++) {
        struct lane_view *v = &l->views[i];
        if (v->alive && now_ns > v->seen_ns && now_ns - v->seen_ns > silence_ns) {
            v->alive = v->open = false;
            v->silent = true;
            return i;
        }
    }
    return SIZE_MAX;
}

void lanes_excuse(struct lanes *l, uint64_t now_ns) {
    for (size_t i = 0; i < l->count; i++) {
        l->views[i].seen_ns = now_ns;
        l->views[i].empty_since_ns = 0;
    }
}

/* --- Keys --- */

static struct lane_key *find_key(const struct lane_view *v, uint32_t key_idx) {
    for (size_t i = 0; i < v->keys_count; i++) {
        if (v->keys[i].key_idx == key_idx) {
            return (struct lane_key *)(uintptr_t)&v->keys[i];
        }
    }
    return NULL;
}

/* Its entry, made if there is room for one more; NULL otherwise. */
static struct lane_key *key_slot(struct lanes *l, struct lane_view *v, uint32_t key_idx) {
    struct lane_key *key = find_key(v, key_idx);
    if (!key && v->keys_count < LANE_KEYS_KNOWN) {
        key = &v->keys[v->keys_count++];
        *key = (struct lane_key){.key_idx = key_idx};
        estimates_key_ref(l->estimates, key_idx);
    }
    return key;
}

static struct lane_key *told_key(struct lanes *l, struct lane_view *v, ProtobufCBinaryData digest) {
    struct sha256 key;
    uint32_t key_idx;
    if (digest.len != sizeof key.b) {
        return NULL;
    }
    memcpy(key.b, digest.data, sizeof key.b);
    return estimates_key(&key_idx, l->estimates, &key) == OK ? key_slot(l, v, key_idx) : NULL;
}

/* What is only known because it was told goes before it is told anew. */
static void clear_told(struct lanes *l, struct lane_view *v) {
    for (size_t i = v->keys_count; i-- > 0;) {
        v->keys[i].resident = v->keys[i].cached = false;
        if (!v->keys[i].held) {
            estimates_key_unref(l->estimates, v->keys[i].key_idx);
            v->keys[i] = v->keys[--v->keys_count];
        }
    }
}

static void hope(struct lane_view *v, const Bellows__V1__LaneInfo *m, uint64_t now_ns) {
    if (!v->session[0] && m->state == BELLOWS__V1__LANE_STATE__LANE_READY &&
        id_is_valid(m->session)) {
        snprintf(v->session, sizeof v->session, "%s", m->session);
        v->alive = v->open = true;
        v->seen_ns = now_ns;
    }
}

enum err lanes_read_info(size_t *lane_idx, struct lanes *l, struct bytes info, uint64_t now_ns,
                         bool hopeful) {
    AUTO(message_free) Bellows__V1__LaneInfo *m = NULL;
    TRY(message_unpack(&m, &bellows__v1__lane_info__descriptor, info, LANE_INFO_BYTES_MAX,
                       "lane entry"));
    TRY(find_or_add(lane_idx, l, m->node, m->gpu));
    struct lane_view *v = &l->views[*lane_idx];
    if (hopeful) {
        hope(v, m, now_ns);
    }
    v->depth_wanted = m->depth_max ? m->depth_max : v->depth_wanted;
    v->device_idx = estimates_device(l->estimates, m->backend, m->device);
    v->memory_bytes = strcmp(m->backend, "cpu") ? m->device_bytes : m->host_bytes;
    clear_told(l, v);
    for (size_t i = 0; i < m->n_speeds; i++) {
        struct lane_key *key = told_key(l, v, m->speeds[i]->key_digest);
        if (key) {
            estimates_tell(l->estimates, key->key_idx, v->device_idx, m->speeds[i]->prove_ns,
                           m->speeds[i]->load_ns);
        }
    }
    for (size_t i = 0; i < m->n_keys_resident; i++) {
        struct lane_key *key = told_key(l, v, m->keys_resident[i]);
        if (key) {
            key->resident = true;
        }
    }
    for (size_t i = 0; i < m->n_keys_cached; i++) {
        struct lane_key *key = told_key(l, v, m->keys_cached[i]);
        if (key) {
            key->cached = true;
        }
    }
    return OK;
}

void lanes_hold_key(struct lanes *l, size_t lane_idx, uint32_t key_idx) {
    struct lane_key *key = key_slot(l, &l->views[lane_idx], key_idx);
    if (key) {
        key->held++;
    }
}

void lanes_release_key(struct lanes *l, size_t lane_idx, uint32_t key_idx, bool used) {
    struct lane_key *key = find_key(&l->views[lane_idx], key_idx);
    if (key) {
        key->held -= key->held > 0;
        key->resident |= used;
    }
}

/* --- Costs --- */

void lanes_learn_pace(struct lanes *l, size_t lane_idx, uint64_t ns, uint64_t expected_ns) {
    struct lane_view *v = &l->views[lane_idx];
    double ratio = (double)ns / (double)(expected_ns ? expected_ns : 1) * PACE_ONE;
    double pace = v->pace + ((ratio < PACE_MOST ? ratio : PACE_MOST) - v->pace) / PACE_OVER;
    v->pace = pace < 1 ? 1 : (uint32_t)pace;
}

struct schedule_cost lanes_cost(const struct lanes *l, size_t lane_idx, uint32_t key_idx,
                                uint64_t now_ns) {
    const struct lane_view *v = &l->views[lane_idx];
    if (!estimates_fits(l->estimates, key_idx, v->device_idx, v->memory_bytes, now_ns)) {
        return (struct schedule_cost){.job_ns = SCHEDULE_NEVER};
    }
    uint64_t job_ns = estimates_job_ns(l->estimates, key_idx, v->device_idx);
    struct schedule_cost cost = {.job_ns = job_ns / PACE_ONE * v->pace +
                                           job_ns % PACE_ONE * v->pace / PACE_ONE};
    uint64_t device_ns = estimates_device_ns(l->estimates, key_idx, v->device_idx);
    cost.slack_ns = device_ns && device_ns < cost.job_ns ? cost.job_ns - device_ns : 0;
    const struct lane_key *key = find_key(v, key_idx);
    if (!key || (!key->resident && !key->held)) {
        cost.load_ns = estimates_load_ns(l->estimates, key_idx, v->device_idx);
        cost.load_ns += key && key->cached ? 0 : GUESS_FETCH_NS;
    }
    return cost;
}
