/* The machine: limits of this process, memory, disk. Files of /proc and /sys are short, and read as lines. */
#include "node/base/cgroup.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/cli/doctor.h"
#include "node/daemon/backends.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const char PART[] = "host";
enum { FILES_LEAST = 1024, LINE_BYTES = 512 };
static const uint64_t MEMORY_LEAST = UINT64_C(4) << 30;
static const uint64_t MEMLOCK_LEAST = UINT64_C(1) << 30;
static const uint64_t DISK_LEAST = UINT64_C(20) << 30, DISK_NONE = UINT64_C(1) << 30;

/* The first line; false when it cannot be read. */
static bool read_line(char out[LINE_BYTES], const char *path) {
    FILE *file = fopen(path, "re");
    bool ok = file && fgets(out, LINE_BYTES, file);
    if (file) {
        fclose(file);
    }
    if (ok) {
        out[strcspn(out, "\n")] = 0;
    }
    return ok;
}

static void look_at_limits(struct findings *f) {
    struct rlimit locked, files, core;
    if (getrlimit(RLIMIT_MEMLOCK, &locked) == 0) {
        bool small = locked.rlim_cur != RLIM_INFINITY && locked.rlim_cur < MEMLOCK_LEAST;
        bool matters = small && backends_cuda_compiled();
        if (locked.rlim_cur == RLIM_INFINITY) {
            finding_add(f, PART, "memlock", FINDING_GOOD, "locked memory is not limited");
        } else {
            finding_add(f, PART, "memlock", matters ? FINDING_WARNING : FINDING_NOTE,
                        "locked memory is limited to %.1f MiB (ulimit -l); lanes on GPUs lock "
                        "what they upload from",
                        (double)locked.rlim_cur / 0x1p20);
        }
        if (matters) {
            finding_cure(f, "ulimit -l unlimited, or LimitMEMLOCK=infinity in the unit");
        }
    }
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        bool few = files.rlim_cur < FILES_LEAST;
        finding_add(f, PART, "files", few ? FINDING_WARNING : FINDING_GOOD,
                    "%llu open files allowed", (unsigned long long)files.rlim_cur);
        if (few) {
            finding_cure(f, "ulimit -n %d, or LimitNOFILE=%d in the unit", FILES_LEAST,
                         FILES_LEAST);
        }
    }
    if (getrlimit(RLIMIT_CORE, &core) == 0) {
        bool dumps = core.rlim_cur != 0;
        finding_add(f, PART, "core", dumps ? FINDING_WARNING : FINDING_GOOD,
                    dumps ? "core dumps are on: one of a lane holds witnesses"
                          : "core dumps are off");
        if (dumps) {
            finding_cure(f, "ulimit -c 0, or LimitCORE=0 in the unit");
        }
    }
}

static void look_at_memory(struct findings *f) {
    char line[LINE_BYTES], swaps[LINE_BYTES] = "";
    uint64_t bytes = cgroup_memory_bytes();
    bool limited = cgroup_memory_is_limited(), little = bytes < MEMORY_LEAST;
    finding_add(f, PART, "memory", little ? FINDING_WARNING : FINDING_GOOD,
                "%.1f GiB for this process (%s), %u cores", (double)bytes / 0x1p30,
                limited ? "its control group's limit" : "the machine's own", cgroup_cores());
    if (little) {
        finding_cure(f, "`bellows plan KEY` says what a key needs; raise the limit if it is more");
    }
    if (read_line(line, "/sys/kernel/mm/transparent_hugepage/enabled")) {
        bool never = strstr(line, "[never]") != NULL;
        finding_add(f, PART, "hugepages", never ? FINDING_WARNING : FINDING_GOOD,
                    never ? "transparent huge pages are off: locking memory takes many times longer"
                          : "transparent huge pages: %s",
                    line);
        if (never) {
            finding_cure(f, "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
        }
    }
    FILE *file = fopen("/proc/swaps", "re");
    bool on = file && fgets(line, sizeof line, file) && fgets(swaps, sizeof swaps, file);
    if (file) {
        fclose(file);
    }
    finding_add(f, PART, "swap", on ? FINDING_WARNING : FINDING_GOOD,
                on ? "memory may be swapped out to %.*s, witnesses with it"
                   : "nothing is swapped out%.*s",
                on ? (int)strcspn(swaps, " \t") : 0, swaps);
    if (on) {
        finding_cure(f, "swapoff -a, or an encrypted swap");
    }
    if (read_line(line, "/sys/devices/system/node/online")) {
        bool several = strpbrk(line, ",-") != NULL;
        finding_add(f, PART, "numa", several ? FINDING_NOTE : FINDING_GOOD,
                    several ? "NUMA nodes %s: a lane is fastest on its GPU's node"
                            : "one NUMA node%s",
                    several ? line : "");
    }
}

/* Of the folder, or of the first one above it that is there. */
static void look_at_cache(struct findings *f, const struct config *config) {
    char path[4096];
    struct statvfs fs;
    const char *tmp = getenv("TMPDIR");
    bool named = config->cache[0] != 0;
    snprintf(path, sizeof path, "%s", named ? config->cache : tmp && *tmp ? tmp : "/tmp");
    while (!file_exists(path) && strrchr(path, '/') && strrchr(path, '/') != path) {
        *strrchr(path, '/') = 0;
    }
    if (statvfs(path, &fs) != 0 || access(path, W_OK) != 0) {
        finding_add(f, PART, "cache", FINDING_BAD, "%.300s, for fetched keys: %s", path,
                    strerror(errno));
        finding_cure(f, "make it writable for this user, or name another folder with --cache");
        return;
    }
    uint64_t bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    bool little = bytes < DISK_LEAST;
    finding_add(f, PART, "cache",
                bytes < DISK_NONE  ? FINDING_BAD
                : little || !named ? FINDING_WARNING
                                   : FINDING_GOOD,
                "%.1f GiB free in %.300s for fetched keys%s", (double)bytes / 0x1p30, path,
                named ? "" : "; no --cache is named, so each start fetches them again");
    if (little || !named) {
        finding_cure(f, "--cache names a folder on a disk with room for the fleet's keys");
    }
}

void doctor_host(struct findings *f, const struct config *config) {
    look_at_limits(f);
    look_at_memory(f);
    look_at_cache(f, config);
}
