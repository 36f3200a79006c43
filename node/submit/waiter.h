/* Someone to wait with: hears of a job's result as soon as it is stored.
 *
 * Results come over two ways: the subject on which they are stored, heard live, and a look into the store now and then, so that nothing
 * is missed when the live message was. The reply subject brings refusals, which have no place in the store.
 *
 * Owner    the caller; closed before its client.
 * Threads  one at a time.
 * Errors   the transport's; E_RANGE for a job that is not there, E_TIMEOUT.
 */
#pragma once
#include "node/job/result.h"
#include "node/submit/client.h"

struct waiter;
/* Open before publishing the job. reply_subject (may be NULL) is where refusals come. */
FALLIBLE waiter_open(struct waiter **out, const struct client *c, const char *job,
                     const char *reply_subject);
void waiter_close(struct waiter **w);
/* The job's result. generation 0: the current one, whichever it is. E_RANGE: no such job after a grace of five seconds, unless
 * `published`. E_TIMEOUT after limit_ns (0: never). *out: message_free. */
FALLIBLE waiter_wait(result_message **out, struct waiter *w, uint64_t generation, bool published,
                     uint64_t limit_ns);
