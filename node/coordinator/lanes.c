/* A flat table, searched linearly: a fleet has hundreds of lanes, not millions. */
#include "node/coordinator/lanes.h"

#include <stdio.h>
#include <string.h>

#include "node/base/mem.h"
#include "proto/fleet.pb-c.h"
#include "proto/unpack.h"

static const uint64_t GUESS_JOB_NS = UINT64_C(1000000000);
static const uint64_t GUESS_LOAD_NS = UINT64_C(500000000);
static const uint64_t GUESS_FETCH_NS = UINT64_C(1000000000);

enum err lanes_init(struct lanes *out) {
    *out = (struct lanes){0};
    return mem_new(&out->views, LANES_MAX, sizeof *out->views);
}

void lanes_done(struct lanes *l) {
    mem_free(l->views);
    *l = (struct lanes){0};
}

size_t lanes_find(const struct lanes *l, const struct lane_ref *ref) {
    for (size_t i = 0; i < l->count; i++) {
        if (l->views[i].ref.gpu == ref->gpu && !strcmp(l->views[i].ref.node, ref->node)) {
            return i;
        }
    }
    return SIZE_MAX;
}

/* Where names change with every start, dead lanes make room for living ones. */
static size_t longest_dead(const struct lanes *l) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < l->count; i++) {
        if (!l->views[i].alive &&
            (best == SIZE_MAX || l->views[i].seen_ns < l->views[best].seen_ns)) {
            best = i;
        }
    }
    return best;
}

static enum err find_or_add(size_t *idx, struct lanes *l, const char *node, uint32_t gpu) {
    struct lane_ref ref = {.gpu = gpu};
    TRY(id_check(node, "node of a lane"));
    snprintf(ref.node, sizeof ref.node, "%s", node);
    size_t at = lanes_find(l, &ref);
    if (at == SIZE_MAX) {
        at = l->count < LANES_MAX ? l->count++ : longest_dead(l);
        REQUIRE(at != SIZE_MAX, E_LIMIT, "more than %d lanes", LANES_MAX);
        l->views[at] = (struct lane_view){.ref = ref, .depth_wanted = 4};
    }
    *idx = at;
    return OK;
}

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
    TRY(message_unpack(&m, &bellows__v1__heartbeat__descriptor, heartbeat, MESSAGE_BYTES_MAX,
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
    v->open = m->state == BELLOWS__V1__LANE_STATE__LANE_READY;
    v->depth = m->depth;
    v->empty_since_ns = m->depth > 0 ? 0 : v->empty_since_ns ? v->empty_since_ns : now_ns;
    if (was_alive && !alive) {
        *news = LANE_NEWS_DIED;
    } else if (*news == LANE_NEWS_NONE && was_open && !v->open) {
        *news = LANE_NEWS_LEAVING;
    }
    return OK;
}

static struct lane_key *key_slot(struct lane_view *v, ProtobufCBinaryData digest) {
    for (size_t i = 0; i < v->keys_count && digest.len == SHA256_BYTES; i++) {
        if (!memcmp(v->keys[i].digest.b, digest.data, SHA256_BYTES)) {
            return &v->keys[i];
        }
    }
    if (digest.len != SHA256_BYTES || v->keys_count == LANE_KEYS_KNOWN) {
        return NULL;
    }
    struct lane_key *key = &v->keys[v->keys_count++];
    *key = (struct lane_key){0};
    memcpy(key->digest.b, digest.data, SHA256_BYTES);
    return key;
}

enum err lanes_read_info(size_t *lane_idx, struct lanes *l, struct bytes info, uint64_t now_ns) {
    AUTO(message_free) Bellows__V1__LaneInfo *m = NULL;
    TRY(message_unpack(&m, &bellows__v1__lane_info__descriptor, info, MESSAGE_BYTES_MAX,
                       "lane entry"));
    TRY(find_or_add(lane_idx, l, m->node, m->gpu));
    struct lane_view *v = &l->views[*lane_idx];
    (void)now_ns; /* an entry may be old: it is no sign of life */
    v->depth_wanted = m->depth_max ? m->depth_max : v->depth_wanted;
    v->keys_count = 0;
    for (size_t i = 0; i < m->n_speeds; i++) {
        struct lane_key *key = key_slot(v, m->speeds[i]->key_digest);
        if (key) {
            key->prove_ns = m->speeds[i]->prove_ns;
            key->load_ns = m->speeds[i]->load_ns;
        }
    }
    for (size_t i = 0; i < m->n_keys_resident; i++) {
        struct lane_key *key = key_slot(v, m->keys_resident[i]);
        if (key) {
            key->resident = true;
        }
    }
    for (size_t i = 0; i < m->n_keys_cached; i++) {
        struct lane_key *key = key_slot(v, m->keys_cached[i]);
        if (key) {
            key->cached = true;
        }
    }
    return OK;
}

size_t lanes_next_silent(struct lanes *l, uint64_t now_ns, uint64_t silence_ns) {
    for (size_t i = 0; i < l->count; i++) {
        struct lane_view *v = &l->views[i];
        if (v->alive && now_ns > v->seen_ns && now_ns - v->seen_ns > silence_ns) {
            v->alive = v->open = false;
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

static const struct lane_key *find_key(const struct lane_view *v, const struct sha256 *digest) {
    for (size_t i = 0; i < v->keys_count; i++) {
        if (!memcmp(&v->keys[i].digest, digest, sizeof *digest)) {
            return &v->keys[i];
        }
    }
    return NULL;
}

struct lane_cost lanes_cost(const struct lanes *l, size_t lane_idx, const struct sha256 *digest) {
    struct lane_cost cost = {0};
    const struct lane_key *own = find_key(&l->views[lane_idx], digest);
    cost.job_ns = own ? own->prove_ns : 0;
    uint64_t load_ns = own ? own->load_ns : 0;
    for (size_t i = 0; i < l->count && (!cost.job_ns || !load_ns); i++) {
        const struct lane_key *other = find_key(&l->views[i], digest);
        cost.job_ns = cost.job_ns ? cost.job_ns : other ? other->prove_ns : 0;
        load_ns = load_ns ? load_ns : other ? other->load_ns : 0;
    }
    cost.job_ns = cost.job_ns ? cost.job_ns : GUESS_JOB_NS;
    if (!own || !own->resident) {
        cost.load_ns = load_ns ? load_ns : GUESS_LOAD_NS;
        cost.load_ns += own && own->cached ? 0 : GUESS_FETCH_NS;
    }
    return cost;
}
