/* A binary heap of jobs by the time at which each is to be looked at again; every job knows its place, so any can be taken out. */
#include "node/coordinator/backlog.h"

static void set_at(struct timers *t, size_t at, struct job_view *job) {
    t->jobs[at] = job;
    job->timer_at = at;
}

static void move_up(struct timers *t, size_t at) {
    struct job_view *job = t->jobs[at];
    while (at > 0 && job->timer_ns < t->jobs[(at - 1) / 2]->timer_ns) {
        set_at(t, at, t->jobs[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    set_at(t, at, job);
}

static void move_down(struct timers *t, size_t at) {
    struct job_view *job = t->jobs[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= t->count) {
            break;
        }
        child += child + 1 < t->count && t->jobs[child + 1]->timer_ns < t->jobs[child]->timer_ns;
        if (t->jobs[child]->timer_ns >= job->timer_ns) {
            break;
        }
        set_at(t, at, t->jobs[child]);
        at = child;
    }
    set_at(t, at, job);
}

void timers_put(struct timers *t, struct job_view *job, uint64_t at_ns) {
    timers_drop(t, job);
    job->timer_ns = at_ns;
    set_at(t, t->count++, job);
    move_up(t, job->timer_at);
}

void timers_drop(struct timers *t, struct job_view *job) {
    size_t at = job->timer_at;
    if (at == SIZE_MAX) {
        return;
    }
    job->timer_at = SIZE_MAX;
    struct job_view *last = t->jobs[--t->count];
    if (last != job) {
        set_at(t, at, last);
        move_up(t, at);
        move_down(t, last->timer_at);
    }
}
