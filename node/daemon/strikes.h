/* Strikes of a device, in a file of the node's cache: they outlive the lane's process, so that a sick device does not get a clean slate by
 * being started again.
 *
 * As many as fence a lane are kept until somebody resumes it; fewer are forgotten a day after the last, as a device that recovers by
 * itself is not sick.
 *
 * Threads  any; one device is one lane's.
 * Errors   E_IO; E_FORMAT for an id that is no file name. A file that cannot be read as strikes counts as none.
 */
#pragma once
#include "node/base/err.h"

#include <stdint.h>

struct strikes {
    uint32_t count;
    char reason[ERR_DETAIL_BYTES]; /* of the last; "" */
};
/* `device` NULL: nothing is kept anywhere, *out is none. */
FALLIBLE strikes_load(struct strikes *out, const char *cache_dir, const char *device,
                      uint32_t strikes_max);
/* None: the file goes. */
FALLIBLE strikes_store(const struct strikes *s, const char *cache_dir, const char *device);
