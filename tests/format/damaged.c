/* The readers under test are the ones over a span of bytes: what key_open and its kin put around them is the mapping. */
#include "tests/format/damaged.h"

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/key/parts.h"

#include <stdio.h>
#include <string.h>

const char *const curve_dirs[CURVES_COUNT] = {"bn128", "bls12381"};

struct damaged damaged_load(const char *path, const char *name) {
    struct bytes_mut all;
    CHECK_OK(file_read_all(&all, path, 1 << 24));
    struct damaged d = {mem_alloc(all.len), all.len, name};
    CHECK(d.ptr != NULL);
    memcpy(d.ptr, all.ptr, all.len);
    mem_free(all.ptr);
    return d;
}

struct damaged damaged_case(const char *curve, const char *tail) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", curve, tail);
    const char *slash = strrchr(tail, '/');
    return damaged_load(check_vectors(path), slash ? slash + 1 : tail);
}

void damaged_free(struct damaged *d) {
    mem_free(d->ptr);
    *d = (struct damaged){0};
}

void damaged_u32(struct damaged *d, size_t at, uint32_t value) {
    CHECK(at + 4 <= d->len);
    store_u32le(d->ptr + at, value);
}

void damaged_u32be(struct damaged *d, size_t at, uint32_t value) {
    damaged_u32(d, at, __builtin_bswap32(value));
}

void damaged_u64(struct damaged *d, size_t at, uint64_t value) {
    CHECK(at + 8 <= d->len);
    store_u64le(d->ptr + at, value);
}

/* A new block of exactly `len` bytes with what fits of the old one. */
static void resize(struct damaged *d, size_t len) {
    uint8_t *block = mem_alloc(len);
    CHECK(block != NULL);
    memcpy(block, d->ptr, len < d->len ? len : d->len);
    mem_free(d->ptr);
    d->ptr = block;
    d->len = len;
}

void damaged_cut(struct damaged *d, size_t len) {
    CHECK(len <= d->len);
    resize(d, len);
}

void damaged_remove(struct damaged *d, size_t from, size_t count) {
    CHECK(from + count <= d->len);
    memmove(d->ptr + from, d->ptr + from + count, d->len - from - count);
    resize(d, d->len - count);
}

void damaged_append(struct damaged *d, const void *bytes, size_t count) {
    size_t at = d->len;
    resize(d, at + count);
    memcpy(d->ptr + at, bytes, count);
}

size_t section_place(const struct damaged *d, uint32_t id) {
    size_t at = 12;
    while (at + 12 <= d->len) {
        if (load_u32le(d->ptr + at) == id) {
            return at + 12;
        }
        at += 12 + load_u64le(d->ptr + at + 4);
    }
    check_fail(__FILE__, __LINE__, "%s has no section %u", d->name, id);
}

uint64_t section_length(const struct damaged *d, uint32_t id) {
    return load_u64le(d->ptr + section_place(d, id) - 8);
}

void section_shorten(struct damaged *d, uint32_t id, size_t bytes) {
    size_t at = section_place(d, id), length = section_length(d, id);
    CHECK(bytes <= length);
    damaged_u64(d, at - 8, length - bytes);
    damaged_remove(d, at + length - bytes, bytes);
}

size_t zkey_q_bytes(const struct damaged *d) {
    return load_u32le(d->ptr + section_place(d, 2));
}

size_t zkey_wires_place(const struct damaged *d) {
    return section_place(d, 2) + 4 + zkey_q_bytes(d) + 4 + SCALAR_BYTES;
}

size_t zkey_public_place(const struct damaged *d) {
    return zkey_wires_place(d) + 4;
}

size_t zkey_domain_place(const struct damaged *d) {
    return zkey_wires_place(d) + 8;
}

static enum err key_says(struct bytes file, const char *name) {
    struct key_parts parts;
    enum err e = key_parse(&parts, file, name);
    if (e == OK) {
        key_parts_done(&parts);
    }
    return e;
}

static enum err vkey_says(struct bytes file, const char *name, bool json) {
    struct vkey vk;
    enum err e = json ? vkey_read_json(&vk, file, name)
                      : vkey_read_bellman(&vk, curve_by_id(CURVE_BLS12_381), file, name);
    if (e == OK) {
        vkey_done(&vk);
    }
    return e;
}

enum err reader_says(const struct damaged *d, enum reads reads) {
    struct bytes file = bytes_of(d->ptr, d->len);
    struct witness w;
    struct r1cs r;
    enum err e = E_INTERNAL;
    switch (reads) {
    case READS_KEY:
        return key_says(file, d->name);
    case READS_VKEY_JSON:
    case READS_VKEY_BELLMAN:
        return vkey_says(file, d->name, reads == READS_VKEY_JSON);
    case READS_WITNESS:
    case READS_EVALUATIONS:
        e = reads == READS_WITNESS ? witness_from_wtns_bytes(&w, file, d->name)
                                   : witness_from_evaluations_bytes(&w, file, d->name);
        if (e == OK) {
            witness_close(&w);
        }
        return e;
    case READS_R1CS:
        e = r1cs_from_bytes(&r, file, d->name);
        if (e == OK) {
            r1cs_close(&r);
        }
        return e;
    }
    return e;
}

void refused(const char *file, int line, const struct damaged *d, enum reads reads, enum err code,
             const char *const *texts) {
    long blocks = mem_live_blocks();
    uint64_t start = clock_ns();
    enum err e = reader_says(d, reads);
    uint64_t took = clock_ns() - start;
    check_err(file, line, code, e, d->name);
    check_text(file, line, err_detail(), d->name);
    for (; *texts; texts++) {
        check_text(file, line, err_detail(), *texts);
    }
    if (took >= REFUSAL_NS_MAX) {
        check_fail(file, line, "refusal took %llu ns", (unsigned long long)took);
    }
    if (mem_live_blocks() != blocks) {
        check_fail(file, line, "%ld blocks were left behind", mem_live_blocks() - blocks);
    }
}

void taken(const char *file, int line, const struct damaged *d, enum reads reads) {
    long blocks = mem_live_blocks();
    check_err(file, line, OK, reader_says(d, reads), d->name);
    if (mem_live_blocks() != blocks) {
        check_fail(file, line, "%ld blocks were left behind", mem_live_blocks() - blocks);
    }
}
