/* Story: what a lane tells of one partition: an event when it starts, its spans, an event and perhaps an error when it leaves; and the same
 * as metrics. Nothing of it is waited for: messages go into the lane's bounded queue (lane_tell), and what finds no room is counted.
 *
 * Threads  the one that holds the job.
 */
#pragma once
#include "node/daemon/fate.h"
#include "node/daemon/lane_threads.h"

/* The device thread has it. */
void story_begins(struct lane *lane, const struct lane_job *job);
/* It leaves the lane; `outcome` is a word: "done". */
void story_ends(struct lane *lane, const struct lane_job *job, struct verdict verdict,
                const char *outcome);
