/* Survey: the backlog in figures, for those who watch and for whoever decides how many machines there should be.
 *
 * Pure: a function of the index of open jobs and of the lanes. Costs one pass over all open partitions.
 *
 * Threads  the one that owns backlog and lanes.
 * Units    nanoseconds; work is estimated device time, as the lanes have learned it.
 */
#pragma once
#include "node/coordinator/backlog.h"
#include "node/coordinator/lanes.h"

enum { SURVEY_QUEUES_MAX = 128 };

struct survey_queue { /* what waits to be placed under one key at one priority */
    struct sha256 key_digest;
    uint8_t priority;
    uint32_t partitions_count;
    uint64_t oldest_ns; /* how long the oldest has been here */
    uint64_t work_ns;
    const char *label;     /* lent from the backlog: of the oldest job that has one; NULL: none */
    uint64_t label_age_ns; /* of that job */
};

struct survey {
    uint32_t jobs_open;
    uint32_t queued, placed, running; /* partitions */
    uint32_t lanes_known, lanes_open;
    uint32_t waiting[JOB_PRIORITY_COUNT]; /* partitions that wait to be placed */
    uint64_t oldest_ns[JOB_PRIORITY_COUNT];
    uint64_t backlog_ns; /* of all partitions that are not finished */
    uint64_t
        backlog_wall_ns; /* until the open lanes have done it; without any, as one lane would */
    uint32_t deadlines_at_risk;                    /* open jobs whose deadline comes before that */
    struct survey_queue queues[SURVEY_QUEUES_MAX]; /* most work first */
    size_t queues_count;
    uint32_t queues_dropped; /* that found no room here; the figures above count them */
};
/* The labels are lent until the backlog changes. */
void survey_take(struct survey *out, const struct backlog *backlog, const struct lanes *lanes,
                 uint64_t now_ns);
