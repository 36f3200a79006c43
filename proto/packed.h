/* PACKED scalars, version 1: the byte format, and the writer's half of it for any C program.
 *
 * A witness is mostly zeros, ones and small numbers; stored as 32 bytes each they cost up to 130 times what they say. This
 * header alone (C11, the C library, nothing else of this project) turns plain scalars into a section of kind *_PACKED;
 * node's own writer and reader are codec.h.
 *
 * A scalar is a canonical integer below the scalar prime r, 32 bytes little-endian, never Montgomery. All integers are
 * little-endian. Scalars are taken in blocks of 65536, the last one shorter; blocks = ceil(values_count / 65536).
 *
 *     head        offset  bytes
 *                 0       4      "BPKS"
 *                 4       2      version: 1
 *                 6       2      log2 of the scalars in a block: 16
 *                 8       8      values_count, at least 1, at most 2^32
 *                 16      8      bytes of the whole, head and directory included
 *                 24      8      zero
 *     directory   32      16 a block, in order:
 *                        0    4  small_count
 *                        4    4  full_count
 *                        8    4  width of the block's small values: 1, 2, 4 or 8; 0 when it has none
 *                        12   4  zero
 *     blocks      then, one after the other, each with three parts:
 *                        classes  2 bits a scalar, four in a byte, the first in the lowest bits
 *                        small    small_count signed integers of `width` bytes, two's complement
 *                        full     full_count plain scalars
 *                 classes and small are each filled up with zero bytes to a multiple of 16, so every part of every block
 *                 lies at a multiple of 16 from the start. Bits of classes behind the last scalar are zero.
 *
 *     class 0     the scalar is 0
 *     class 1     the scalar is 1
 *     class 2     the next of `small`: x itself, or r + x where x is negative; -2^63 <= x < 2^63
 *     class 3     the next of `full`
 *
 * Nothing says where a block begins: the parts' lengths follow from directory and values_count, their places are sums of
 * lengths, and the last block ends where the section ends. A reader therefore knows all places from the first bytes, can
 * decode any block on any thread or device, and refuses what does not add up before it touches a block. A writer may put
 * a scalar into class 3 that would fit class 2; one that puts it into the cheapest class makes the smallest section.
 *
 * Use:     blocks = packed_blocks_count(n);
 *          for each block i: block[i] = packed_survey(values + 32·65536·i, packed_block_scalars(n, i), r);
 *          bytes = packed_bytes(block, n);                        worth it below 7/8 of 32·n, else send *_RAW
 *          packed_write_head(out, block, n);
 *          at = out + packed_head_bytes(n); for each block i: at = packed_write_block(at, values…, count, r, &block[i]);
 *
 * Threads  pure functions; blocks may be surveyed and written by different threads.
 */
#pragma once
#include <stdint.h>
#include <string.h>

enum {
    PACKED_VERSION = 1,
    PACKED_BLOCK_LOG2 = 16,
    PACKED_BLOCK_SCALARS = 1 << PACKED_BLOCK_LOG2,
    PACKED_HEAD_BYTES = 32,
    PACKED_ENTRY_BYTES = 16,
    PACKED_ALIGN = 16
};
enum packed_class { PACKED_ZERO, PACKED_ONE, PACKED_SMALL, PACKED_FULL };

struct packed_block { /* an entry of the directory */
    uint32_t small_count, full_count, width;
};

static inline uint64_t packed_blocks_count(uint64_t values_count) {
    return values_count / PACKED_BLOCK_SCALARS + (values_count % PACKED_BLOCK_SCALARS != 0);
}
static inline uint32_t packed_block_scalars(uint64_t values_count, uint64_t block_idx) {
    uint64_t left = values_count - block_idx * PACKED_BLOCK_SCALARS;
    return left < PACKED_BLOCK_SCALARS ? (uint32_t)left : (uint32_t)PACKED_BLOCK_SCALARS;
}
static inline uint64_t packed_head_bytes(uint64_t values_count) {
    return PACKED_HEAD_BYTES + PACKED_ENTRY_BYTES * packed_blocks_count(values_count);
}
static inline uint32_t packed_align(uint32_t bytes) {
    return (bytes + PACKED_ALIGN - 1) & ~(uint32_t)(PACKED_ALIGN - 1);
}
static inline uint32_t packed_classes_bytes(uint32_t scalars_count) {
    return packed_align((scalars_count + 3) / 4);
}
/* Of one block, at most 65536·32 + 16 KiB + 16. */
static inline uint32_t packed_block_bytes(const struct packed_block *b, uint32_t scalars_count) {
    return packed_classes_bytes(scalars_count) + packed_align(b->small_count * b->width) +
           32 * b->full_count;
}
static inline uint64_t packed_bytes(const struct packed_block *blocks, uint64_t values_count) {
    uint64_t bytes = packed_head_bytes(values_count);
    for (uint64_t i = 0; i < packed_blocks_count(values_count); i++) {
        bytes += packed_block_bytes(&blocks[i], packed_block_scalars(values_count, i));
    }
    return bytes;
}

static inline void packed_put(uint8_t *at, uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(value >> 8 * i);
    }
}
static inline uint64_t packed_word(const uint8_t *at) {
    uint64_t w = 0;
    for (unsigned i = 0; i < 8; i++) {
        w |= (uint64_t)at[i] << 8 * i;
    }
    return w;
}

/* The class of a plain scalar; *small is set for PACKED_SMALL. r: the scalar prime, lowest word first. */
static inline enum packed_class packed_class_of(int64_t *small, const uint8_t *scalar,
                                                const uint64_t r[4]) {
    uint64_t w[4] = {packed_word(scalar), packed_word(scalar + 8), packed_word(scalar + 16),
                     packed_word(scalar + 24)};
    if (!(w[1] | w[2] | w[3])) {
        *small = (int64_t)w[0];
        return w[0] < 2 ? (enum packed_class)w[0] : w[0] >> 63 ? PACKED_FULL : PACKED_SMALL;
    }
    if (w[3] != r[3]) {
        return PACKED_FULL;
    }
    uint64_t down = r[0] - w[0], borrow = r[0] < w[0]; /* r - scalar, word by word */
    for (unsigned i = 1; i < 4; i++) {
        uint64_t part = r[i] - w[i] - borrow;
        borrow = r[i] < w[i] || (r[i] == w[i] && borrow);
        if (part) {
            return PACKED_FULL;
        }
    }
    *small = (int64_t)(0 - down); /* two's complement: the least one is -2^63 */
    return down > UINT64_C(1) << 63 || !down ? PACKED_FULL : PACKED_SMALL;
}

/* What a block of plain scalars will hold. */
static inline struct packed_block packed_survey(const uint8_t *values, uint32_t scalars_count,
                                                const uint64_t r[4]) {
    struct packed_block b = {0, 0, 0};
    uint64_t reach = 0; /* bits of the small values, the sign folded in */
    for (uint32_t i = 0; i < scalars_count; i++) {
        int64_t small = 0;
        enum packed_class what = packed_class_of(&small, values + 32 * (uint64_t)i, r);
        b.full_count += what == PACKED_FULL;
        if (what == PACKED_SMALL) {
            b.small_count++;
            reach |= small < 0 ? ~(uint64_t)small : (uint64_t)small;
        }
    }
    if (b.small_count) {
        b.width = reach >> 31 ? 8 : reach >> 15 ? 4 : reach >> 7 ? 2 : 1;
    }
    return b;
}

static inline void packed_write_head(uint8_t *out, const struct packed_block *blocks,
                                     uint64_t values_count) {
    memset(out, 0, PACKED_HEAD_BYTES);
    memcpy(out, "BPKS", 4);
    packed_put(out + 4, PACKED_VERSION, 2);
    packed_put(out + 6, PACKED_BLOCK_LOG2, 2);
    packed_put(out + 8, values_count, 8);
    packed_put(out + 16, packed_bytes(blocks, values_count), 8);
    for (uint64_t i = 0; i < packed_blocks_count(values_count); i++) {
        uint8_t *entry = out + PACKED_HEAD_BYTES + PACKED_ENTRY_BYTES * i;
        packed_put(entry, blocks[i].small_count, 4);
        packed_put(entry + 4, blocks[i].full_count, 4);
        packed_put(entry + 8, blocks[i].width, 4);
        packed_put(entry + 12, 0, 4);
    }
}

/* `b` is packed_survey of the same scalars. Returns the place behind the block. */
static inline uint8_t *packed_write_block(uint8_t *out, const uint8_t *values,
                                          uint32_t scalars_count, const uint64_t r[4],
                                          const struct packed_block *b) {
    uint32_t classes_bytes = packed_classes_bytes(scalars_count),
             small_bytes = packed_align(b->small_count * b->width);
    uint8_t *classes = out, *small_at = out + classes_bytes, *full_at = small_at + small_bytes;
    memset(out, 0, (size_t)classes_bytes + small_bytes);
    for (uint32_t i = 0; i < scalars_count; i++) {
        const uint8_t *scalar = values + 32 * (uint64_t)i;
        int64_t small = 0;
        enum packed_class what = packed_class_of(&small, scalar, r);
        classes[i / 4] |= (uint8_t)((unsigned)what << 2 * (i % 4));
        if (what == PACKED_SMALL) {
            packed_put(small_at, (uint64_t)small, b->width);
            small_at += b->width;
        } else if (what == PACKED_FULL) {
            memcpy(full_at, scalar, 32);
            full_at += 32;
        }
    }
    return full_at;
}
