/* NVIDIA cards as the kernel shows them: on the bus, with or without a driver, near or far from this process's memory. It is what is
 * left to look at when CUDA only says that there is no device.
 */
#include "node/cli/doctor.h"
#include "node/daemon/backends.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char PART[] = "device";
enum { CARDS_MAX = 64, ADDRESS_BYTES = 32 };

struct card {
    char address[ADDRESS_BYTES]; /* "0000:65:00.0" */
    int numa_node;               /* -1: not known */
};

static long number_of(const char *root, const char *address, const char *name) {
    char path[160], line[DOCTOR_LINE_BYTES];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", address, name);
    return doctor_line(line, root, path) ? strtol(line, NULL, 0) : -1;
}

/* Display controllers and accelerators (class 0x03…, 0x12…) of NVIDIA. */
static size_t find_cards(struct card out[CARDS_MAX], const char *root) {
    char path[4096];
    size_t count = 0;
    snprintf(path, sizeof path, "%s/sys/bus/pci/devices", root);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && count < CARDS_MAX && (e = readdir(dir));) {
        if (e->d_name[0] == '.' || strlen(e->d_name) >= ADDRESS_BYTES ||
            number_of(root, e->d_name, "vendor") != 0x10de) {
            continue;
        }
        long class = number_of(root, e->d_name, "class") >> 16;
        if (class == 0x03 || class == 0x12) {
            snprintf(out[count].address, ADDRESS_BYTES, "%s", e->d_name);
            out[count++].numa_node = (int)number_of(root, e->d_name, "numa_node");
        }
    }
    if (dir) {
        closedir(dir);
    }
    return count;
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Wed …": the first word that begins with a digit behind "Module". */
static bool judge_driver(struct findings *f, const char *root, size_t cards) {
    char line[DOCTOR_LINE_BYTES];
    if (!doctor_line(line, root, "/proc/driver/nvidia/version")) {
        finding_add(f, PART, "driver", FINDING_BAD,
                    "%zu NVIDIA cards are on the bus, and no driver is loaded", cards);
        finding_cure(f,
                     "apt-get install nvidia-driver, then modprobe nvidia; after a new kernel the "
                     "module must be built again (dkms status)");
        return false;
    }
    const char *version = strstr(line, "Module");
    version = version ? strpbrk(version, "0123456789") : NULL;
    finding_add(f, PART, "driver", FINDING_GOOD, "NVIDIA's kernel module %.*s, %zu cards",
                version ? (int)strcspn(version, " ") : 1, version ? version : "?", cards);
    return true;
}

static void judge_files(struct findings *f, const char *root) {
    static const char *const files[] = {"/dev/nvidiactl", "/dev/nvidia-uvm"};
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s%s", root, files[i]);
        if (access(path, R_OK | W_OK) == 0) {
            continue;
        }
        bool absent = errno == ENOENT;
        finding_add(f, PART, "permissions", FINDING_BAD, "%s: %s", files[i], strerror(errno));
        finding_cure(
            f,
            absent
                ? "nvidia-modprobe -c 0 -u, or run nvidia-persistenced; in a container: --gpus all"
                : "add the user to the group of the file (video on Debian)");
        return;
    }
    finding_add(f, PART, "permissions", FINDING_GOOD, "the device files can be opened");
}

/* Is `node` in a list like "0-1,4"? */
static bool list_has(const char *list, int node) {
    for (const char *at = list; *at;) {
        char *end;
        long first = strtol(at, &end, 10), last = first;
        if (end == at) {
            return false;
        }
        if (*end == '-') {
            last = strtol(end + 1, &end, 10);
        }
        if (node >= first && node <= last) {
            return true;
        }
        at = *end == ',' ? end + 1 : end + strlen(end);
    }
    return false;
}

static bool memory_nodes(char out[DOCTOR_LINE_BYTES], const char *root) {
    char path[4096];
    static const char name[] = "Mems_allowed_list:";
    bool found = false;
    snprintf(path, sizeof path, "%s/proc/self/status", root);
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(out, DOCTOR_LINE_BYTES, file)) {
        found = !strncmp(out, name, sizeof name - 1);
    }
    if (file) {
        fclose(file);
    }
    if (found) {
        const char *list = out + sizeof name - 1;
        list += strspn(list, " \t");
        memmove(out, list, strlen(list) + 1);
        out[strcspn(out, "\n")] = 0;
    }
    return found;
}

static void judge_numa(struct findings *f, const char *root, const struct card *cards,
                       size_t count) {
    char nodes[DOCTOR_LINE_BYTES];
    if (!memory_nodes(nodes, root)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (cards[i].numa_node >= 0 && !list_has(nodes, cards[i].numa_node)) {
            finding_add(f, PART, "numa", FINDING_WARNING,
                        "card %s hangs on NUMA node %d, and this process has memory of %.64s only: "
                        "uploads go through the other processor",
                        cards[i].address, cards[i].numa_node, nodes);
            finding_cure(f, "give the control group that node (cpuset.mems, AllowedMemoryNodes=)");
            return;
        }
    }
    finding_add(f, PART, "numa", FINDING_GOOD,
                "each card is near memory that this process may use");
}

void doctor_cards(struct findings *f, const char *root) {
    struct card cards[CARDS_MAX];
    size_t count = find_cards(cards, root);
    if (count == 0) {
        return;
    }
    if (!backends_cuda_compiled()) {
        finding_add(f, PART, "cards", FINDING_WARNING,
                    "%zu NVIDIA cards stand idle: this build has no CUDA", count);
        finding_cure(f, "install the package built with CUDA, or build with -Dcuda=enabled");
    }
    if (judge_driver(f, root, count)) {
        judge_files(f, root);
        judge_numa(f, root, cards, count);
    }
}
