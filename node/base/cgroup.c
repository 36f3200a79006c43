/* Version 2 has one tree: /proc/self/cgroup says "0::/a/b", limits are in cpu.max ("quota period" or "max period")
 * and memory.max. Version 1 has a tree per controller: "4:memory:/a/b", limits in memory.limit_in_bytes and
 * cpu.cfs_quota_us / cpu.cfs_period_us. A parent's limit binds its children, so every level up to the root is read.
 * In a container the path may lie outside of what is mounted; levels that do not exist are passed over.
 */
#include "node/base/cgroup.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1024 };

static const char *mount_root = "/sys/fs/cgroup";
static const char *self_path = "/proc/self/cgroup";

void cgroup_look_in(const char *root, const char *self) {
    mount_root = root ? root : "/sys/fs/cgroup";
    self_path = self ? self : "/proc/self/cgroup";
}

static bool read_line(char *out, size_t out_bytes, const char *path) {
    FILE *f = fopen(path, "re");
    if (!f) {
        return false;
    }
    bool got = fgets(out, (int)out_bytes, f) != NULL;
    fclose(f);
    return got;
}

/* The path of this process in the tree of `controller` ("" for version 2). */
static bool own_group(char out[PATH_BYTES], const char *controller) {
    FILE *f = fopen(self_path, "re");
    if (!f) {
        return false;
    }
    char line[PATH_BYTES];
    bool found = false;
    while (!found && fgets(line, sizeof line, f)) {
        char *names = strchr(line, ':');
        char *path = names ? strchr(names + 1, ':') : NULL;
        if (!path) {
            continue;
        }
        *names++ = *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        char *rest = names;
        if (*controller == '\0') {
            found = *names == '\0';
        }
        for (char *name; *controller && !found && (name = strsep(&rest, ",")) != NULL;) {
            found = !strcmp(name, controller);
        }
        if (found) {
            snprintf(out, PATH_BYTES, "%s", path);
        }
    }
    fclose(f);
    return found;
}

/* Calls visit for every level of `group` below mount_root/subtree, the root included; returns the least answer. */
static uint64_t least(const char *subtree, char *group, uint64_t (*visit)(const char *dir)) {
    uint64_t result = UINT64_MAX;
    for (;;) {
        char dir[2 * PATH_BYTES];
        snprintf(dir, sizeof dir, "%s%s%s", mount_root, subtree, strcmp(group, "/") ? group : "");
        uint64_t here = visit(dir);
        result = here < result ? here : result;
        char *slash = strrchr(group, '/');
        if (!slash) {
            return result;
        }
        *slash = '\0';
    }
}

static uint64_t number_in(const char *dir, const char *name) {
    char path[3 * PATH_BYTES], line[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (!read_line(line, sizeof line, path) || line[0] < '0' || line[0] > '9') {
        return UINT64_MAX; /* absent, "max" or -1 */
    }
    return strtoull(line, NULL, 10);
}

static uint64_t cores_for(uint64_t quota, uint64_t period) {
    if (quota == UINT64_MAX || period == UINT64_MAX || period == 0) {
        return UINT64_MAX;
    }
    return quota / period + (quota % period != 0);
}

static uint64_t memory_v2(const char *dir) {
    return number_in(dir, "memory.max");
}

static uint64_t memory_v1(const char *dir) {
    return number_in(dir, "memory.limit_in_bytes");
}

static uint64_t cores_v2(const char *dir) {
    char path[3 * PATH_BYTES], line[128];
    snprintf(path, sizeof path, "%s/cpu.max", dir);
    char *rest;
    if (!read_line(line, sizeof line, path) || line[0] < '0' || line[0] > '9') {
        return UINT64_MAX;
    }
    uint64_t quota = strtoull(line, &rest, 10);
    return cores_for(quota, strtoull(rest, NULL, 10));
}

static uint64_t cores_v1(const char *dir) {
    return cores_for(number_in(dir, "cpu.cfs_quota_us"), number_in(dir, "cpu.cfs_period_us"));
}

static uint64_t group_limit(const char *controller, uint64_t (*v2)(const char *),
                            uint64_t (*v1)(const char *)) {
    char group[PATH_BYTES], subtree[64];
    uint64_t limit = own_group(group, "") ? least("", group, v2) : UINT64_MAX;
    if (own_group(group, controller)) {
        snprintf(subtree, sizeof subtree, "/%s", controller);
        uint64_t old = least(subtree, group, v1);
        limit = old < limit ? old : limit;
    }
    return limit;
}

unsigned cgroup_cores(void) {
    cpu_set_t set;
    uint64_t cores = 1;
    if (!sched_getaffinity(0, sizeof set, &set)) {
        cores = (uint64_t)CPU_COUNT(&set);
    } else { /* more cores than the set has room for */
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        cores = online > 0 ? (uint64_t)online : 1;
    }
    uint64_t quota = group_limit("cpu", cores_v2, cores_v1);
    cores = quota < cores ? quota : cores;
    return cores > 0 ? (unsigned)cores : 1;
}

static uint64_t machine_bytes(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : UINT64_MAX;
}

uint64_t cgroup_memory_bytes(void) {
    uint64_t machine = machine_bytes();
    uint64_t group = group_limit("memory", memory_v2, memory_v1);
    return group < machine ? group : machine;
}

uint64_t cgroup_plan_bytes(void) {
    uint64_t all = cgroup_memory_bytes();
    return all - all / 8;
}

bool cgroup_memory_is_limited(void) {
    return cgroup_memory_bytes() < machine_bytes();
}
