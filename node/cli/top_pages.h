/* The pages of `bellows top` that show one thing: a device with its ledger, a queue, a job with its story, the help.
 *
 * Threads  the one that draws.
 */
#pragma once
#include "node/cli/fleet_watch.h"
#include "node/cli/top_pen.h"

void top_draw_device(struct top_pen *pen, const struct watch_lane *lane);
void top_draw_job(struct top_pen *pen, const struct watch *picture, const char *tenant,
                  const char *job_id);
/* What waits under one key at one priority, who could prove it, and which of its jobs were heard of. */
void top_draw_queue(struct top_pen *pen, const struct watch *picture, uint32_t priority,
                    const struct sha256 *key);
void top_draw_help(struct top_pen *pen);

/* One line about a partition in a lane's hands. */
void top_draw_hand(const struct top_pen *pen, const struct watch_lane *lane,
                   const struct watch_hand *h);
bool top_lane_is_silent(const struct top_pen *pen, const struct watch_lane *lane);
const char *top_lane_state(const struct top_pen *pen,
                           const struct watch_lane *lane); /* "ready", "silent" */
