/* One device a test program, its memory kept in a list until the claim's end. */
#include "tests/kernel/device.h"

#include "node/base/mem.h"

#include <stdlib.h>
#include <string.h>

const enum curve_id curves_tested[CURVES_COUNT] = {CURVE_BN254, CURVE_BLS12_381};

enum { TAKEN_MAX = 256, STAGE_BYTES = 32 << 20 };
static struct device device;
static void *taken[TAKEN_MAX], *pinned[TAKEN_MAX], *stage;
static size_t taken_count, pinned_count, pinned_bytes[TAKEN_MAX];

const struct device *device_of_test(void) {
    static bool asked, works;
    if (!asked) {
        asked = true;
        works = gpu_open(&device.info, getenv("BELLOWS_DEVICE")) == OK &&
                gpu_stream_open(&device.stream) == OK && gpu_pinned_open(&stage, STAGE_BYTES) == OK;
        device.emulated =
            works && (!strcmp(device.info.name, "emulator") || getenv("BELLOWS_KERNEL_SMALL"));
    }
    if (!works) {
        check_skip("no device: %s", err_detail());
    }
    return &device;
}

void *device_take(size_t bytes) {
    CHECK(taken_count < TAKEN_MAX);
    void *ptr = NULL;
    CHECK_OK(gpu_mem_open(&ptr, bytes + 16));
    taken[taken_count++] = ptr;
    CHECK_OK(gpu_fill(ptr, 0xa5, bytes, device.stream));
    return ptr;
}

void *device_put(const void *host, size_t bytes) {
    char *ptr = device_take(bytes);
    for (size_t at = 0; at < bytes; at += STAGE_BYTES) {
        size_t part = bytes - at < STAGE_BYTES ? bytes - at : STAGE_BYTES;
        memcpy(stage, (const char *)host + at, part);
        CHECK_OK(gpu_upload(ptr + at, stage, part, device.stream));
        CHECK_OK(gpu_stream_wait(device.stream));
    }
    return ptr;
}

void device_get(void *host, const void *from, size_t bytes) {
    for (size_t at = 0; at < bytes; at += STAGE_BYTES) {
        size_t part = bytes - at < STAGE_BYTES ? bytes - at : STAGE_BYTES;
        CHECK_OK(gpu_download(stage, (const char *)from + at, part, device.stream));
        CHECK_OK(gpu_stream_wait(device.stream));
        memcpy((char *)host + at, stage, part);
    }
}

void *device_pinned(size_t bytes) {
    CHECK(pinned_count < TAKEN_MAX);
    void *ptr = NULL;
    CHECK_OK(gpu_pinned_open(&ptr, bytes));
    pinned_bytes[pinned_count] = bytes;
    pinned[pinned_count++] = ptr;
    return ptr;
}

void device_done(void) {
    CHECK_OK(gpu_stream_wait(device.stream));
    while (taken_count) {
        gpu_mem_close(&taken[--taken_count]);
    }
    while (pinned_count) {
        pinned_count--;
        gpu_pinned_close(&pinned[pinned_count], pinned_bytes[pinned_count]);
    }
}

void scalar_uniform(struct scalar *out, const struct curve *c) {
    do {
        rng_fill(check_rng(), out, sizeof *out);
        out->w[3] &= c->id == CURVE_BN254 ? 0x3fffffffffffffff : 0x7fffffffffffffff;
    } while (!scalar_is_valid(c, out));
}

const char *mix_name(enum scalar_mix mix) {
    static const char *const names[MIX_COUNT] = {"uniform", "witness-like", "bits",   "all equal",
                                                 "edges",   "all zero",     "sparse", "small"};
    return names[mix];
}

static void scalar_edge(struct scalar *out, const struct curve *c) {
    struct scalar one = {{1}}, two = {{2}}, zero = {{0}}, half;
    c->scalar_inv(&half, &two); /* (r + 1) / 2 */
    *out = zero;
    switch (rng_below(check_rng(), 7)) {
    case 0:
        break;
    case 1:
        *out = one;
        break;
    case 2:
        c->scalar_sub(out, &zero, &one);
        break;
    case 3:
        *out = half;
        break;
    case 4:
        c->scalar_sub(out, &half, &one);
        break;
    case 5:
        out->w[rng_below(check_rng(), 3)] = (uint64_t)1 << rng_below(check_rng(), 64);
        break;
    default: /* every digit at its largest */
        memset(out, 0xff, 31);
        break;
    }
}

struct scalar *scalars_random(const struct curve *c, size_t count, enum scalar_mix mix) {
    struct scalar *s = NULL, equal;
    CHECK_OK(mem_new(&s, count, sizeof *s));
    scalar_uniform(&equal, c);
    for (size_t i = 0; i < count; i++) {
        uint64_t dice = rng_below(check_rng(), 100);
        if (mix == MIX_UNIFORM || (mix == MIX_WITNESS && dice >= 85) ||
            (mix == MIX_SPARSE && dice >= 97)) {
            scalar_uniform(&s[i], c);
        } else if (mix == MIX_WITNESS) {
            s[i].w[0] = dice < 40   ? 0
                        : dice < 70 ? 1
                                    : rng_u64(check_rng()) >> (dice < 80 ? 56 : 0);
        } else if (mix == MIX_BITS || mix == MIX_SPARSE) {
            s[i].w[0] = dice & 1;
        } else if (mix == MIX_SMALL) {
            s[i].w[0] = 33 + dice % 95;
        } else if (mix == MIX_EQUAL) {
            s[i] = equal;
        } else if (mix == MIX_EDGES) {
            scalar_edge(&s[i], c);
        }
    }
    return s;
}

static int by_size(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}
double median_ms(uint64_t *ns, size_t count) {
    qsort(ns, count, sizeof *ns, by_size);
    return (double)ns[count / 2] / 1e6;
}
