/* One pass, with the queues found through a small hash index. A key's cost is looked up once, when its queue is met first: all
 * lanes' estimates for one key are close enough for a sum.
 */
#include "node/coordinator/survey.h"

#include <stdlib.h>
#include <string.h>

enum { INDEX_SLOTS = 512 }; /* a power of two, four for each queue */
_Static_assert(INDEX_SLOTS >= 2 * SURVEY_QUEUES_MAX, "the index must keep free slots");

struct pass {
    struct survey *out;
    const struct lanes *lanes;
    uint64_t now_ns;
    size_t cost_lane;            /* whose estimate is asked for; SIZE_MAX: there is no lane */
    uint16_t index[INDEX_SLOTS]; /* queue + 1; 0: free */
    uint64_t cost_ns[SURVEY_QUEUES_MAX];
};

static uint64_t cost_of(const struct pass *p, uint32_t key_idx) {
    if (p->cost_lane == SIZE_MAX) {
        return 0;
    }
    const struct lane_view *lane = &p->lanes->views[p->cost_lane];
    return estimates_job_ns(p->lanes->estimates, key_idx, lane->device_idx);
}

/* SIZE_MAX: no room for another one. */
static size_t queue_of(struct pass *p, const struct job_view *job) {
    const struct sha256 *digest = &p->lanes->estimates->keys[job->key_idx].digest;
    size_t slot =
        (job->key_idx * SCHEDULE_PRIORITIES + job->priority) * UINT64_C(0x9e3779b9) % INDEX_SLOTS;
    for (; p->index[slot]; slot = (slot + 1) % INDEX_SLOTS) {
        const struct survey_queue *q = &p->out->queues[p->index[slot] - 1];
        if (q->priority == job->priority && !memcmp(&q->key_digest, digest, sizeof *digest)) {
            return p->index[slot] - 1u;
        }
    }
    if (p->out->queues_count == SURVEY_QUEUES_MAX) {
        return SIZE_MAX;
    }
    size_t idx = p->out->queues_count++;
    p->index[slot] = (uint16_t)(idx + 1);
    p->out->queues[idx] = (struct survey_queue){.key_digest = *digest, .priority = job->priority};
    p->cost_ns[idx] = cost_of(p, job->key_idx);
    return idx;
}

static uint64_t most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static void count_waiting(struct pass *p, const struct job_view *job, uint32_t waiting) {
    uint64_t age_ns = p->now_ns > job->arrived_ns ? p->now_ns - job->arrived_ns : 0;
    size_t idx = queue_of(p, job);
    struct survey *out = p->out;
    out->queued += waiting;
    out->waiting[job->priority] += waiting;
    out->oldest_ns[job->priority] = most(out->oldest_ns[job->priority], age_ns);
    if (idx == SIZE_MAX) {
        out->queues_dropped++;
        out->backlog_ns += waiting * cost_of(p, job->key_idx);
        return;
    }
    struct survey_queue *q = &out->queues[idx];
    q->partitions_count += waiting;
    q->oldest_ns = most(q->oldest_ns, age_ns);
    q->work_ns += waiting * p->cost_ns[idx];
    if (job->label && (!q->label || age_ns > q->label_age_ns)) {
        q->label = job->label;
        q->label_age_ns = age_ns;
    }
    out->backlog_ns += waiting * p->cost_ns[idx];
}

static void count_job(struct pass *p, const struct job_view *job) {
    uint32_t waiting = 0;
    p->out->jobs_open++;
    for (uint32_t i = 0; i < job->parts_count; i++) {
        const struct part_view *part = &job->parts[i];
        bool placed = part->state == JOB_PLACED, running = part->state == JOB_RUNNING;
        waiting += part->state == JOB_QUEUED;
        p->out->placed += placed;
        p->out->running += running;
        p->out->backlog_ns += placed || running ? part->cost_ns : 0;
    }
    if (waiting) {
        count_waiting(p, job, waiting);
    }
}

static int by_work(const void *a, const void *b) {
    const struct survey_queue *x = a, *y = b;
    if (x->work_ns != y->work_ns) {
        return x->work_ns < y->work_ns ? 1 : -1;
    }
    return x->partitions_count < y->partitions_count   ? 1
           : x->partitions_count > y->partitions_count ? -1
                                                       : 0;
}

void survey_take(struct survey *out, const struct backlog *backlog, const struct lanes *lanes,
                 uint64_t now_ns) {
    struct pass p = {.out = out, .lanes = lanes, .now_ns = now_ns, .cost_lane = SIZE_MAX};
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < lanes->count; i++) {
        out->lanes_known += lanes->views[i].alive;
        out->lanes_open += lanes->views[i].open;
        p.cost_lane = lanes->views[i].open || p.cost_lane == SIZE_MAX ? i : p.cost_lane;
    }
    for (size_t i = 0; i < backlog->count; i++) {
        count_job(&p, backlog->jobs[i]);
    }
    out->backlog_wall_ns = out->backlog_ns / (out->lanes_open ? out->lanes_open : 1);
    for (size_t i = 0; i < backlog->count; i++) {
        uint64_t deadline_ns = backlog->jobs[i]->deadline_ns;
        out->deadlines_at_risk += deadline_ns && deadline_ns < now_ns + out->backlog_wall_ns;
    }
    qsort(out->queues, out->queues_count, sizeof *out->queues, by_work);
}
