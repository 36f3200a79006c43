/* The telemetry thread. It sends what others put into its queue, and once a second reads ledger, memory, sensors and counters, and tells
 * them as messages and as metrics. It is the only one that touches the telemetry connection, so a server that takes nothing holds up
 * nobody but it; its queue is bounded, and what finds no room there is dropped and counted.
 *
 * Waking and writing are what it costs; saying something is cheap beside them. So after the first message it lets more gather for a fifth
 * of a second, in which whoever puts something in wakes nobody, and the connection writes them together.
 *
 * The reports of each second are for those who listen; one in ten is sent so that the stream of the past keeps it. A stream that is full
 * drops its oldest message for each new one, and servers of the 2.9 series then search it for the next of the same subject: with a thousand
 * lanes' reports of each second that was half a core, and all that waited for the server waited for it.
 *
 * Its own processor time is measured and told too.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/base/version.h"
#include "node/daemon/lane_threads.h"
#include "node/telemetry/sensor.h"
#include "proto/telemetry.pb-c.h"

#include <unistd.h>

static const uint64_t PACE_NS = UINT64_C(1000000000);
static const uint64_t KEYS_NS = UINT64_C(10000000000);
static const uint64_t KEYS_KEPT_NS = UINT64_C(600000000000); /* the stream reaches further back */
static const uint64_t KEPT_NS = UINT64_C(10000000000);       /* for the stream of the past */
static const uint64_t GATHER_NS = UINT64_C(200000000);
static const uint64_t FLUSH_NS = UINT64_C(200000000);
enum { KEYS_TOLD_MAX = 64, COUNTERS = 11 };

struct told {                /* a message that waits */
    char *subject;           /* owned */
    struct bytes_mut packed; /* owned */
};

struct totals { /* since the process started */
    uint64_t lock_wait_ns, allocation_ns, cpu_ns, telemetry_ns, dropped, reconnects;
};

struct followed { /* what is already counted into the metrics */
    uint64_t accounts[LEDGER_ACCOUNTS_COUNT], energy_mj;
    struct totals totals;
};

struct teller { /* [tele] */
    struct lane *lane;
    struct totals totals;
    int statm;               /* owned: the kernel's page about our memory; -1: none */
    struct sensors *sensors; /* owned; NULL: none */
    struct readings readings;
    struct followed counted;
    uint64_t sequence, keys_told_ns, keys_kept_ns, keys_version, cpu_ns, wall_ns;
    uint64_t disk_bytes;    /* as read when the keys were told last */
    uint32_t busy_permille; /* of a processor lane, in the last second */
    uint64_t kept_ns;       /* when reports were last sent to be kept */
    int kept_state;         /* the lane's then */
    bool keeps;             /* these are */
};

/* --- The queue --- */

enum err lane_tell_open(struct lane *lane) {
    return queue_new(&lane->to_tell, LANE_TOLD_MAX, sizeof(struct told));
}

static void told_done(struct told *told) {
    mem_free(told->subject);
    mem_free(told->packed.ptr);
}

void lane_tell(struct lane *lane, const struct subject *subject, struct bytes_mut *packed) {
    struct told told = {mem_strdup(subject->text), *packed};
    if (!told.subject || queue_try_put(lane->to_tell, &told) != OK) {
        told_done(&told);
        atomic_fetch_add(&lane->untold, 1);
    }
    *packed = (struct bytes_mut){0};
}

static void send(struct lane *lane, const char *subject, struct bytes_mut packed) {
    if (transport_send(lane->links.telemetry, subject, bytes_of(packed.ptr, packed.len)) != OK) {
        atomic_fetch_add(&lane->untold, 1);
    }
}

static void send_report(struct teller *t, const void *message, const char *kind, bool kept) {
    struct lane *lane = t->lane;
    struct bytes_mut packed;
    if (message_pack(&packed, message, MESSAGE_BYTES_MAX, kind) == OK) {
        struct subject subject = subject_telemetry(&lane->space, lane_name_here(lane), kind);
        struct bytes data = bytes_of(packed.ptr, packed.len);
        enum err code = kept ? transport_send(lane->links.telemetry, subject.text, data)
                             : transport_send_unkept(lane->links.telemetry, subject.text, data);
        atomic_fetch_add(&lane->untold, code != OK);
        mem_free(packed.ptr);
    }
}

static char *lent(const char *text) {
    return (char *)(uintptr_t)(text ? text : "");
}

/* --- What there is to tell --- */

static uint64_t resident_bytes(int statm) {
    unsigned long long pages = 0, all = 0;
    char text[128];
    ssize_t len = pread(statm, text, sizeof text - 1, 0);
    text[len > 0 ? len : 0] = 0;
    return sscanf(text, "%llu %llu", &all, &pages) == 2 ? pages * (uint64_t)sysconf(_SC_PAGESIZE)
                                                        : 0;
}

struct memory_figures {
    uint64_t used[METRIC_MEMORY_COUNT], limit[METRIC_MEMORY_COUNT];
    bool known[METRIC_MEMORY_COUNT];
};

static void put_memory(struct memory_figures *m, int kind, uint64_t used, uint64_t limit) {
    m->used[kind] = used;
    m->limit[kind] = limit;
    m->known[kind] = true;
}

static void read_memory(struct memory_figures *out, struct teller *t) {
    struct lane *lane = t->lane;
    *out = (struct memory_figures){0};
    put_memory(out, METRIC_MEMORY_BODIES, pinned_used_bytes(lane->pinned),
               pinned_bytes(lane->pinned));
    if (lane_brings(lane)) {
        put_memory(out, METRIC_MEMORY_PINNED, pinned_used_bytes(lane->pinned),
                   pinned_bytes(lane->pinned));
    }
    put_memory(out, METRIC_MEMORY_KEYS, keycache_bytes(lane->keycache), lane->keys_bytes_max);
    put_memory(out, METRIC_MEMORY_PROCESS, resident_bytes(t->statm), lane->config.memory_bytes);
    put_memory(out, METRIC_MEMORY_DISK, t->disk_bytes, lane->config.key_disk_bytes);
    if (t->readings.memory_bytes) {
        put_memory(out, METRIC_MEMORY_DEVICE, t->readings.memory_used_bytes,
                   t->readings.memory_bytes);
    }
}

static uint64_t reconnects_of(struct transport *t) {
    struct transport_health health;
    transport_health(&health, t);
    return health.reconnects_count;
}

static uint64_t reconnects(const struct lane *lane) {
    const struct lane_links *links = &lane->links;
    uint64_t count = reconnects_of(links->control) + reconnects_of(links->telemetry);
    for (unsigned i = 0; i < links->bulk.count; i++) {
        count += reconnects_of(links->bulk.links[i]);
    }
    return count;
}

static uint64_t lock_wait_ns(void) {
    uint64_t ns = 0;
    for (int rank = 0; rank < LOCK_RANKS_COUNT; rank++) {
        ns += lock_waited_ns((enum lock_rank)rank);
    }
    return ns;
}

static void read_totals(struct totals *out, const struct lane *lane) {
    *out = (struct totals){.lock_wait_ns = lock_wait_ns(),
                           .allocation_ns = mem_work_ns(),
                           .cpu_ns = clock_cpu_ns(),
                           .telemetry_ns = clock_thread_ns(),
                           .dropped = atomic_load(&lane->untold),
                           .reconnects = reconnects(lane)};
}

/* Share of its threads' time that the process used since the last look. */
static void read_busy(struct teller *t) {
    uint64_t cpu_ns = t->totals.cpu_ns, wall_ns = clock_ns();
    uint64_t threads = t->lane->config.threads ? t->lane->config.threads : pool_cores_usable();
    uint64_t room_ns = (wall_ns - t->wall_ns) * threads;
    uint64_t permille = room_ns ? (cpu_ns - t->cpu_ns) * 1000 / room_ns : 0;
    t->busy_permille = (uint32_t)(permille < 1000 ? permille : 1000);
    t->cpu_ns = cpu_ns;
    t->wall_ns = wall_ns;
}

static void read_sensors(struct teller *t) {
    sensors_read(&t->readings, t->sensors);
    read_busy(t);
    if (!t->sensors) {
        t->readings.values[SENSOR_UTILISATION_PERMILLE] = t->busy_permille;
        t->readings.known[SENSOR_UTILISATION_PERMILLE] = true;
    }
    if (t->readings.known[SENSOR_POWER_MILLIWATT]) {
        atomic_store(&t->lane->power_mw, t->readings.values[SENSOR_POWER_MILLIWATT]);
    }
}

/* --- Metrics --- */

static void set_sensor_metrics(struct metric_block *m, const struct readings *r,
                               struct followed *counted) {
    static const struct {
        enum sensor sensor;
        enum metric metric;
        int label;
        uint64_t factor;
    } gauges[] = {
        {SENSOR_UTILISATION_PERMILLE, METRIC_UTILISATION, 0, 1},
        {SENSOR_POWER_MILLIWATT, METRIC_POWER, 0, 1},
        {SENSOR_TEMPERATURE_CELSIUS, METRIC_TEMPERATURE, 0, 1},
        {SENSOR_CLOCK_CORE_MEGAHERTZ, METRIC_CLOCK, METRIC_CLOCK_CORE, 1000000},
        {SENSOR_CLOCK_MEMORY_MEGAHERTZ, METRIC_CLOCK, METRIC_CLOCK_MEMORY, 1000000},
        {SENSOR_PCIE_RECEIVE_BYTES_PER_SECOND, METRIC_PCIE, METRIC_DIRECTION_RECEIVE, 1},
        {SENSOR_PCIE_TRANSMIT_BYTES_PER_SECOND, METRIC_PCIE, METRIC_DIRECTION_TRANSMIT, 1},
        {SENSOR_PCIE_GENERATION, METRIC_PCIE_GENERATION, METRIC_LINK_NOW, 1},
        {SENSOR_PCIE_GENERATION_MAX, METRIC_PCIE_GENERATION, METRIC_LINK_MOST, 1},
        {SENSOR_PCIE_WIDTH, METRIC_PCIE_WIDTH, METRIC_LINK_NOW, 1},
        {SENSOR_PCIE_WIDTH_MAX, METRIC_PCIE_WIDTH, METRIC_LINK_MOST, 1},
    };
    for (size_t i = 0; i < COUNT_OF(gauges); i++) {
        bool known = r->known[gauges[i].sensor];
        metric_set(m, gauges[i].metric, gauges[i].label,
                   known ? r->values[gauges[i].sensor] * gauges[i].factor : METRIC_UNKNOWN);
    }
    if (r->known[SENSOR_ENERGY_MILLIJOULE]) {
        metric_follow(m, METRIC_ENERGY, 0, &counted->energy_mj,
                      r->values[SENSOR_ENERGY_MILLIJOULE]);
    }
}

static void set_metrics(struct teller *t, const struct ledger_view *ledger,
                        const struct memory_figures *memory, size_t depth) {
    struct lane *lane = t->lane;
    struct metric_block *m = lane->config.metrics;
    struct followed *c = &t->counted;
    int state = (int)lane_state(lane) - 1; /* labels stand in the order of enum LaneState */
    for (int i = 0; i < LEDGER_ACCOUNTS_COUNT; i++) {
        metric_follow(m, METRIC_LEDGER, i, &c->accounts[i], ledger->ns[i]);
    }
    for (int i = 0; i < METRIC_LANE_STATE_COUNT; i++) {
        metric_set(m, METRIC_LANE_STATE, i, i == state);
    }
    for (int i = 0; i < METRIC_MEMORY_COUNT; i++) {
        metric_set(m, METRIC_MEMORY_USED, i, memory->known[i] ? memory->used[i] : METRIC_UNKNOWN);
        metric_set(m, METRIC_MEMORY_LIMIT, i, memory->limit[i] ? memory->limit[i] : METRIC_UNKNOWN);
    }
    metric_set(m, METRIC_OPEN, 0, ledger->open_ns);
    metric_set(m, METRIC_IN_HAND, 0, depth);
    metric_set(m, METRIC_IN_HAND_MAX, 0, lane->config.backlog);
    const struct {
        enum metric metric;
        uint64_t *last, now;
    } followed[] = {
        {METRIC_LOCK_WAIT, &c->totals.lock_wait_ns, t->totals.lock_wait_ns},
        {METRIC_ALLOCATION, &c->totals.allocation_ns, t->totals.allocation_ns},
        {METRIC_CPU, &c->totals.cpu_ns, t->totals.cpu_ns},
        {METRIC_TELEMETRY_CPU, &c->totals.telemetry_ns, t->totals.telemetry_ns},
        {METRIC_TELEMETRY_DROPPED, &c->totals.dropped, t->totals.dropped},
        {METRIC_RECONNECTS, &c->totals.reconnects, t->totals.reconnects},
    };
    for (size_t i = 0; i < COUNT_OF(followed); i++) {
        metric_follow(m, followed[i].metric, 0, followed[i].last, followed[i].now);
    }
    set_sensor_metrics(m, &t->readings, c);
}

/* --- The device's report --- */

struct device_room {
    Bellows__V1__Account accounts[LEDGER_ACCOUNTS_COUNT], *account_ptrs[LEDGER_ACCOUNTS_COUNT];
    Bellows__V1__MemoryUse memory[METRIC_MEMORY_COUNT], *memory_ptrs[METRIC_MEMORY_COUNT];
    Bellows__V1__Reading readings[SENSORS_COUNT], *reading_ptrs[SENSORS_COUNT];
    Bellows__V1__Counter counters[COUNTERS], *counter_ptrs[COUNTERS];
};

static void fill_accounts(Bellows__V1__DeviceReport *m, struct device_room *room,
                          const struct ledger_view *ledger) {
    for (int i = 0; i < LEDGER_ACCOUNTS_COUNT; i++) {
        bellows__v1__account__init(&room->accounts[i]);
        room->accounts[i].name = lent(ledger_account_name((enum ledger_account)i));
        room->accounts[i].ns = ledger->ns[i];
        room->account_ptrs[i] = &room->accounts[i];
    }
    m->n_accounts = LEDGER_ACCOUNTS_COUNT;
    m->accounts = room->account_ptrs;
    m->wall_ns = ledger->wall_ns;
    m->open_ns = ledger->open_ns;
    m->now = lent(ledger->now == LEDGER_IDLE ? "compute" : ledger_account_name(ledger->now));
}

static void fill_memory(Bellows__V1__DeviceReport *m, struct device_room *room,
                        const struct memory_figures *memory) {
#define MEMORY_TEXT(id, text) text,
    static const char *const names[] = {METRIC_MEMORIES(MEMORY_TEXT)};
#undef MEMORY_TEXT
    for (int i = 0; i < METRIC_MEMORY_COUNT; i++) {
        if (memory->known[i]) {
            Bellows__V1__MemoryUse *use = room->memory_ptrs[m->n_memory] =
                &room->memory[m->n_memory];
            bellows__v1__memory_use__init(use);
            use->name = lent(names[i]);
            use->used_bytes = memory->used[i];
            use->limit_bytes = memory->limit[i];
            m->n_memory++;
        }
    }
    m->memory = room->memory_ptrs;
}

static void fill_readings(Bellows__V1__DeviceReport *m, struct device_room *room,
                          const struct readings *r) {
    for (int i = 0; i < SENSORS_COUNT; i++) {
        if (r->known[i]) {
            Bellows__V1__Reading *reading = room->reading_ptrs[m->n_readings] =
                &room->readings[m->n_readings];
            bellows__v1__reading__init(reading);
            reading->sensor = (Bellows__V1__Sensor)(i + 1);
            reading->value = r->values[i];
            m->n_readings++;
        }
    }
    m->readings = room->reading_ptrs;
}
_Static_assert((int)BELLOWS__V1__SENSOR__PCIE_WIDTH_MAX == (int)SENSOR_PCIE_WIDTH_MAX + 1,
               "sensors stand in the order of the message");

static void fill_counters(Bellows__V1__DeviceReport *m, struct device_room *room,
                          const struct teller *t) {
    struct lane *lane = t->lane;
    const struct {
        const char *name;
        uint64_t value;
    } all[COUNTERS] = {
        {"jobs_done", atomic_load(&lane->done)},
        {"jobs_failed", atomic_load(&lane->failed)},
        {"jobs_given_back", atomic_load(&lane->given_back)},
        {"jobs_stale", atomic_load(&lane->stale)},
        {"strikes", atomic_load(&lane->strikes)},
        {"lock_wait_ns", t->totals.lock_wait_ns},
        {"allocation_ns", t->totals.allocation_ns},
        {"reconnects", t->totals.reconnects},
        {"telemetry_dropped", t->totals.dropped},
        {"cpu_ns", t->totals.cpu_ns},
        {"telemetry_cpu_ns", t->totals.telemetry_ns},
    };
    for (size_t i = 0; i < COUNTERS; i++) {
        bellows__v1__counter__init(&room->counters[i]);
        room->counters[i].name = lent(all[i].name);
        room->counters[i].value = all[i].value;
        room->counter_ptrs[i] = &room->counters[i];
    }
    m->n_counters = COUNTERS;
    m->counters = room->counter_ptrs;
}

static void tell_device(struct teller *t, const struct ledger_view *ledger,
                        const struct memory_figures *memory) {
    struct lane *lane = t->lane;
    struct device_room room;
    Bellows__V1__DeviceReport m = BELLOWS__V1__DEVICE_REPORT__INIT;
    m.version = WIRE_VERSION;
    m.node = lane->node;
    m.gpu = lane->config.gpu;
    m.session = lane->session;
    m.sequence = ++t->sequence;
    m.at_unix_ms = clock_unix_ns() / 1000000;
    m.backend = lent(lane->backend->ops->name);
    m.device = lane->backend->device_name;
    fill_accounts(&m, &room, ledger);
    fill_memory(&m, &room, memory);
    fill_readings(&m, &room, &t->readings);
    fill_counters(&m, &room, t);
    send_report(t, &m, "device", t->keeps);
}

/* --- The lane's report --- */

struct hand { /* copied under the lock */
    char tenant[ID_BYTES_MAX + 1], job[ID_BYTES_MAX + 1];
    struct sha256 key;
    Bellows__V1__JobInHand message;
};

struct hands {
    struct hand items[LANE_HELD_MAX];
    Bellows__V1__JobInHand *ptrs[LANE_HELD_MAX];
    size_t count;
    char reason[RECORD_DETAIL_BYTES];
};

static void copy_hand(struct hand *out, const struct lane_job *job, uint64_t now_ns) {
    Bellows__V1__JobInHand *m = &out->message;
    int stage = atomic_load(&job->stage), step = atomic_load(&job->watch.step);
    bellows__v1__job_in_hand__init(m);
    snprintf(out->tenant, sizeof out->tenant, "%s", job->name.tenant);
    snprintf(out->job, sizeof out->job, "%s", job->name.job);
    out->key = job->key_digest;
    m->tenant = out->tenant;
    m->job_id = out->job;
    m->key_digest = (ProtobufCBinaryData){SHA256_BYTES, out->key.b};
    m->generation = job->generation;
    m->partition_index = job->index;
    m->priority = job->job->priority;
    m->stage = lent(job_stage_name((enum job_stage)stage));
    m->age_ns = now_ns - job->taken_ns;
    m->stage_ns = now_ns - atomic_load(&job->stage_ns);
    if (stage == JOB_STAGE_PROVING && step >= 0 && step < STEP_COUNT) {
        m->step = lent(prove_step_name((enum prove_step)step));
        m->permille = atomic_load(&job->watch.permille);
    }
}

/* Oldest first: the table of held jobs loses that order as jobs leave. */
static void copy_hands(struct hands *out, struct lane *lane) {
    const struct lane_job *jobs[LANE_HELD_MAX];
    LOCK_SCOPE(&lane->lock);
    uint64_t now_ns = clock_ns();
    out->count = lane->held_count;
    for (size_t i = 0; i < out->count; i++) {
        size_t at = i;
        for (; at > 0 && jobs[at - 1]->taken_ns > lane->held[i]->taken_ns; at--) {
            jobs[at] = jobs[at - 1];
        }
        jobs[at] = lane->held[i];
    }
    for (size_t i = 0; i < out->count; i++) {
        copy_hand(&out->items[i], jobs[i], now_ns);
        out->ptrs[i] = &out->items[i].message;
    }
    snprintf(out->reason, sizeof out->reason, "%s", lane->reason);
}

static size_t tell_lane(struct teller *t) {
    struct lane *lane = t->lane;
    struct hands hands;
    Bellows__V1__LaneReport m = BELLOWS__V1__LANE_REPORT__INIT;
    copy_hands(&hands, lane);
    m.version = WIRE_VERSION;
    m.node = lane->node;
    m.gpu = lane->config.gpu;
    m.session = lane->session;
    m.at_unix_ms = clock_unix_ns() / 1000000;
    m.state = (uint32_t)lane_state(lane);
    m.reason = hands.reason;
    m.strikes = (uint32_t)atomic_load(&lane->strikes);
    m.depth = (uint32_t)hands.count;
    m.depth_max = lane->config.backlog;
    m.n_jobs = hands.count;
    m.jobs = hands.ptrs;
    m.bellows_version = lent(BELLOWS_VERSION);
    send_report(t, &m, "lane", t->keeps);
    return hands.count;
}

/* --- The keys --- */

static bool is_listed(const struct key_speed *speeds, size_t count, const struct sha256 *digest) {
    for (size_t i = 0; i < count; i++) {
        if (!memcmp(&speeds[i].digest, digest, sizeof *digest)) {
            return true;
        }
    }
    return false;
}

static void tell_keys(struct teller *t, bool kept) {
    struct lane *lane = t->lane;
    struct key_speed speeds[KEYS_TOLD_MAX];
    struct sha256 cached[KEYS_TOLD_MAX];
    Bellows__V1__KeyState states[2 * KEYS_TOLD_MAX], *ptrs[2 * KEYS_TOLD_MAX];
    Bellows__V1__KeysReport m = BELLOWS__V1__KEYS_REPORT__INIT;
    size_t known = keycache_speeds(speeds, KEYS_TOLD_MAX, lane->keycache);
    size_t on_disk = keyfiles_list(cached, KEYS_TOLD_MAX, lane->keyfiles);
    for (size_t i = 0; i < known + on_disk; i++) {
        struct sha256 *digest = i < known ? &speeds[i].digest : &cached[i - known];
        if (i >= known && is_listed(speeds, known, digest)) {
            continue;
        }
        Bellows__V1__KeyState *state = ptrs[m.n_keys] = &states[m.n_keys];
        bellows__v1__key_state__init(state);
        state->digest = (ProtobufCBinaryData){SHA256_BYTES, digest->b};
        state->loaded = i < known && speeds[i].resident;
        state->prove_ns = i < known ? speeds[i].prove_ns : 0;
        state->load_ns = i < known ? speeds[i].load_ns : 0;
        m.n_keys++;
    }
    m.version = WIRE_VERSION;
    m.node = lane->node;
    m.gpu = lane->config.gpu;
    m.session = lane->session;
    m.at_unix_ms = clock_unix_ns() / 1000000;
    m.keys = ptrs;
    send_report(t, &m, "keys", kept);
}

/* --- The thread --- */

/* The first and the last reports, those of a new state, and every tenth second. */
static void look_whether_kept(struct teller *t, bool last) {
    uint64_t now_ns = clock_ns();
    int state = (int)lane_state(t->lane);
    t->keeps = t->sequence == 0 || last || state != t->kept_state ||
               now_ns - t->kept_ns >= KEPT_NS - PACE_NS / 2;
    if (t->keeps) {
        t->kept_ns = now_ns;
        t->kept_state = state;
    }
}

static void tell_all(struct teller *t, bool last) {
    struct ledger_view ledger;
    struct memory_figures memory;
    uint64_t version = keycache_version(t->lane->keycache), now_ns = clock_ns();
    bool keys_new = t->sequence == 0 || version != t->keys_version;
    bool keys_due = keys_new || now_ns - t->keys_told_ns >= KEYS_NS;
    if (keys_due) {
        t->disk_bytes = keyfiles_bytes(t->lane->keyfiles);
    }
    look_whether_kept(t, last);
    read_totals(&t->totals, t->lane);
    read_sensors(t);
    read_memory(&memory, t);
    ledger_read(&ledger, t->lane->ledger);
    tell_device(t, &ledger, &memory);
    size_t depth = tell_lane(t);
    set_metrics(t, &ledger, &memory, depth);
    if (keys_due) {
        bool kept = keys_new || now_ns - t->keys_kept_ns >= KEYS_KEPT_NS;
        tell_keys(t, kept);
        t->keys_kept_ns = kept ? now_ns : t->keys_kept_ns;
        t->keys_told_ns = now_ns;
        t->keys_version = version;
    }
}

/* Sends `first` and what waits behind it. */
static void send_all(struct lane *lane, struct told first) {
    size_t count = 0;
    do {
        send(lane, first.subject, first.packed);
        told_done(&first);
    } while (++count < LANE_TOLD_MAX && queue_take(lane->to_tell, &first, 0) == OK);
}

static uint64_t left_until(uint64_t due_ns) {
    uint64_t now_ns = clock_ns();
    return due_ns > now_ns ? due_ns - now_ns : 0;
}

/* Until `due_ns`, or the lane ends; false: it has. What comes within GATHER_NS after a message goes out with it. */
static bool pass_on(struct lane *lane, uint64_t due_ns) {
    for (;;) {
        struct told told;
        enum err code = queue_take(lane->to_tell, &told, left_until(due_ns));
        if (code != OK) {
            return code == E_TIMEOUT;
        }
        uint64_t left_ns = left_until(due_ns);
        (void)queue_wait_closed(lane->to_tell, left_ns < GATHER_NS ? left_ns : GATHER_NS);
        send_all(lane, told);
        if (clock_ns() >= due_ns) {
            return true;
        }
    }
}

static void name_block(struct lane *lane) {
    struct metric_block *m = lane->config.metrics;
    if (!m) {
        return;
    }
    atomic_store(&m->named, 0);
    snprintf(m->device, sizeof m->device, "%s", lane->backend->device_name);
    snprintf(m->backend, sizeof m->backend, "%s", lane->backend->ops->name);
    snprintf(m->session, sizeof m->session, "%.39s", lane->session);
    atomic_store(&m->named, 1);
    metric_add(m, METRIC_LANE_STARTS, 0, 1);
}

void *lane_tell_main(void *ctx) {
    struct teller t = {.lane = ctx,
                       .cpu_ns = clock_cpu_ns(),
                       .wall_ns = clock_ns(),
                       .statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)};
    name_block(t.lane);
    sensors_open(&t.sensors, t.lane->backend->device_name);
    uint64_t due_ns = clock_ns();
    do {
        tell_all(&t, false);
        due_ns += PACE_NS;
        due_ns = due_ns > clock_ns() ? due_ns : clock_ns() + PACE_NS; /* never twice in a row */
    } while (pass_on(t.lane, due_ns));
    tell_all(&t, true);
    IGNORE(
        transport_flush(t.lane->links.telemetry, FLUSH_NS)); /* so that its last words are heard */
    sensors_close(&t.sensors);
    if (t.statm >= 0) {
        close(t.statm);
    }
    return NULL;
}
