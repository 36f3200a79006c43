/* Plan: what proving under a key will take, before anything is taken.
 *
 * Pure: a function of the key's shape and the backend's description. Lanes ask it before they load a key, `bellows plan` and
 * `prove` before they begin, the coordinator for lanes on processors; tests compare it with what really happens.
 *
 * Threads  values.
 * Units    bytes, nanoseconds.
 */
#pragma once
#include "node/key/key.h"

struct plan {
    uint64_t host_bytes;   /* heap: key in the backend's form, tables, workspace of one slot */
    uint64_t mapped_bytes; /* of files, not counted in host_bytes */
    uint64_t pinned_bytes;
    uint64_t device_bytes;
    uint64_t key_bytes_resident; /* part of host or device bytes that stays between jobs */
    uint64_t expected_ns;        /* one proof, dense witness; 0 when unknown */
    bool multiples;              /* of the key's points are there */
    uint32_t chunks_count;       /* 1: resident; more: the key is streamed */
};
