/* The machine: limits of this process, memory, processor, clock, disk. Files of /proc and /sys are short, and read as lines. */
#include "node/base/cgroup.h"
#include "node/base/file.h"
#include "node/cli/doctor.h"
#include "node/cpu/tier.h"
#include "node/daemon/backends.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

static const char PART[] = "host";
enum { FILES_LEAST = 1024, PROCESSES_LEAST = 1024, LINE_BYTES = DOCTOR_LINE_BYTES };
static const uint64_t MEMORY_LEAST = UINT64_C(4) << 30;
static const uint64_t MEMLOCK_LEAST = UINT64_C(1) << 30;
static const uint64_t DISK_LEAST = UINT64_C(20) << 30, DISK_NONE = UINT64_C(1) << 30;

/* --- Limits of this process --- */

/* Of "Max locked memory         8388608              unlimited            bytes": the first value, UINT64_MAX when unlimited. */
static bool limit_of(uint64_t *out, const char *root, const char *name) {
    char path[4096], line[LINE_BYTES];
    bool found = false;
    size_t len = strlen(name);
    snprintf(path, sizeof path, "%s/proc/self/limits", root);
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        found = !strncmp(line, name, len);
    }
    if (file) {
        fclose(file);
    }
    if (found) {
        const char *value = line + len + strspn(line + len, " ");
        *out = value[0] == 'u' ? UINT64_MAX : strtoull(value, NULL, 10);
    }
    return found;
}

/* A lane on a GPU locks what --staging says; without it, by its memory, which 1 GiB stands for here. */
static void judge_memlock(struct findings *f, uint64_t bytes, uint64_t staging_bytes) {
    uint64_t wanted = staging_bytes ? staging_bytes : MEMLOCK_LEAST;
    if (bytes == UINT64_MAX) {
        finding_add(f, PART, "memlock", FINDING_GOOD, "locked memory is not limited");
        return;
    }
    bool matters = bytes < wanted && backends_cuda_compiled();
    finding_add(f, PART, "memlock", matters ? FINDING_WARNING : FINDING_NOTE,
                "locked memory is limited to %.1f MiB (ulimit -l); lanes on GPUs lock what they "
                "upload from, each %s%.1f MiB",
                (double)bytes / 0x1p20, staging_bytes ? "" : "at least ", (double)wanted / 0x1p20);
    if (matters) {
        finding_cure(f, "ulimit -l unlimited, LimitMEMLOCK=infinity in a unit, --ulimit memlock=-1 "
                        "for a container");
    }
}

static void judge_count(struct findings *f, const char *check, uint64_t count, uint64_t least,
                        const char *what, const char *cure) {
    char number[24] = "any number of";
    if (count != UINT64_MAX) {
        snprintf(number, sizeof number, "%llu", (unsigned long long)count);
    }
    finding_add(f, PART, check, count < least ? FINDING_WARNING : FINDING_GOOD, "%s %s allowed",
                number, what);
    if (count < least) {
        finding_cure(f, "%s", cure);
    }
}

static void look_at_limits(struct findings *f, const struct config *config, const char *root) {
    uint64_t value;
    if (limit_of(&value, root, "Max locked memory")) {
        judge_memlock(f, value, config->staging_bytes);
    }
    if (limit_of(&value, root, "Max open files")) {
        judge_count(f, "files", value, FILES_LEAST, "open files",
                    "ulimit -n 65536, or LimitNOFILE=65536 in the unit");
    }
    if (limit_of(&value, root, "Max processes")) {
        judge_count(f, "threads", value, PROCESSES_LEAST, "threads of this user",
                    "ulimit -u 4096, or TasksMax=infinity in the unit");
    }
    if (limit_of(&value, root, "Max core file size")) {
        finding_add(f, PART, "core", value ? FINDING_WARNING : FINDING_GOOD,
                    value ? "core dumps are on: one of a lane holds witnesses"
                          : "core dumps are off");
        if (value) {
            finding_cure(f, "ulimit -c 0, or LimitCORE=0 in the unit");
        }
    }
}

/* --- Memory --- */

static void judge_swap(struct findings *f, const char *root) {
    char path[4096], line[LINE_BYTES], swaps[LINE_BYTES] = "";
    snprintf(path, sizeof path, "%s/proc/swaps", root);
    FILE *file = fopen(path, "re");
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
}

static void judge_pages(struct findings *f, const char *root) {
    char line[LINE_BYTES];
    if (doctor_line(line, root, "/sys/kernel/mm/transparent_hugepage/enabled")) {
        bool never = strstr(line, "[never]") != NULL;
        finding_add(f, PART, "hugepages", never ? FINDING_WARNING : FINDING_GOOD,
                    never ? "transparent huge pages are off: locking memory takes many times longer"
                          : "transparent huge pages: %s",
                    line);
        if (never) {
            finding_cure(f, "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
        }
    }
    if (doctor_line(line, root, "/proc/sys/vm/overcommit_memory") && line[0] == '2') {
        finding_add(f, PART, "overcommit", FINDING_WARNING,
                    "the kernel promises only memory that is there: large keys may not be mapped");
        finding_cure(f, "sysctl vm.overcommit_memory=0");
    }
}

static void look_at_memory(struct findings *f, const char *root) {
    char line[LINE_BYTES];
    uint64_t bytes = cgroup_memory_bytes();
    bool limited = cgroup_memory_is_limited(), little = bytes < MEMORY_LEAST;
    finding_add(f, PART, "memory", little ? FINDING_WARNING : FINDING_GOOD,
                "%.1f GiB for this process (%s)", (double)bytes / 0x1p30,
                limited ? "its control group's limit" : "the machine's own");
    if (little) {
        finding_cure(f, "`bellows plan KEY` says what a key needs; raise the limit if it is more");
    }
    judge_pages(f, root);
    judge_swap(f, root);
    if (doctor_line(line, root, "/sys/devices/system/node/online")) {
        bool several = strpbrk(line, ",-") != NULL;
        finding_add(f, PART, "numa", several ? FINDING_NOTE : FINDING_GOOD,
                    several ? "NUMA nodes %s: a lane is fastest on its GPU's node"
                            : "one NUMA node%s",
                    several ? line : "");
    }
}

/* --- Processor and clock --- */

static void look_at_processor(struct findings *f) {
    const char *tier;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned cores = cgroup_cores();
    bool fewer = online > 0 && cores < (unsigned long)online;
    finding_add(f, PART, "cores", fewer ? FINDING_NOTE : FINDING_GOOD, "%u of %ld cores%s", cores,
                online, fewer ? ", by control group or affinity" : "");
    if (tier_name(&tier, NULL) == OK) {
        bool plain = !strcmp(tier, "portable");
        finding_add(f, PART, "processor", plain ? FINDING_WARNING : FINDING_GOOD,
                    "lanes on the processor use %s code%s", tier,
                    plain ? ", several times slower: it has neither ADX nor AVX-512 IFMA" : "");
        if (plain) {
            finding_cure(f, "in a virtual machine, let it see the host's processor");
        }
    }
}

static void look_at_clock(struct findings *f) {
    struct timex t = {0};
    bool loose = adjtimex(&t) == TIME_ERROR && (t.status & STA_UNSYNC);
    finding_add(f, PART, "clock", loose ? FINDING_WARNING : FINDING_GOOD,
                loose ? "no time service keeps the clock; deadlines and certificates go by it"
                      : "a time service keeps the clock");
    if (loose) {
        finding_cure(f,
                     "apt-get install systemd-timesyncd, or chrony; in a container: on its host");
    }
}

/* --- Files --- */

static void look_at_secrets(struct findings *f, const struct config *config) {
    const struct {
        const char *name, *path;
        bool secret;
    } files[] = {{"tls_ca", config->tls_ca, false},
                 {"tls_cert", config->tls_cert, false},
                 {"tls_key", config->tls_key, true},
                 {"creds", config->creds, true}};
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        struct stat st;
        if (!files[i].path[0]) {
            continue;
        }
        if (access(files[i].path, R_OK) != 0 || stat(files[i].path, &st) != 0) {
            finding_add(f, PART, "permissions", FINDING_BAD, "%s = %.300s: %s", files[i].name,
                        files[i].path, strerror(errno));
            finding_cure(f, "name a file that this user may read");
        } else if (files[i].secret && (st.st_mode & (S_IRWXO | S_IWGRP))) {
            finding_add(f, PART, "permissions", FINDING_WARNING,
                        "%s = %.300s: others than its owner can use it (mode %03o)", files[i].name,
                        files[i].path, (unsigned)st.st_mode & 0777);
            finding_cure(f, "chmod 600 %.200s", files[i].path);
        }
    }
}

void doctor_space(struct findings *f, const char *path, uint64_t free_bytes, bool named) {
    bool little = free_bytes < DISK_LEAST;
    finding_add(f, PART, "cache",
                free_bytes < DISK_NONE ? FINDING_BAD
                : little || !named     ? FINDING_WARNING
                                       : FINDING_GOOD,
                "%.1f GiB free in %.300s for fetched keys%s", (double)free_bytes / 0x1p30, path,
                named ? "" : "; no --cache is named, so each start fetches them again");
    if (little || !named) {
        finding_cure(f, "--cache names a folder on a disk with room for the fleet's keys");
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
    doctor_space(f, path, (uint64_t)fs.f_bavail * fs.f_frsize, named);
}

void doctor_host(struct findings *f, const struct config *config, const char *root) {
    look_at_limits(f, config, root);
    look_at_memory(f, root);
    look_at_processor(f);
    look_at_clock(f);
    look_at_secrets(f, config);
    look_at_cache(f, config);
}
