/* Protobuf from outside, unpacked safely.
 *
 * protobuf-c accepts inputs that expand sixty-fold, strings with a NUL inside and nesting deep enough to overflow the
 * stack. So the packed bytes are first walked once, without allocating, by the message's own descriptor: lengths, depth,
 * number of items, unknown fields, UTF-8. Then protobuf-c unpacks under an allocator with a cap.
 *
 *     AUTO(message_free) Bellows__V1__Job *job = NULL;
 *     TRY(message_unpack(&job, &bellows__v1__job__descriptor, data, JOB_BYTES_MAX, "job"));
 *
 * Threads  any.
 * Errors   E_LIMIT above bytes_max or the allocator's cap; E_FORMAT with what, field and offset for everything else;
 *          E_FORMAT also for a `version` that is 0 or newer than WIRE_VERSION, where the message has that field.
 */
#pragma once
#include "node/base/bytes.h"
#include "proto/limits.h"

#include <protobuf-c/protobuf-c.h>

/* *(ProtobufCMessage **)out is the caller's, to message_free(). Untouched unless OK. */
FALLIBLE message_unpack(void *out, const ProtobufCMessageDescriptor *type, struct bytes data,
                        size_t bytes_max, const char *what);
void message_free(
    void *address_of_pointer); /* for AUTO with any message pointer; *p becomes NULL */

/* Packs into a new block: out->ptr is the caller's, mem_free. Bytes of a string that are not UTF-8 become '?'. E_LIMIT above
 * bytes_max. */
FALLIBLE message_pack(struct bytes_mut *out, const void *message, size_t bytes_max,
                      const char *what);
