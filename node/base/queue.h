/* Bounded queue of whole values between threads.
 *
 * A full queue is backpressure, an answer, not an accident: queue_try_put says E_QUEUE. Closing wakes everybody;
 * what is inside can still be taken.
 *
 * Owner    the caller, to queue_free; what still lies in it is copied nowhere.
 * Threads  any number of putters and takers; all have left before it is freed.
 * Errors   beside each function; E_LIMIT when there is no memory for a new one.
 */
#pragma once
#include "node/base/err.h"

struct queue;

FALLIBLE queue_new(struct queue **out, size_t items_max, size_t item_bytes);
void queue_free(struct queue **q);                         /* asserts that it is empty or closed */
FALLIBLE queue_try_put(struct queue *q, const void *item); /* E_QUEUE full, E_CANCELLED closed */
FALLIBLE queue_put(struct queue *q, const void *item,
                   uint64_t wait_ns); /* E_TIMEOUT, E_CANCELLED */
FALLIBLE queue_take(struct queue *q, void *item,
                    uint64_t wait_ns); /* E_TIMEOUT, E_CANCELLED closed and empty */
/* Sleeps, whatever is put in meanwhile; true: the queue was closed, which ends it. For a taker that lets work gather. */
bool queue_wait_closed(struct queue *q, uint64_t wait_ns);
size_t queue_length(struct queue *q);
void queue_close(struct queue *q);
