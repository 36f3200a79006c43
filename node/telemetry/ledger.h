/* Ledger: what a device did with its time. Between start and now every nanosecond is in exactly one account.
 *
 * Two sides write into it. The thread that drives the device says what the device does; while it says "idle", the time goes to the
 * account that explains the idleness, which those who feed the device keep up to date: each job on its way holds a ticket with the
 * cause that keeps it from the device now, and the oldest ticket is the one the device waits for.
 *
 *     feeding   arrive ─▶ cause … cause ─▶ leave                device   idle ─▶ device(WAIT_KEY) ─▶ begin ─▶ settle ─▶ idle
 *
 * A proof's steps are measured by the device itself (events, not host clocks around asynchronous calls) and known when it ends. So
 * the stretch between ledger_begin and ledger_settle stays open and is then booked as measured. Accounts never fall.
 *
 * Owner    the lane.
 * Threads  any, under a lock of rank TELEMETRY that is held for nanoseconds. Time is clock_ns.
 * Units    nanoseconds.
 * Errors   E_LIMIT when there is no memory for a new one; nothing else can fail.
 */
#pragma once
#include "node/base/err.h"
#include "node/telemetry/ledger_table.h"

enum ledger_account {
#define LEDGER_ENUM(id, name) LEDGER_##id,
    LEDGER_TABLE(LEDGER_ENUM)
#undef LEDGER_ENUM
        LEDGER_ACCOUNTS_COUNT,
    LEDGER_IDLE = LEDGER_ACCOUNTS_COUNT /* no account: the cause decides */
};
const char *ledger_account_name(enum ledger_account account); /* "wait.no_work" */
bool ledger_account_is_compute(enum ledger_account account);

enum { LEDGER_TICKETS_MAX = 64 };

struct ledger;
FALLIBLE ledger_new(struct ledger **out); /* starts now, idle */
void ledger_free(struct ledger **l);      /* for AUTO */

/* --- The device's side: one thread --- */

/* From now on the device does this; LEDGER_IDLE: it waits for the next job. */
void ledger_device(struct ledger *l, enum ledger_account account);
/* From now on it computes one job. */
void ledger_begin(struct ledger *l);
/* The stretch since ledger_begin was spent so: measured[account] nanoseconds. What the measurements leave over goes to
 * compute.other; where they exceed the stretch (steps that overlapped), each gets its share of it. The device is then at
 * wait.finish. Returns the length of the stretch. */
uint64_t ledger_settle(struct ledger *l, const uint64_t measured[LEDGER_ACCOUNTS_COUNT]);
/* While the device is idle and no job is on its way, time is booked to `fenced` instead of wait.no_work. */
void ledger_fence(struct ledger *l, bool fenced);

/* --- The feeding side --- */

/* A job came into the lane's hands; its cause is wait.record. 0, which every call takes and ignores, beyond LEDGER_TICKETS_MAX. */
uint64_t ledger_arrive(struct ledger *l);
void ledger_cause(struct ledger *l, uint64_t ticket, enum ledger_account cause);
/* The job has reached the device, or will not. */
void ledger_leave(struct ledger *l, uint64_t ticket);

/* --- Reading --- */

struct ledger_view {
    uint64_t wall_ns;                   /* since ledger_new = sum of ns + open_ns */
    uint64_t open_ns;                   /* of the stretch that is not settled yet */
    uint64_t ns[LEDGER_ACCOUNTS_COUNT]; /* each never falls */
    enum ledger_account now;            /* LEDGER_IDLE while a stretch is open */
};
void ledger_read(struct ledger_view *out, struct ledger *l);
