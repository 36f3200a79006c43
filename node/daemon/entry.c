/* The entry thread: what a lane asks of the server and waits for, apart from its jobs. It writes the directory entry when it has changed,
 * and every few seconds; and it looks for cancel marks, in case the message was lost on the way: at once when the connection may have
 * lost one, and every few seconds. Apart from the liveness thread, so that a server that answers slowly costs no heartbeat.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/daemon/lane_threads.h"
#include "proto/fleet.pb-c.h"

static const uint64_t LOOK_NS = UINT64_C(500000000);
static const uint64_t CANCEL_NS = UINT64_C(5000000000);
static const uint64_t INFO_NS = UINT64_C(5000000000);
enum { KEYS_TOLD_MAX = 64 };

static void bytes_free(struct bytes_mut *b) {
    mem_free(b->ptr);
}

/* The lane at one moment, copied under the lock: reason and state belong together. */
struct glance {
    size_t held_count;
    char tenant[ID_BYTES_MAX + 1], job[ID_BYTES_MAX + 1]; /* being proved; "" */
    Bellows__V1__LaneState state;
    char reason[RECORD_DETAIL_BYTES];
};

static void look(struct glance *out, struct lane *lane) {
    *out = (struct glance){0};
    LOCK_SCOPE(&lane->lock);
    const struct lane_job *proving = lane->proving.job;
    if (proving) {
        snprintf(out->tenant, sizeof out->tenant, "%s", proving->name.tenant);
        snprintf(out->job, sizeof out->job, "%s", proving->name.job);
    }
    out->held_count = lane->held_count;
    out->state = lane_state(lane);
    snprintf(out->reason, sizeof out->reason, "%s", lane->reason);
}

/* --- The directory entry --- */

struct key_lists { /* of a directory entry */
    struct key_speed speeds[KEYS_TOLD_MAX];
    struct sha256 cached[KEYS_TOLD_MAX];
    ProtobufCBinaryData resident_bytes[KEYS_TOLD_MAX], cached_bytes[KEYS_TOLD_MAX];
    Bellows__V1__KeySpeed speed_messages[KEYS_TOLD_MAX], *speed_ptrs[KEYS_TOLD_MAX];
};

static void fill_keys(Bellows__V1__LaneInfo *m, struct key_lists *lists, struct lane *lane) {
    m->n_speeds = keycache_speeds(lists->speeds, KEYS_TOLD_MAX, lane->keycache);
    for (size_t i = 0; i < m->n_speeds; i++) {
        struct key_speed *s = &lists->speeds[i];
        ProtobufCBinaryData digest = {SHA256_BYTES, s->digest.b};
        bellows__v1__key_speed__init(&lists->speed_messages[i]);
        lists->speed_messages[i].key_digest = digest;
        lists->speed_messages[i].prove_ns = s->prove_ns;
        lists->speed_messages[i].load_ns = s->load_ns;
        lists->speed_ptrs[i] = &lists->speed_messages[i];
        if (s->resident) {
            lists->resident_bytes[m->n_keys_resident++] = digest;
        }
    }
    m->n_keys_cached = keyfiles_list(lists->cached, KEYS_TOLD_MAX, lane->keyfiles);
    for (size_t i = 0; i < m->n_keys_cached; i++) {
        lists->cached_bytes[i] = (ProtobufCBinaryData){SHA256_BYTES, lists->cached[i].b};
    }
    m->speeds = lists->speed_ptrs;
    m->keys_resident = lists->resident_bytes;
    m->keys_cached = lists->cached_bytes;
}

static enum err put_info(struct lane *lane, const struct glance *g) {
    static uint32_t curves[] = {CURVE_BN254, CURVE_BLS12_381};
    Bellows__V1__LaneInfo m = BELLOWS__V1__LANE_INFO__INIT;
    AUTO(mem_free_ptr) struct key_lists *lists = NULL;
    AUTO(bytes_free) struct bytes_mut packed = {0};
    TRY(mem_new(&lists, 1, sizeof *lists));
    m.version = WIRE_VERSION;
    m.node = lane->node;
    m.gpu = lane->config.gpu;
    m.session = lane->session;
    m.backend = (char *)(uintptr_t)lane->backend->ops->name;
    m.device = lane->backend->device_name;
    m.n_curves = COUNT_OF(curves);
    m.curves = curves;
    m.host_bytes = lane->config.memory_bytes;
    m.depth = (uint32_t)g->held_count;
    m.depth_max = lane->config.backlog;
    m.state = g->state;
    m.reason = (char *)(uintptr_t)g->reason;
    m.pid = (uint32_t)getpid();
    fill_keys(&m, lists, lane);
    TRY(message_pack(&packed, &m, LANE_INFO_BYTES_MAX, "lane entry"));
    struct subject bucket = kv_bucket_name(&lane->space, "lanes");
    struct subject key = key_of_lane(lane_name_here(lane));
    uint64_t revision;
    return kv_put(&revision, lane->links.control, bucket.text, key.text,
                  bytes_of(packed.ptr, packed.len));
}

/* --- Cancel marks --- */

/* A cancel message that was lost on the way stands in the cancel bucket. False: it could not be looked up. */
static bool watch_cancel(struct lane *lane, const struct glance *g) {
    if (!g->job[0]) {
        return true;
    }
    struct subject bucket = kv_bucket_name(&lane->space, "cancel");
    struct subject key = key_of_job((struct job_name){g->tenant, g->job});
    AUTO(kv_entry_done) struct kv_entry entry = {0};
    AUTO(message_free) Bellows__V1__CancelMark *mark = NULL;
    bool found = false;
    if (kv_get(&entry, &found, lane->links.telemetry, bucket.text, key.text) != OK) {
        return false;
    }
    if (!found || message_unpack(&mark, &bellows__v1__cancel_mark__descriptor, entry.value,
                                 CONTROL_BYTES_MAX, "cancel mark") != OK) {
        return true;
    }
    LOCK_SCOPE(&lane->lock);
    struct lane_job *job = lane->proving.job;
    if (job && job->generation <= mark->generation && !strcmp(job->name.job, g->job) &&
        !strcmp(job->name.tenant, g->tenant)) {
        atomic_store(&job->watch.cancel, 1);
    }
    return true;
}

/* What rises whenever a message to this lane may have been lost. */
static uint64_t losses(const struct lane *lane) {
    struct transport_health health;
    transport_health(&health, lane->links.control);
    return health.reconnects_count + health.slow_count;
}

/* --- The thread --- */

void *lane_entry_main(void *ctx) {
    struct lane *lane = ctx;
    struct glance g;
    uint64_t told_ns = 0, told_version = 0, asked_ns = 0, losses_seen = 0;
    while (!atomic_load(&lane->stopping)) {
        uint64_t now_ns = clock_ns(), version = keycache_version(lane->keycache);
        bool due = atomic_exchange(&lane->info_due, false); /* before the look that will tell it */
        look(&g, lane);
        if (due || version != told_version || now_ns - told_ns >= INFO_NS) {
            if (put_info(lane, &g) == OK) {
                told_ns = now_ns;
                told_version = version;
            }
        }
        uint64_t lost = losses(lane);
        if (now_ns - asked_ns >= CANCEL_NS || lost != losses_seen) {
            losses_seen = watch_cancel(lane, &g) ? lost : losses_seen;
            asked_ns = now_ns;
        }
        lane_pause(lane, LOOK_NS);
    }
    return NULL;
}
