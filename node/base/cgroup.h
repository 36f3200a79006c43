/* What the control group of this process allows: cores and memory.
 *
 * Both versions of the kernel's interface, own group and all above it; the tightest limit counts. Without control
 * groups, or without a limit, the machine's own size is the answer.
 *
 * Threads  any; reads files, so not for hot paths.
 * Units    bytes.
 */
#pragma once
#include "node/base/err.h"

unsigned
cgroup_cores(void); /* at least 1: affinity mask and quota, a part of a core counts as one */
uint64_t cgroup_memory_bytes(void);  /* limit of memory: the group's, at most the machine's */
bool cgroup_memory_is_limited(void); /* true when the group's limit is the tighter one */
/* What this process may plan with: that, less an eighth for the libraries, stacks and page tables that no plan counts. */
uint64_t cgroup_plan_bytes(void);

/* Tests only: reads `root` instead of /sys/fs/cgroup and `self` instead of /proc/self/cgroup. NULL: the real ones. */
void cgroup_look_in(const char *root, const char *self);
