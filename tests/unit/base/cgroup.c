/* The machine's limits are read from both kinds of control group. */
#include "node/base/cgroup.h"
#include "node/base/file.h"
#include "tests/check/check.h"

#include <stdio.h>
#include <string.h>

static char *root; /* a control group tree of our own */

static void put_file(const char *name, const char *content) {
    char path[512], *slash;
    snprintf(path, sizeof path, "%s/%s", root, name);
    slash = strrchr(path, '/');
    *slash = '\0';
    CHECK_OK(dir_make(path));
    *slash = '/';
    CHECK_OK(file_write_all(path, bytes_of(content, strlen(content))));
}

static void look_here(const char *self) {
    static char path[512];
    put_file("self", self);
    snprintf(path, sizeof path, "%s/self", root);
    cgroup_look_in(root, path);
}

static void claim_version_2(void) {
    put_file("a/b/memory.max", "max\n");
    put_file("a/memory.max", "1048576\n");
    put_file("a/cpu.max", "50000 100000\n");
    put_file("a/b/cpu.max", "max 100000\n");
    look_here("0::/a/b\n");
    CHECK_EQ(1048576, cgroup_memory_bytes());
    CHECK(cgroup_memory_is_limited());
    CHECK_EQ(1, cgroup_cores());
    CHECK_EQ(1048576 - 131072, cgroup_plan_bytes());
    look_here("0::/other\n"); /* no limits there, none above */
    CHECK(!cgroup_memory_is_limited());
    cgroup_look_in(NULL, NULL);
}

static void claim_version_1(void) {
    put_file("memory/x/memory.limit_in_bytes", "2097152\n");
    put_file("memory/memory.limit_in_bytes", "9223372036854771712\n");
    put_file("cpu/x/cpu.cfs_quota_us", "100000\n");
    put_file("cpu/x/cpu.cfs_period_us", "100000\n");
    look_here("3:cpuset:/\n4:cpu,cpuacct:/x\n5:memory:/x\n");
    CHECK_EQ(2097152, cgroup_memory_bytes());
    CHECK_EQ(1, cgroup_cores());
    put_file("cpu/x/cpu.cfs_quota_us", "-1\n");
    CHECK(cgroup_cores() >= 1);
    cgroup_look_in(NULL, NULL);
}

static void claim_without(void) {
    cgroup_look_in("/nonexistent", "/nonexistent");
    CHECK(!cgroup_memory_is_limited());
    CHECK(cgroup_memory_bytes() > 0);
    CHECK(cgroup_cores() >= 1);
    cgroup_look_in(NULL, NULL);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"limits of control groups, version 2, own and above", claim_version_2},
        {"limits of control groups, version 1", claim_version_1},
        {"without control groups the machine is the limit", claim_without},
    };
    return check_main_in(&root, argc, argv, claims, COUNT_OF(claims));
}
