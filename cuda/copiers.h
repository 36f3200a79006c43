/* Copying and wiping much host memory with several threads: one core moves 8 GB/s, the bus takes 50.
 *
 * Threads  those of the pool, which belongs to one caller at a time.
 */
#pragma once
#include "node/base/pool.h"

void copiers_copy(struct pool *pool, void *to, const void *from, size_t bytes);
void copiers_wipe(struct pool *pool, void *at, size_t bytes);
