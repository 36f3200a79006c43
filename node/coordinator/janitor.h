/* Janitor: purges the bodies of jobs that have ended, apart from the coordinator's loop, as purging takes seconds.
 *
 * What it does not get to (a crash, a full queue) is added again by the next leader, while it is fresh, else left to the bucket's
 * age; bodies that no record names hold back the acknowledgement of their message until they are purged, but where they are one of a flood
 * (check_quota).
 *
 * Owner    the coordinator; the transport is lent.
 * Threads  janitor_open starts one; janitor_add any.
 * Errors   janitor_open: E_LIMIT without memory or thread. What cannot be purged is no error.
 */
#pragma once
#include "node/transport/transport.h"
#include "proto/job.h"

struct janitor;

FALLIBLE janitor_open(struct janitor **out, struct transport *t);
void janitor_close(struct janitor **j); /* finishes what it is at, drops the rest */
void janitor_add(struct janitor *j, const char *bucket, const char *nuid, const char *name);
/* All objects of a descriptor, but those that `kept` names, too (NULL: none). With `ack`, where the message with the descriptor is to be
 * acknowledged: true, that is done when all are purged, so that whoever is given the message again purges what this process did not
 * get to; false, there is nothing to purge and it is the caller's. */
bool janitor_add_job(struct janitor *j, const job_message *job, const job_message *kept,
                     const char *ack);
/* Nothing is left to purge, and nothing was given up lately. */
bool janitor_is_clean(const struct janitor *j);
