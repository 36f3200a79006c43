/* Janitor: purges the bodies of jobs that have ended, apart from the coordinator's loop, as purging takes seconds.
 *
 * What it does not get to (a crash, a full queue) is added again by the next leader, while it is fresh, else left to the bucket's
 * age.
 *
 * Owner    the coordinator; the transport is lent.
 * Threads  janitor_open starts one; janitor_add any.
 */
#pragma once
#include "node/transport/transport.h"
#include "proto/job.h"

struct janitor;

FALLIBLE janitor_open(struct janitor **out, struct transport *t);
void janitor_close(struct janitor **j); /* finishes what it is at, drops the rest */
void janitor_add(struct janitor *j, const char *bucket, const char *nuid, const char *name);
/* All objects of a descriptor, but those that `kept` names, too (NULL: none). */
void janitor_add_job(struct janitor *j, const job_message *job, const job_message *kept);
uint64_t janitor_purged_count(const struct janitor *j);
/* Nothing is left to purge, and nothing was given up lately. */
bool janitor_is_clean(const struct janitor *j);
