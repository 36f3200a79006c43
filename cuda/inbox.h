/* Inbox: device memory of a slot for the next job's scalars, filled by a copy stream of its own while the job before is computed.
 *
 *   stage thread    inbox_bring: waits until it is free ─▶ upload, as the bytes lie (packed or plain) ─▶ checked by the device
 *                   or in pieces: inbox_begin ─▶ inbox_piece … ─▶ inbox_end
 *   device thread   inbox_take: expanded, or copied, to where the job computes ─▶ free again, and wiped before the next one comes
 *
 * So one job computes while the next is already here, and what crosses the bus is what crossed the wire. The device checks what the
 * processor's decoder checks, before anything trusts it; what it finds is looked at again on the processor, whose words the error has.
 *
 * Owner    the slot.
 * Threads  inbox_bring and inbox_drop any, inbox_take the one that computes; under a lock of rank BACKEND.
 * Errors   those of codec.h and witness.h for scalars that are not sound; E_CANCELLED; E_DEVICE when processor and device disagree.
 */
#pragma once
#include "node/base/lock.h"
#include "node/groth16/backend.h"

#include "cuda/gpu.h"

enum { INBOX_VECTORS_MAX = 3, INBOX_ALIGN = 256 };

struct inbox_vector { /* one that was brought */
    uint64_t count;
    uint32_t blocks_count; /* 0: plain */
    size_t at, bytes;      /* of its bytes in the device block */
    size_t table_at;       /* of struct gpu_packed_block, in both blocks */
};
struct inbox {
    enum curve_id curve;
    char *memory, *pinned; /* lent: device, page-locked */
    size_t bytes,
        table_bytes; /* of memory for scalars; of its end, and of pinned, for tables and verdicts */
    struct gpu_stream *stream;                        /* owned */
    struct gpu_event *begun, *sent, *checked, *taken; /* owned */
    struct lock lock;
    struct condition changed;
    enum { INBOX_FREE, INBOX_FILLING, INBOX_FULL } state; /* [lock] */
    uint64_t ticket;                                      /* [lock] of what is in it */
    struct inbox_vector vectors[INBOX_VECTORS_MAX];       /* whoever fills or takes it */
    unsigned vectors_count;
    size_t used_bytes;
};

/* What vectors of so many scalars take, however they come, and their tables. */
size_t inbox_bytes(const uint64_t *counts, unsigned counts_count);
size_t inbox_table_bytes(const uint64_t *counts, unsigned counts_count);
/* memory: device, of bytes + table_bytes; pinned: of table_bytes. `out` zeroed before; half-open on error. */
FALLIBLE inbox_open(struct inbox *out, enum curve_id curve, char *memory, size_t bytes,
                    char *pinned, size_t table_bytes);
void inbox_close(struct inbox *in);

/* Would these fit it? */
bool inbox_fits(const struct inbox *in, const struct scalars *vectors, unsigned count);
/* See bring in backend.h. On OK it is full. */
FALLIBLE inbox_bring(struct inbox *in, struct bring *b, struct job_watch *watch);
/* See bring_begin in backend.h. After an OK inbox_begin, inbox_end follows in any case. */
FALLIBLE inbox_begin(struct inbox *in, struct bring *b, struct job_watch *watch);
FALLIBLE inbox_piece(struct inbox *in, unsigned vector_idx, uint64_t at, struct bytes piece);
FALLIBLE inbox_end(struct inbox *in, struct bring *b, bool whole);
void inbox_drop(struct inbox *in, uint64_t ticket); /* unless it has been taken already */
struct inbox_place {
    void *to;     /* device */
    size_t bytes; /* what lies behind the vector is filled with 0 */
};
/* Of what was brought under the ticket: queues everything on `s`, and the wiping on the inbox's own stream; free for the next job as soon as that is done; after an error too. */
FALLIBLE inbox_take(struct inbox *in, uint64_t ticket, const struct inbox_place *places,
                    unsigned count, struct gpu_stream *s);

/* --- mem.cu, gpu.cu --- */
/* Registers memory for the copy engines. */
FALLIBLE gpu_pin(void *host, size_t bytes);
void gpu_unpin(void *host);
void gpu_bus_address(char *out, size_t out_bytes,
                     int device_idx); /* on the PCI bus; "": not known */
