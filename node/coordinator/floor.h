/* Floor: where in the bucket of records the next leader begins to read, so that a take-over costs what is open and not what is kept.
 *
 *   records by their last change:   ended ended OPEN ended … ended │ ended OPEN OPEN ended OPEN …
 *                                                ▲ named          floor ─▶ read
 *
 * A record that lies below the floor and is not named there has ended, and stays so for ever: whatever changes it lays it above. So an old
 * floor is as true as a new one, and two leaders may write it in any order. Written every few seconds into the bucket itself: a bucket
 * that was cut short has lost it with the rest.
 *
 * Threads  one.
 * Errors   of floor_read: the transport's; E_FORMAT for an entry that cannot be read. Who meets one begins at the beginning.
 */
#pragma once
#include "node/coordinator/backlog.h"
#include "node/transport/transport.h"
#include "proto/fleet.pb-c.h"

enum { FLOOR_NAMED_MAX = 64 };
#define FLOOR_KEY "floor"

/* *out NULL: there is none. Owned: message_free. */
FALLIBLE floor_read(Bellows__V1__RecordFloor **out, struct transport *t,
                    const struct subject_space *space);
/* Of this backlog, in which everything up to revision `read` stands, with the bodies purged of what ended up to `clean`. */
FALLIBLE floor_write(struct transport *t, const struct subject_space *space,
                     const struct backlog *b, uint64_t read, uint64_t clean);
