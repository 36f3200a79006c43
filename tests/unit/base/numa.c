/* Memory nodes: what sysfs says of a device, and what is asked of the kernel. */
#include "node/base/numa.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "node/base/file.h"
#include "node/base/mem.h"
#include "tests/check/check.h"

enum { BITS = 8 * sizeof(unsigned long), PAGE = 4096, PREFERRED = 1, OF_ADDRESS = 2 };

static struct {
    void *ptr;
    size_t bytes;
    int policy, calls;
    unsigned long nodes[NUMA_NODES_MAX / BITS];
} asked;

static long note(void *ptr, size_t bytes, int policy, const unsigned long *nodes,
                 unsigned long nodes_max, unsigned flags) {
    CHECK_EQ(0, flags);
    CHECK_EQ(NUMA_NODES_MAX, nodes_max);
    asked.ptr = ptr;
    asked.bytes = bytes;
    asked.policy = policy;
    memcpy(asked.nodes, nodes, sizeof asked.nodes);
    asked.calls++;
    return 0;
}

static void put(const char *root, const char *device, const char *text) {
    char path[400];
    snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s", root, device);
    CHECK_OK(dir_make(path));
    snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s/numa_node", root, device);
    CHECK_OK(file_write_all(path, bytes_of(text, strlen(text))));
}

static void claim_of_device(void) {
    AUTO(mem_free_ptr) char *root = NULL;
    char far[2048];
    CHECK_OK(dir_make_temp(&root, "bellows-numa"));
    put(root, "0000:65:00.0", "0\n");
    put(root, "0000:e3:00.0", "1\n");
    put(root, "0000:01:00.0", "-1\n");
    put(root, "0000:02:00.0", "none\n");
    numa_look_in(root, NULL);
    CHECK_EQ(0, numa_node_of_pci("0000:65:00.0"));
    CHECK_EQ(1, numa_node_of_pci("0000:E3:00.0")); /* as CUDA writes it */
    CHECK_EQ(-1, numa_node_of_pci("0000:01:00.0"));
    CHECK_EQ(-1, numa_node_of_pci("0000:02:00.0"));
    CHECK_EQ(-1, numa_node_of_pci("0000:ff:00.0"));
    CHECK_EQ(-1, numa_node_of_pci(""));
    memset(far, 'a', sizeof far - 1);
    far[sizeof far - 1] = 0;
    CHECK_EQ(-1, numa_node_of_pci(far));
    numa_look_in(NULL, NULL);
    CHECK_OK(dir_remove_tree(root));
}

static void claim_asked(void) {
    char memory[16];
    static const int nodes[] = {0, 1, 63, 64, NUMA_NODES_MAX - 1};
    numa_look_in(NULL, note);
    for (size_t i = 0; i < COUNT_OF(nodes); i++) {
        unsigned long expected[NUMA_NODES_MAX / BITS] = {0};
        expected[nodes[i] / BITS] = 1ul << nodes[i] % BITS;
        numa_prefer(memory, sizeof memory, nodes[i]);
        CHECK(asked.ptr == memory && asked.bytes == sizeof memory);
        CHECK_EQ(PREFERRED, asked.policy);
        CHECK(!memcmp(expected, asked.nodes, sizeof expected));
    }
    int calls = asked.calls;
    numa_prefer(memory, sizeof memory, -1);
    numa_prefer(memory, sizeof memory, NUMA_NODES_MAX);
    CHECK_EQ(calls, asked.calls);
    numa_look_in(NULL, NULL);
}

/* By what the kernel itself says of the pages. */
static void claim_kernel(void) {
    int policy = -1;
    unsigned long nodes[NUMA_NODES_MAX / BITS] = {0};
    char *pages = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    if (syscall(SYS_get_mempolicy, &policy, nodes, NUMA_NODES_MAX, pages, OF_ADDRESS) != 0) {
        munmap(pages, 4 * PAGE);
        check_skip("this kernel has no memory nodes");
    }
    CHECK_EQ(0, policy);
    numa_prefer(pages, 2 * PAGE, 0);
    CHECK_EQ(0, syscall(SYS_get_mempolicy, &policy, nodes, NUMA_NODES_MAX, pages, OF_ADDRESS));
    CHECK_EQ(PREFERRED, policy);
    CHECK_EQ(1, nodes[0]);
    pages[0] = pages[PAGE] = 1;
    CHECK_EQ(0, syscall(SYS_get_mempolicy, &policy, nodes, NUMA_NODES_MAX, pages + 2 * PAGE,
                        OF_ADDRESS));
    CHECK_EQ(0, policy); /* its neighbours are not meant */
    munmap(pages, 4 * PAGE);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"the node of a device is what sysfs says, however its address is written",
         claim_of_device},
        {"memory is wished to one node, and none without one", claim_asked},
        {"the kernel knows the wish, for these pages alone", claim_kernel},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
