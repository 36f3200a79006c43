/* Every nanosecond in exactly one account: by hand with the clock held, at random, and from several threads at once. */
#include "node/telemetry/ledger.h"
#include "node/base/clock.h"
#include "tests/check/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static struct ledger *new_ledger(void) {
    struct ledger *l = NULL;
    CHECK_OK(ledger_new(&l));
    return l;
}

static uint64_t sum_of(const struct ledger_view *v) {
    uint64_t sum = v->open_ns;
    for (int i = 0; i < LEDGER_ACCOUNTS_COUNT; i++) {
        sum += v->ns[i];
    }
    return sum;
}

static struct ledger_view read_ledger(struct ledger *l) {
    struct ledger_view v;
    ledger_read(&v, l);
    CHECK_EQ(v.wall_ns, sum_of(&v));
    return v;
}

static void claim_idle(void) {
    clock_hold(1000);
    AUTO(ledger_free) struct ledger *l = new_ledger();
    clock_sleep_ns(50);
    struct ledger_view v = read_ledger(l);
    CHECK_EQ(50, v.wall_ns);
    CHECK_EQ(50, v.ns[LEDGER_WAIT_NO_WORK]);
    CHECK_EQ(LEDGER_WAIT_NO_WORK, v.now);
    ledger_fence(l, true);
    clock_sleep_ns(7);
    ledger_fence(l, false);
    clock_sleep_ns(1);
    v = read_ledger(l);
    CHECK_EQ(7, v.ns[LEDGER_FENCED]);
    CHECK_EQ(51, v.ns[LEDGER_WAIT_NO_WORK]);
    clock_release();
}

static void claim_oldest_cause(void) {
    clock_hold(1);
    AUTO(ledger_free) struct ledger *l = new_ledger();
    uint64_t first = ledger_arrive(l), second = ledger_arrive(l);
    CHECK(first && second && first != second);
    clock_sleep_ns(3); /* both read their records */
    ledger_cause(l, second, LEDGER_WAIT_DECODE);
    clock_sleep_ns(5); /* the second does not matter yet */
    ledger_cause(l, first, LEDGER_WAIT_FETCH);
    clock_sleep_ns(11);
    ledger_leave(l, first);
    clock_sleep_ns(13); /* now it does */
    ledger_leave(l, second);
    clock_sleep_ns(17);
    struct ledger_view v = read_ledger(l);
    CHECK_EQ(8, v.ns[LEDGER_WAIT_RECORD]);
    CHECK_EQ(11, v.ns[LEDGER_WAIT_FETCH]);
    CHECK_EQ(13, v.ns[LEDGER_WAIT_DECODE]);
    CHECK_EQ(17, v.ns[LEDGER_WAIT_NO_WORK]);
    clock_release();
}

static void claim_busy_hides_causes(void) {
    clock_hold(1);
    AUTO(ledger_free) struct ledger *l = new_ledger();
    uint64_t next = ledger_arrive(l);
    ledger_cause(l, next, LEDGER_WAIT_DECODE);
    ledger_device(l, LEDGER_WAIT_KEY);
    clock_sleep_ns(19);
    ledger_begin(l);
    clock_sleep_ns(23);
    ledger_cause(l, next, LEDGER_WAIT_LOCK);
    CHECK_EQ(LEDGER_IDLE, read_ledger(l).now);
    CHECK_EQ(23, read_ledger(l).open_ns);
    clock_sleep_ns(77);
    uint64_t measured[LEDGER_ACCOUNTS_COUNT] = {0};
    measured[LEDGER_COMPUTE_MSM_H] = 60;
    measured[LEDGER_UPLOAD] = 10;
    CHECK_EQ(100, ledger_settle(l, measured));
    clock_sleep_ns(2);
    ledger_device(l, LEDGER_IDLE);
    clock_sleep_ns(4);
    struct ledger_view v = read_ledger(l);
    CHECK_EQ(19, v.ns[LEDGER_WAIT_KEY]);
    CHECK_EQ(60, v.ns[LEDGER_COMPUTE_MSM_H]);
    CHECK_EQ(10, v.ns[LEDGER_UPLOAD]);
    CHECK_EQ(30, v.ns[LEDGER_COMPUTE_OTHER]); /* what nobody measured */
    CHECK_EQ(2, v.ns[LEDGER_WAIT_FINISH]);
    CHECK_EQ(4, v.ns[LEDGER_WAIT_LOCK]);
    CHECK_EQ(0, v.ns[LEDGER_WAIT_DECODE]);
    CHECK_EQ(0, v.open_ns);
    clock_release();
}

static void claim_overlapping_steps(void) {
    clock_hold(1);
    AUTO(ledger_free) struct ledger *l = new_ledger();
    uint64_t measured[LEDGER_ACCOUNTS_COUNT] = {0};
    ledger_begin(l);
    clock_sleep_ns(90);
    measured[LEDGER_COMPUTE_MSM_A] = 120;
    measured[LEDGER_COMPUTE_MSM_H] = 60;
    ledger_settle(l, measured);
    struct ledger_view v = read_ledger(l);
    CHECK_EQ(60, v.ns[LEDGER_COMPUTE_MSM_A]);
    CHECK_EQ(30, v.ns[LEDGER_COMPUTE_MSM_H]);
    ledger_begin(l);
    clock_sleep_ns(5);
    memset(measured, 0xff, sizeof measured); /* nonsense from a device does not break the books */
    ledger_settle(l, measured);
    CHECK_EQ(95, read_ledger(l).wall_ns);
    clock_release();
}

static void claim_many_tickets(void) {
    AUTO(ledger_free) struct ledger *l = new_ledger();
    for (int i = 0; i < LEDGER_TICKETS_MAX; i++) {
        CHECK(ledger_arrive(l) != 0);
    }
    uint64_t none = ledger_arrive(l);
    CHECK_EQ(0, none);
    ledger_cause(l, none, LEDGER_WAIT_KEY);
    ledger_leave(l, none);
    ledger_leave(l, 3);
    CHECK(ledger_arrive(l) != 0);
}

static void claim_names(void) {
    for (int i = 0; i < LEDGER_ACCOUNTS_COUNT; i++) {
        const char *name = ledger_account_name((enum ledger_account)i);
        bool compute = !strncmp(name, "compute.", 8);
        CHECK_EQ(compute, ledger_account_is_compute((enum ledger_account)i));
        for (int k = 0; k < i; k++) {
            CHECK(strcmp(name, ledger_account_name((enum ledger_account)k)) != 0);
        }
    }
}

/* A second, plain bookkeeper beside it: the state is three fields, and each step of time is added where it belongs. */
struct model {
    uint64_t ns[LEDGER_ACCOUNTS_COUNT], wall_ns, open_ns, tickets[LEDGER_TICKETS_MAX];
    enum ledger_account causes[LEDGER_TICKETS_MAX], device;
    size_t count;
    bool open, fenced;
};

static void model_pass(struct model *m, uint64_t ns) {
    enum ledger_account to = m->device != LEDGER_IDLE ? m->device
                             : m->count               ? m->causes[0]
                             : m->fenced              ? LEDGER_FENCED
                                                      : LEDGER_WAIT_NO_WORK;
    m->wall_ns += ns;
    if (m->open) {
        m->open_ns += ns;
    } else {
        m->ns[to] += ns;
    }
}

static void random_ticket_step(struct ledger *l, struct model *m, struct rng *rng) {
    size_t which = m->count ? rng_below(rng, m->count) : 0;
    switch (rng_below(rng, 3)) {
    case 0:
        if (m->count < LEDGER_TICKETS_MAX) {
            m->causes[m->count] = LEDGER_WAIT_RECORD;
            m->tickets[m->count++] = ledger_arrive(l);
        }
        return;
    case 1:
        if (m->count) {
            m->causes[which] = (enum ledger_account)rng_below(rng, LEDGER_ACCOUNTS_COUNT);
            ledger_cause(l, m->tickets[which], m->causes[which]);
        }
        return;
    default:
        if (m->count) {
            ledger_leave(l, m->tickets[which]);
            m->count--;
            memmove(&m->tickets[which], &m->tickets[which + 1],
                    (m->count - which) * sizeof m->tickets[0]);
            memmove(&m->causes[which], &m->causes[which + 1],
                    (m->count - which) * sizeof m->causes[0]);
        }
    }
}

static void random_device_step(struct ledger *l, struct model *m, struct rng *rng) {
    uint64_t measured[LEDGER_ACCOUNTS_COUNT] = {0};
    if (!m->open && rng_below(rng, 2)) {
        m->device = (enum ledger_account)rng_below(rng, LEDGER_IDLE + 1);
        ledger_device(l, m->device);
    } else if (!m->open) {
        ledger_begin(l);
        m->open = true;
        m->open_ns = 0;
    } else {
        enum ledger_account account = (enum ledger_account)rng_below(rng, LEDGER_ACCOUNTS_COUNT);
        measured[account] = rng_below(rng, 2 * m->open_ns + 1);
        uint64_t booked = measured[account] < m->open_ns ? measured[account] : m->open_ns;
        CHECK_EQ(m->open_ns, ledger_settle(l, measured));
        m->ns[account] += booked;
        m->ns[LEDGER_COMPUTE_OTHER] += m->open_ns - booked;
        m->open_ns = 0;
        m->open = false;
        m->device = LEDGER_WAIT_FINISH;
    }
}

static void claim_random_lives(void) {
    struct rng *rng = check_rng();
    for (int life = 0; life < 200; life++) {
        clock_hold(rng_below(rng, UINT64_C(1) << 40));
        AUTO(ledger_free) struct ledger *l = new_ledger();
        struct model m = {.device = LEDGER_IDLE};
        struct ledger_view last = {0};
        for (int step = 0; step < 300; step++) {
            uint64_t ns = rng_below(rng, UINT64_C(1) << rng_below(rng, 34));
            clock_sleep_ns(ns);
            model_pass(&m, ns);
            switch (rng_below(rng, 4)) {
            case 0:
                random_device_step(l, &m, rng);
                break;
            case 1:
                m.fenced = rng_below(rng, 2);
                ledger_fence(l, m.fenced);
                break;
            default:
                random_ticket_step(l, &m, rng);
            }
            struct ledger_view v = read_ledger(l);
            CHECK_EQ(m.wall_ns, v.wall_ns);
            CHECK_EQ(m.open_ns, v.open_ns);
            CHECK_MEM(m.ns, v.ns, sizeof v.ns);
            for (int i = 0; i < LEDGER_ACCOUNTS_COUNT; i++) {
                CHECK(v.ns[i] >= last.ns[i]);
            }
            last = v;
        }
    }
    clock_release();
}

enum { FEEDERS = 3, ROUNDS = 3000 };
static struct ledger *shared;
static atomic_bool ended;

static void *feed(void *arg) {
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t ticket = ledger_arrive(shared);
        ledger_cause(shared, ticket, LEDGER_WAIT_FETCH);
        ledger_cause(shared, ticket, LEDGER_WAIT_DECODE);
        ledger_leave(shared, ticket);
    }
    return NULL;
}

static void *drive(void *arg) {
    uint64_t measured[LEDGER_ACCOUNTS_COUNT] = {[LEDGER_COMPUTE_MSM_A] = 400};
    (void)arg;
    while (!atomic_load(&ended)) {
        ledger_device(shared, LEDGER_IDLE);
        ledger_begin(shared);
        ledger_settle(shared, measured);
    }
    return NULL;
}

static void claim_threads(void) {
    pthread_t threads[FEEDERS], driver;
    uint64_t before_ns = clock_ns();
    shared = new_ledger();
    uint64_t made_ns = clock_ns();
    atomic_store(&ended, false);
    CHECK_EQ(0, pthread_create(&driver, NULL, drive, NULL));
    for (int i = 0; i < FEEDERS; i++) {
        CHECK_EQ(0, pthread_create(&threads[i], NULL, feed, NULL));
    }
    for (int i = 0; i < 1000 || read_ledger(shared).ns[LEDGER_COMPUTE_MSM_A] == 0; i++) {
        read_ledger(shared);
    }
    for (int i = 0; i < FEEDERS; i++) {
        pthread_join(threads[i], NULL);
    }
    atomic_store(&ended, true);
    pthread_join(driver, NULL);
    uint64_t least_ns = clock_ns() - made_ns;
    struct ledger_view v = read_ledger(shared);
    CHECK(v.wall_ns >= least_ns && v.wall_ns <= clock_ns() - before_ns);
    ledger_free(&shared);
}

static enum err open_and_close(void *ctx) {
    (void)ctx;
    AUTO(ledger_free) struct ledger *l = NULL;
    return ledger_new(&l);
}
static void claim_allocations(void) {
    CHECK_EQ(1, check_allocations(open_and_close, NULL));
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"an idle device has no work, or is fenced", claim_idle},
        {"the oldest job's cause is what an idle device waits for", claim_oldest_cause},
        {"while the device works no cause counts, and a proof is booked as it measured itself",
         claim_busy_hides_causes},
        {"steps that exceed their stretch share it", claim_overlapping_steps},
        {"jobs beyond the limit are not followed", claim_many_tickets},
        {"names are unique and say what is computing", claim_names},
        {"random lives: the accounts sum to wall time, never fall, and agree with a plain model",
         claim_random_lives},
        {"the accounts sum to wall time whatever threads do", claim_threads},
        {"without memory there is no ledger and no leak", claim_allocations},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
