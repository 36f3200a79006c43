/* Every metric, once: kind, whose it is, name, label, unit and sentence. Cells, text and the page for operators come from here.
 *
 *     ROW(id, kind, scope, name, unit, label, sentence)
 *
 * kind   COUNTER never falls while the process that serves it lives; GAUGE; HISTOGRAM of durations, buckets as metric.c has them
 * scope  LANE: one block for each lane, labelled with node and gpu; COORDINATOR: one block
 * unit   of the cell: NANOSECONDS are shown as seconds, MILLI as thousandths, PLAIN as they are. The name ends in the unit that is shown.
 * label  NONE, or the name of one of the lists in metric.c
 */
#pragma once

/* clang-format off */
#define METRIC_TABLE(ROW)                                                                                                                   \
    ROW(LEDGER,            COUNTER,   LANE, "bellows_ledger_seconds_total",            NANOSECONDS, ACCOUNT,                                \
        "Time of the device by account; the accounts of a lane add up to the time it lived, but for a proof being computed now.")          \
    ROW(STEP,              HISTOGRAM, LANE, "bellows_step_duration_seconds",           NANOSECONDS, STEP,                                   \
        "How long a step of a partition took.")                                                                                            \
    ROW(STEP_BYTES,        COUNTER,   LANE, "bellows_step_bytes_total",                PLAIN,       STEP,                                   \
        "Bytes that a step moved.")                                                                                                        \
    ROW(PARTITION,         HISTOGRAM, LANE, "bellows_partition_duration_seconds",      NANOSECONDS, NONE,                                   \
        "From taking a partition to having told what became of it.")                                                                       \
    ROW(PARTITIONS,        COUNTER,   LANE, "bellows_partitions_total",                PLAIN,       OUTCOME,                                \
        "Partitions that left the lane, by what became of them.")                                                                          \
    ROW(CHECK_FAILURES,    COUNTER,   LANE, "bellows_proof_check_failures_total",      PLAIN,       NONE,                                   \
        "Proofs that failed their own check before they left; each is computed again to find the cause.")                                  \
    ROW(DEVICE_ERRORS,     COUNTER,   LANE, "bellows_device_errors_total",             PLAIN,       NONE,                                   \
        "Errors of the device; a few in one lane's life fence it.")                                                                        \
    ROW(LANE_UP,           GAUGE,     LANE, "bellows_lane_up",                         PLAIN,       NONE,                                   \
        "1 while the lane's process runs.")                                                                                                \
    ROW(LANE_STATE,        GAUGE,     LANE, "bellows_lane_state",                      PLAIN,       LANE_STATE,                             \
        "1 for the state that the lane is in, 0 for the others.")                                                                          \
    ROW(LANE_STARTS,       COUNTER,   LANE, "bellows_lane_starts_total",               PLAIN,       NONE,                                   \
        "How often the lane's process was started.")                                                                                       \
    ROW(IN_HAND,           GAUGE,     LANE, "bellows_lane_partitions_in_hand",         PLAIN,       NONE,                                   \
        "Partitions that the lane holds.")                                                                                                 \
    ROW(IN_HAND_MAX,       GAUGE,     LANE, "bellows_lane_partitions_in_hand_limit",   PLAIN,       NONE,                                   \
        "Partitions that the lane wants to hold.")                                                                                         \
    ROW(OPEN,              GAUGE,     LANE, "bellows_lane_computing_seconds",          NANOSECONDS, NONE,                                   \
        "How long the proof that is being computed has taken so far; its time enters the ledger when it ends.")                           \
    ROW(MEMORY_USED,       GAUGE,     LANE, "bellows_memory_used_bytes",               PLAIN,       MEMORY,                                 \
        "Memory in use, by kind.")                                                                                                         \
    ROW(MEMORY_LIMIT,      GAUGE,     LANE, "bellows_memory_limit_bytes",              PLAIN,       MEMORY,                                 \
        "What may be used of it.")                                                                                                         \
    ROW(UTILISATION,       GAUGE,     LANE, "bellows_device_utilisation_ratio",        MILLI,       NONE,                                   \
        "Share of the last second in which the device was busy, as its driver sees it.")                                                   \
    ROW(POWER,             GAUGE,     LANE, "bellows_device_power_watts",              MILLI,       NONE,                                   \
        "What the device draws.")                                                                                                          \
    ROW(ENERGY,            COUNTER,   LANE, "bellows_device_energy_joules_total",      MILLI,       NONE,                                   \
        "What the device has drawn since its lane first started.")                                                                         \
    ROW(TEMPERATURE,       GAUGE,     LANE, "bellows_device_temperature_celsius",      PLAIN,       NONE,                                   \
        "Of the device.")                                                                                                                  \
    ROW(CLOCK,             GAUGE,     LANE, "bellows_device_clock_hertz",              PLAIN,       CLOCK,                                  \
        "Clock rates of the device.")                                                                                                      \
    ROW(PCIE,              GAUGE,     LANE, "bellows_device_pcie_bytes_per_second",    PLAIN,       DIRECTION,                              \
        "What crosses the link to the device now.")                                                                                        \
    ROW(PCIE_GENERATION,   GAUGE,     LANE, "bellows_device_pcie_generation",          PLAIN,       LINK,                                   \
        "Generation of the link, as it is and as it could be.")                                                                            \
    ROW(PCIE_WIDTH,        GAUGE,     LANE, "bellows_device_pcie_width_lanes",         PLAIN,       LINK,                                   \
        "Width of the link, as it is and as it could be.")                                                                                 \
    ROW(LOCK_WAIT,         COUNTER,   LANE, "bellows_lock_wait_seconds_total",         NANOSECONDS, NONE,                                   \
        "What the lane's threads waited for locks, together.")                                                                             \
    ROW(ALLOCATION,        COUNTER,   LANE, "bellows_allocation_seconds_total",        NANOSECONDS, NONE,                                   \
        "Time spent in the allocator for blocks of 64 KiB and more.")                                                                      \
    ROW(CPU,               COUNTER,   LANE, "bellows_lane_cpu_seconds_total",          NANOSECONDS, NONE,                                   \
        "Processor time of the lane's process.")                                                                                           \
    ROW(TELEMETRY_CPU,     COUNTER,   LANE, "bellows_telemetry_cpu_seconds_total",     NANOSECONDS, NONE,                                   \
        "Part of it that telling took.")                                                                                                   \
    ROW(TELEMETRY_DROPPED, COUNTER,   LANE, "bellows_telemetry_dropped_total",         PLAIN,       NONE,                                   \
        "Messages that were not sent, because the queue was full or the server away.")                                                     \
    ROW(RECONNECTS,        COUNTER,   LANE, "bellows_reconnects_total",                PLAIN,       NONE,                                   \
        "How often the lane's connections came back.")                                                                                     \
    ROW(LEADER,            GAUGE,     COORDINATOR, "bellows_coordinator_leader",       PLAIN,       NONE,                                   \
        "1 while this coordinator leads.")                                                                                                 \
    ROW(READY,             GAUGE,     COORDINATOR, "bellows_coordinator_ready",        PLAIN,       NONE,                                   \
        "1 while it leads and has read all records.")                                                                                      \
    ROW(JOBS_OPEN,         GAUGE,     COORDINATOR, "bellows_jobs_open",                PLAIN,       NONE,                                   \
        "Jobs that have no result yet.")                                                                                                   \
    ROW(FLEET_PARTITIONS,  GAUGE,     COORDINATOR, "bellows_open_partitions",          PLAIN,       PART_STATE,                             \
        "Partitions of open jobs, by state.")                                                                                              \
    ROW(QUEUE_DEPTH,       GAUGE,     COORDINATOR, "bellows_queue_depth_partitions",   PLAIN,       PRIORITY,                               \
        "Partitions that wait to be placed.")                                                                                              \
    ROW(QUEUE_OLDEST,      GAUGE,     COORDINATOR, "bellows_queue_oldest_seconds",     NANOSECONDS, PRIORITY,                               \
        "How long the oldest of them has waited.")                                                                                         \
    ROW(BACKLOG,           GAUGE,     COORDINATOR, "bellows_backlog_seconds",          NANOSECONDS, NONE,                                   \
        "Estimated device time of all partitions that are not finished.")                                                                  \
    ROW(BACKLOG_WALL,      GAUGE,     COORDINATOR, "bellows_backlog_wall_seconds",     NANOSECONDS, NONE,                                   \
        "The same divided by the open lanes: when the backlog would be gone.")                                                            \
    ROW(DEADLINES,         GAUGE,     COORDINATOR, "bellows_deadlines_at_risk_jobs",   PLAIN,       NONE,                                   \
        "Open jobs whose deadline lies before the end of the backlog.")                                                                    \
    ROW(LANES,             GAUGE,     COORDINATOR, "bellows_fleet_lanes",              PLAIN,       FLEET_LANES,                            \
        "Lanes that the coordinator knows, and those that take work.")                                                                     \
    ROW(DECISIONS,         COUNTER,   COORDINATOR, "bellows_coordinator_jobs_total",   PLAIN,       DECISION,                               \
        "What the coordinator did with jobs and partitions.")                                                                              \
    ROW(STORE_USED,        GAUGE,     COORDINATOR, "bellows_store_used_bytes",         PLAIN,       STORE,                                  \
        "What the server's streams and buckets hold.")                                                                                     \
    ROW(STORE_LIMIT,       GAUGE,     COORDINATOR, "bellows_store_limit_bytes",        PLAIN,       STORE,                                  \
        "What they may hold.")

/* The values of the labels. Accounts and steps come from their own tables. */
#define METRIC_OUTCOMES(ROW)    ROW(DONE, "done") ROW(FAILED, "failed") ROW(GIVEN_BACK, "given_back") ROW(CANCELLED, "cancelled") ROW(HANDED_BACK, "handed_back") ROW(STALE, "stale")
#define METRIC_LANE_STATES(ROW) ROW(STARTING, "starting") ROW(READY, "ready") ROW(DRAINING, "draining") ROW(FENCED, "fenced") ROW(STOPPED, "stopped")
#define METRIC_MEMORIES(ROW)    ROW(DEVICE, "device") ROW(PINNED, "pinned") ROW(BODIES, "bodies") ROW(KEYS, "keys") ROW(PROCESS, "process") ROW(DISK, "disk")
#define METRIC_CLOCKS(ROW)      ROW(CORE, "core") ROW(MEMORY, "memory")
#define METRIC_DIRECTIONS(ROW)  ROW(RECEIVE, "receive") ROW(TRANSMIT, "transmit")
#define METRIC_LINKS(ROW)       ROW(NOW, "now") ROW(MOST, "most")
#define METRIC_PART_STATES(ROW) ROW(QUEUED, "queued") ROW(PLACED, "placed") ROW(RUNNING, "running")
#define METRIC_PRIORITIES(ROW)  ROW(0, "0") ROW(1, "1") ROW(2, "2") ROW(3, "3")
#define METRIC_FLEET(ROW)       ROW(KNOWN, "known") ROW(OPEN, "open")
#define METRIC_DECISIONS(ROW)   ROW(TAKEN_IN, "taken_in") ROW(REFUSED, "refused") ROW(PLACED, "placed") ROW(TAKEN_BACK, "taken_back") ROW(JOINED, "joined") ROW(EXPIRED, "expired") ROW(CANCELLED, "cancelled") ROW(DEAD, "dead")
#define METRIC_STORES(ROW)      ROW(BODIES, "bodies") ROW(KEYS, "keys") ROW(JOBS, "jobs")
/* clang-format on */
