/* The kernel says a device's node in sysfs; libnuma would be a library for one call. */
#include "node/base/numa.h"

#include <ctype.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATH_BYTES = 1024, POLICY_PREFERRED = 1, BITS = 8 * sizeof(unsigned long) };

static long bind_by_kernel(void *ptr, size_t bytes, int policy, const unsigned long *nodes,
                           unsigned long nodes_max, unsigned flags) {
    return syscall(SYS_mbind, ptr, bytes, policy, nodes, nodes_max, flags);
}

static const char *sys_root = "";
static numa_bind *ask = bind_by_kernel;

void numa_look_in(const char *root, numa_bind *bind) {
    sys_root = root ? root : "";
    ask = bind ? bind : bind_by_kernel;
}

int numa_node_of_pci(const char *address) {
    char path[PATH_BYTES];
    int node = -1;
    int at = snprintf(path, sizeof path, "%s/sys/bus/pci/devices/", sys_root);
    int len = snprintf(path + at, sizeof path - (size_t)at, "%s/numa_node", address);
    if ((size_t)at + (size_t)len >= sizeof path) {
        return -1;
    }
    for (char *c = path + at; *c; c++) { /* the kernel's folders have small letters */
        *c = (char)tolower((unsigned char)*c);
    }
    FILE *f = fopen(path, "re");
    if (f) {
        if (fscanf(f, "%d", &node) != 1) {
            node = -1;
        }
        fclose(f);
    }
    return node;
}

void numa_prefer(void *ptr, size_t bytes, int node) {
    unsigned long nodes[NUMA_NODES_MAX / BITS] = {0};
    if (node >= 0 && node < NUMA_NODES_MAX) {
        nodes[node / BITS] = 1ul << node % BITS;
        ask(ptr, bytes, POLICY_PREFERRED, nodes, NUMA_NODES_MAX, 0);
    }
}
