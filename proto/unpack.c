/* A walk before the unpacking.
 *
 * The walk follows the message's descriptor through the packed bytes without allocating anything and refuses what
 * protobuf-c would accept to its own harm: deep nesting (it recurses), a flood of tiny sub-messages or unknown fields (it
 * allocates up to sixty bytes for each two), strings that C would see shorter than they are. What passes is unpacked under
 * an allocator that stops at ALLOCATION_FACTOR times the input. What is packed takes the same walk, so that nobody writes what
 * nobody can read.
 */
#include "proto/unpack.h"

#include "node/base/mem.h"
#include "node/base/text.h"
#include "proto/wire.h"

#include <inttypes.h>
#include <string.h>

enum { ALLOCATION_FACTOR = 64, ALLOCATION_BYTES_MIN = 64 * 1024 };

struct walk {
    const char *what;
    size_t items_count;
    const uint8_t *data; /* where the message begins */
    uint8_t *ours; /* the same, writable, when it is one that this process writes; else NULL */
};

static FALLIBLE walk_message(struct walk *w, const ProtobufCMessageDescriptor *type,
                             struct bytes data, unsigned depth);

/* A string from outside must be UTF-8 without a NUL. In one of ours a byte that is not becomes '?': a cut reason or the name of a file
 * must not make a record that nobody can read. */
static FALLIBLE check_string(const struct walk *w, struct bytes s, const char *field) {
    size_t at = 0;
    while (at < s.len) {
        size_t step = s.ptr[at] ? utf8_length(s.ptr + at, s.len - at) : 0;
        if (step == 0 && w->ours) {
            w->ours[s.ptr + at - w->data] = '?';
            step = 1;
        }
        REQUIRE(step > 0, E_FORMAT, "%s: %s holds byte 0x%02x at %zu: not UTF-8 text", w->what,
                field, s.ptr[at], at);
        at += step;
    }
    return OK;
}

static unsigned wire_type_of(ProtobufCType type) {
    switch (type) {
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return WIRE_FIXED32;
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return WIRE_FIXED64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return WIRE_BYTES;
    default:
        return WIRE_VARINT;
    }
}

static FALLIBLE count_items(struct walk *w, size_t more) {
    w->items_count += more;
    REQUIRE(w->items_count <= MESSAGE_ITEMS_MAX, E_LIMIT, "%s has more than %d fields and entries",
            w->what, MESSAGE_ITEMS_MAX);
    return OK;
}

/* Numbers packed into one field: at least one byte each. */
static FALLIBLE walk_packed(struct walk *w, const ProtobufCFieldDescriptor *field,
                            struct bytes span) {
    struct reader r = reader_of(span, field->name);
    while (reader_left(&r) > 0) {
        TRY(count_items(w, 1));
        TRY(read_past_field(&r, wire_type_of(field->type)));
    }
    return OK;
}

static FALLIBLE walk_field(struct walk *w, const ProtobufCFieldDescriptor *field,
                           unsigned wire_type, struct reader *r, unsigned depth) {
    unsigned due = wire_type_of(field->type);
    struct bytes span;
    if (wire_type == WIRE_BYTES && due != WIRE_BYTES && field->label == PROTOBUF_C_LABEL_REPEATED) {
        TRY(read_delimited(&span, r));
        return walk_packed(w, field, span);
    }
    REQUIRE(wire_type == due, E_FORMAT, "%s: %s has wire type %u, want %u", w->what, field->name,
            wire_type, due);
    if (due != WIRE_BYTES) {
        return read_past_field(r, due);
    }
    TRY(read_delimited(&span, r));
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        return check_string(w, span, field->name);
    }
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        return walk_message(w, field->descriptor, span, depth + 1);
    }
    return OK;
}

static FALLIBLE walk_message(struct walk *w, const ProtobufCMessageDescriptor *type,
                             struct bytes data, unsigned depth) {
    REQUIRE(depth < MESSAGE_DEPTH_MAX, E_FORMAT, "%s is nested deeper than %d", w->what,
            MESSAGE_DEPTH_MAX);
    struct reader r = reader_of(data, w->what);
    unsigned unknown_count = 0;
    while (reader_left(&r) > 0) {
        uint64_t key;
        TRY(count_items(w, 1));
        TRY(read_varint(&key, &r));
        uint64_t id = key >> 3;
        REQUIRE(id > 0 && id < 1U << 29, E_FORMAT, "%s: field number %" PRIu64 " before byte %zu",
                w->what, id, r.pos);
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(type, (unsigned)id);
        if (field) {
            TRY(walk_field(w, field, key & 7, &r, depth));
            continue;
        }
        REQUIRE(++unknown_count <= MESSAGE_UNKNOWN_FIELDS_MAX, E_FORMAT,
                "%s has more than %d unknown fields", w->what, MESSAGE_UNKNOWN_FIELDS_MAX);
        TRY(read_past_field(&r, key & 7));
    }
    return OK;
}

/* --- Allocation --- */

struct cap {
    size_t left;
    bool exceeded, out_of_memory;
};

static void *cap_alloc(void *ctx, size_t bytes) {
    struct cap *cap = ctx;
    if (bytes > cap->left) {
        cap->exceeded = true;
        return NULL;
    }
    cap->left -= bytes;
    void *block = mem_alloc(bytes);
    cap->out_of_memory |= !block;
    return block;
}

static void plain_free(void *ctx, void *ptr) {
    (void)ctx;
    mem_free(ptr);
}

static void *no_alloc(void *ctx, size_t bytes) {
    (void)ctx;
    (void)bytes;
    return NULL;
}

void message_free(void *address_of_pointer) {
    ProtobufCMessage **message = address_of_pointer;
    if (*message) {
        ProtobufCAllocator heap = {no_alloc, plain_free, NULL};
        protobuf_c_message_free_unpacked(*message, &heap);
        *message = NULL;
    }
}

/* --- The two doors --- */

static FALLIBLE check_version(const ProtobufCMessage *message, const char *what) {
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, "version");
    if (!field || field->type != PROTOBUF_C_TYPE_UINT32) {
        return OK;
    }
    uint32_t version;
    memcpy(&version, (const char *)message + field->offset, sizeof version);
    REQUIRE(version > 0 && version <= WIRE_VERSION, E_FORMAT,
            "%s has version %" PRIu32 ", this program reads 1 to %d", what, version, WIRE_VERSION);
    return OK;
}

FALLIBLE message_unpack(void *out, const ProtobufCMessageDescriptor *type, struct bytes data,
                        size_t bytes_max, const char *what) {
    REQUIRE(data.len <= bytes_max && data.len <= MESSAGE_BYTES_MAX, E_LIMIT,
            "%s has %zu bytes, at most %zu allowed", what, data.len, bytes_max);
    struct walk w = {.what = what, .data = data.ptr};
    TRY(walk_message(&w, type, data, 0));
    struct cap cap = {.left = ALLOCATION_BYTES_MIN + ALLOCATION_FACTOR * data.len};
    ProtobufCAllocator capped = {cap_alloc, plain_free, &cap};
    AUTO(message_free)
    ProtobufCMessage *message = protobuf_c_message_unpack(type, &capped, data.len, data.ptr);
    REQUIRE(message || !cap.exceeded, E_LIMIT, "%s expands to more than %zu bytes", what,
            ALLOCATION_BYTES_MIN + ALLOCATION_FACTOR * data.len);
    REQUIRE(message || !cap.out_of_memory, E_LIMIT, "%s: no memory to unpack it", what);
    REQUIRE(message, E_FORMAT, "%s is not a valid %s", what, type->short_name);
    TRY(check_version(message, what));
    *(ProtobufCMessage **)out = TAKE(message);
    return OK;
}

FALLIBLE message_pack(struct bytes_mut *out, const void *message, size_t bytes_max,
                      const char *what) {
    const ProtobufCMessageDescriptor *type = ((const ProtobufCMessage *)message)->descriptor;
    size_t len = protobuf_c_message_get_packed_size(message);
    REQUIRE(len <= bytes_max, E_LIMIT, "%s takes %zu bytes, at most %zu allowed", what, len,
            bytes_max);
    struct bytes_mut packed = {.len = len};
    TRY(mem_new_raw(&packed.ptr, 1, len ? len : 1));
    size_t written = protobuf_c_message_pack(message, packed.ptr);
    ASSERT(written == len);
    struct walk w = {.what = what, .data = packed.ptr, .ours = packed.ptr};
    enum err code = walk_message(&w, type, bytes_of(packed.ptr, len), 0);
    if (code != OK) {
        mem_free(packed.ptr);
        return code;
    }
    *out = packed;
    return OK;
}
