/* What a device reaches in single operations: products of both fields, transforms. Memory and streams of their own.
 *
 * Threads  the one that drives the device, which is open.
 * Errors   E_LIMIT where the device's memory is taken; E_DEVICE, E_DEVICE_LOST.
 */
#pragma once
#include "node/groth16/backend.h"

FALLIBLE gpu_rates(struct rates *out, enum curve_id id, unsigned sm_count);
/* As backend_ops has it; `b` is not looked at. */
FALLIBLE gpu_transforms(uint64_t *ns, size_t count, struct backend *b, enum curve_id id,
                        unsigned log2);
