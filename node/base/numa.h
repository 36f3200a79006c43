/* Memory nodes: which one is near a device, and memory that is to lie there.
 *
 * A host with several processors has memory at each; a device copies from the memory of its own processor at the full rate of its link, from
 * another's more slowly and through what the processors share. So what a device reads all the time lies near it.
 *
 * Threads  any.
 */
#pragma once
#include <stddef.h>

enum { NUMA_NODES_MAX = 1024 };

/* Of the device at this place of the PCI bus, "0000:65:00.0" in letters of any size; -1: not known, or the host has no nodes. */
int numa_node_of_pci(const char *address);
/* Pages of [ptr, ptr + bytes) that are touched from now on lie on the node, as long as it has room: a wish, which a kernel without nodes
 * ignores. `node` negative: none. */
void numa_prefer(void *ptr, size_t bytes, int node);

/* Tests only: reads below `root` instead of /, and asks `bind` instead of the kernel's mbind. NULL: the real ones. */
typedef long numa_bind(void *ptr, size_t bytes, int policy, const unsigned long *nodes,
                       unsigned long nodes_max, unsigned flags);
void numa_look_in(const char *root, numa_bind *bind);
