/* Whole runs of the schedule, event by event, with job times that nobody knows beforehand: makespan, fairness, starvation. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "node/base/mem.h"
#include "tests/check/check.h"
#include "tests/unit/coordinator/scene.h"

enum { RUN_LANES = 50, RUN_JOBS = 4000, RUN_HELD = 4 };

struct run {
    struct scene scene;
    uint64_t times_ns[RUN_JOBS]; /* of the items */
    size_t held[RUN_LANES][RUN_HELD], held_count[RUN_LANES];
    uint64_t ends_ns[RUN_LANES], began_ns[RUN_LANES]; /* of the first held */
    uint64_t now_ns, started_ns[RUN_JOBS], work_by_tenant[TENANTS_MAX];
    double fairness_least;
    size_t left, moves;
};

static double log_normal(struct rng *rng, double mean, double sigma) {
    double u = ((double)rng_below(rng, 1u << 30) + 0.5) / (double)(1u << 30);
    double v = (double)rng_below(rng, 1u << 30) / (double)(1u << 30);
    double normal = sqrt(-2 * log(u)) * cos(2 * 3.14159265358979 * v);
    return mean * exp(sigma * normal - sigma * sigma / 2);
}

static void begin_first(struct run *r, size_t l) {
    if (r->held_count[l] > 0) {
        r->began_ns[l] = r->now_ns;
        r->ends_ns[l] = r->now_ns + r->times_ns[r->held[l][0]] * r->scene.slowness[l];
        r->started_ns[r->held[l][0]] = r->now_ns;
    } else {
        r->ends_ns[l] = UINT64_MAX;
    }
}

static void drop_held(struct run *r, size_t l, size_t at) {
    r->held_count[l]--;
    memmove(&r->held[l][at], &r->held[l][at + 1], (r->held_count[l] - at) * sizeof r->held[l][0]);
}

static void describe_lanes(struct run *r) {
    for (size_t l = 0; l < RUN_LANES; l++) {
        size_t n = r->held_count[l];
        uint64_t mean_ns = r->scene.job_ns[0] * r->scene.slowness[l],
                 spent_ns = n ? r->now_ns - r->began_ns[l] : 0;
        uint64_t left_ns = mean_ns > spent_ns ? mean_ns - spent_ns : 0;
        left_ns = left_ns > spent_ns / 2 ? left_ns : spent_ns / 2;
        r->scene.lanes[l] = (struct schedule_lane){
            .queued_ns = n ? (n - 1) * mean_ns + left_ns : 0,
            .jobs_held = (uint32_t)n,
            .jobs_least = RUN_HELD,
            .open = true,
            .last = n > 1 ? &r->scene.items[r->held[l][n - 1]] : NULL,
        };
    }
}

static void give(struct run *r, size_t item, size_t l) {
    r->held[l][r->held_count[l]++] = item;
    if (r->held_count[l] == 1) {
        begin_first(r, l);
    }
}

static void place_all(struct run *r) {
    static struct schedule_pick picks[RUN_LANES * RUN_HELD];
    struct schedule_move moves[RUN_LANES];
    bool waiting[SCHEDULE_PRIORITIES] = {false};
    for (size_t i = 0; i < r->scene.view.lines_count; i++) {
        waiting[r->scene.line_ptrs[i]->priority] |= r->scene.line_ptrs[i]->count > 0;
    }
    describe_lanes(r);
    size_t count = scene_round(picks, COUNT_OF(picks), &r->scene), moves_count = 0;
    for (size_t i = 0; i < count; i++) {
        size_t item = idx_of(&r->scene, &picks[i]);
        schedule_line_take(&r->scene.items[item]);
        schedule_account(&r->scene.view.shares, waiting, picks[i].item->priority, picks[i].cost_ns);
        r->scene.served_ns[picks[i].item->tenant_idx] += picks[i].cost_ns;
        give(r, item, picks[i].lane_idx);
    }
    if (count == 0) {
        CHECK_OK(schedule_rebalance(moves, &moves_count, RUN_LANES, &r->scene.view, 100 * MS));
        for (size_t i = 0; i < moves_count; i++) {
            drop_held(r, moves[i].from_idx, r->held_count[moves[i].from_idx] - 1);
            give(r, (size_t)(moves[i].item - r->scene.items), moves[i].to_idx);
        }
        r->moves += moves_count;
    }
}

/* Jain's index of the work done for each tenant, while all of them have work waiting. */
static double fairness(const struct run *r) {
    double sum = 0, squares = 0;
    for (size_t t = 0; t < TENANTS_MAX; t++) {
        double x = (double)r->work_by_tenant[t];
        sum += x;
        squares += x * x;
    }
    return squares > 0 ? sum * sum / (TENANTS_MAX * squares) : 1;
}

static void run_to_end(struct run *r) {
    r->left = r->scene.items_count;
    for (size_t l = 0; l < RUN_LANES; l++) {
        r->ends_ns[l] = UINT64_MAX;
    }
    scene_file(&r->scene, NULL);
    place_all(r);
    while (r->left > 0) {
        size_t next = 0;
        for (size_t l = 1; l < RUN_LANES; l++) {
            next = r->ends_ns[l] < r->ends_ns[next] ? l : next;
        }
        CHECK(r->ends_ns[next] != UINT64_MAX); /* no lane works although jobs are left */
        r->now_ns = r->ends_ns[next];
        size_t item = r->held[next][0];
        r->work_by_tenant[r->scene.items[item].tenant_idx] += r->scene.job_ns[0];
        drop_held(r, next, 0);
        begin_first(r, next);
        r->left--;
        if (r->left > r->scene.items_count / 2 && r->left < r->scene.items_count * 3 / 4) {
            double f = fairness(r);
            r->fairness_least = f < r->fairness_least ? f : r->fairness_least;
        }
        place_all(r);
    }
}

static struct run *run_new(struct rng *rng, double sigma) {
    struct run *r = mem_zero_alloc(1, sizeof *r);
    CHECK(r);
    scene_init(&r->scene, RUN_JOBS, RUN_LANES);
    r->scene.job_ns[0] = 5000 * MS;
    r->fairness_least = 1;
    for (size_t i = 0; i < RUN_JOBS; i++) {
        r->times_ns[i] = (uint64_t)(log_normal(rng, 5000, sigma) * (double)MS);
        r->scene.items[i].tenant_idx =
            (uint32_t)(i < RUN_JOBS / 2 ? 0 : i % TENANTS_MAX); /* one came first, with most */
    }
    return r;
}

/* As if every lane took its next job from one line when it is through with the last: nobody who does not know how long jobs take can
 * do better on average. */
static uint64_t one_line_ns(const struct run *r) {
    uint64_t ends_ns[RUN_LANES] = {0}, last_ns = 0;
    for (size_t i = 0; i < RUN_JOBS; i++) {
        size_t next = 0;
        for (size_t l = 1; l < RUN_LANES; l++) {
            next = ends_ns[l] < ends_ns[next] ? l : next;
        }
        ends_ns[next] += r->times_ns[i];
        last_ns = ends_ns[next] > last_ns ? ends_ns[next] : last_ns;
    }
    return last_ns;
}

static void claim_makespan(void) {
    struct rng *rng = check_rng();
    double ours = 0, one_line = 0, bound = 0, sigmas[] = {0.3, 0.5, 0.8, 1.0};
    for (size_t n = 0; n < COUNT_OF(sigmas); n++) {
        for (int k = 0; k < 8; k++) {
            struct run *r = run_new(rng, sigmas[n]);
            uint64_t sum_ns = 0, longest_ns = 0;
            for (size_t i = 0; i < RUN_JOBS; i++) {
                r->scene.items[i].tenant_idx = (uint32_t)(i % TENANTS_MAX);
                sum_ns += r->times_ns[i];
                longest_ns = r->times_ns[i] > longest_ns ? r->times_ns[i] : longest_ns;
            }
            run_to_end(r);
            uint64_t bound_ns = sum_ns / RUN_LANES > longest_ns ? sum_ns / RUN_LANES : longest_ns;
            ours += (double)r->now_ns;
            one_line += (double)one_line_ns(r);
            bound += (double)bound_ns;
            CHECK(r->moves > 0);
            mem_free(r);
        }
        printf("# sigma %.1f: makespan %.1f %% above the lower bound, %.1f %% above one line\n",
               sigmas[n], 100 * (ours / bound - 1), 100 * (ours / one_line - 1));
        CHECK_MSG(sigmas[n] > 0.5 || ours < bound * 1.05, "sigma %.1f: %.3f of the lower bound",
                  sigmas[n], ours / bound);
        CHECK_MSG(ours < one_line * 1.03, "sigma %.1f: %.3f of one line", sigmas[n],
                  ours / one_line);
        ours = one_line = bound = 0;
    }
}

/* A quarter of the lanes is four times slower: each does its share and no more. */
static void claim_uneven_devices(void) {
    double ours = 0, bound = 0;
    for (int k = 0; k < 6; k++) {
        struct run *r = run_new(check_rng(), 0.3);
        double sum = 0, pace = 0;
        for (size_t i = 0; i < RUN_JOBS; i++) {
            r->scene.items[i].tenant_idx = (uint32_t)(i % TENANTS_MAX);
            sum += (double)r->times_ns[i];
        }
        for (size_t l = 0; l < RUN_LANES; l++) {
            r->scene.slowness[l] = l % 4 ? 1 : 4;
            pace += 1.0 / r->scene.slowness[l];
        }
        run_to_end(r);
        ours += (double)r->now_ns;
        bound += sum / pace;
        mem_free(r);
    }
    printf("# uneven: makespan %.1f %% above the lower bound\n", 100 * (ours / bound - 1));
    CHECK_MSG(ours < bound * 1.05, "%.1f %% above the lower bound", 100 * (ours / bound - 1));
}

static void claim_fairness_over_a_run(void) {
    struct run *r = run_new(check_rng(), 0.8);
    run_to_end(r);
    CHECK_MSG(r->fairness_least > 0.95, "Jain's index fell to %.3f", r->fairness_least);
    mem_free(r);
}

/* High priority keeps coming without end; the low one still gets through, and none of it last. */
static void claim_nothing_starves(void) {
    struct run *r = run_new(check_rng(), 0.5);
    for (size_t i = 0; i < RUN_JOBS; i++) {
        r->scene.items[i].tenant_idx = (uint32_t)(i % TENANTS_MAX);
        r->scene.items[i].priority = i % 20 == 0 ? 3 : i % 20 == 1 ? 2 : 0;
    }
    run_to_end(r);
    uint64_t ends_ns[SCHEDULE_PRIORITIES] = {0};
    for (size_t i = 0; i < RUN_JOBS; i++) {
        uint64_t *end_ns = &ends_ns[r->scene.items[i].priority];
        *end_ns = r->started_ns[i] > *end_ns ? r->started_ns[i] : *end_ns;
    }
    /* A twentieth of the work, a sixteenth of the time: through before the high one is. */
    CHECK(ends_ns[3] < ends_ns[0] && ends_ns[2] < ends_ns[0]);
    mem_free(r);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"log-normal jobs of unknown length: the makespan is within 5 % of the lower bound",
         claim_makespan},
        {"devices of uneven speed: the makespan is within 5 % of the lower bound",
         claim_uneven_devices},
        {"one tenant came first with most: Jain's index stays above 0.95",
         claim_fairness_over_a_run},
        {"the low priorities get through beside an endless high one", claim_nothing_starves},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
