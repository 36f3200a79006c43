/* The wire of protobuf below its messages: numbers of seven bits a byte, spans with their length, fields to step over.
 *
 * Threads  any.
 * Errors   E_FORMAT with what is read and the offset, at the end of the bytes too; outputs are then untouched.
 * Source   protobuf.dev, "Encoding": varints, wire types. Groups (types 3 and 4) are refused: nobody here writes them.
 */
#pragma once
#include "node/base/bytes.h"

enum { VARINT_BYTES_MAX = 10 };
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* At most ten bytes, and no more than 64 bits in them. */
FALLIBLE read_varint(uint64_t *out, struct reader *r);
/* A length, then as many bytes: *out is lent from the reader. */
FALLIBLE read_delimited(struct bytes *out, struct reader *r);
/* The value of a field that nobody asked for, by the wire type of its key. */
FALLIBLE read_past_field(struct reader *r, unsigned wire_type);
