/* Reservations fit whole or not at all; the machine's limits are read from both kinds of control group. */
#include "node/base/budget.h"
#include "node/base/cgroup.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "tests/check/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static void claim_reserve(void) {
    AUTO(budget_free) struct budget *b = NULL;
    CHECK_OK(budget_new(&b, "host memory", 1000));
    CHECK_OK(budget_reserve(b, 600, "job 1"));
    CHECK_ERR(E_LIMIT, budget_reserve(b, 401, "job 2"));
    CHECK_STR("host memory: job 2 needs 401 bytes, 400 of 1000 are free", err_detail());
    CHECK_ERR(E_LIMIT, budget_reserve(b, UINT64_MAX, "job 2"));
    CHECK_EQ(600, budget_used_bytes(b));
    CHECK_OK(budget_reserve(b, 400, "job 2"));
    CHECK_EQ(1000, budget_peak_bytes(b));
    budget_release(b, 600);
    budget_release(b, 400);
    CHECK_EQ(0, budget_used_bytes(b));
    CHECK_EQ(1000, budget_peak_bytes(b));
    CHECK_EQ(1000, budget_limit_bytes(b));
}

static struct budget *shared;
static atomic_int over_count;

static void *reserve_many(void *arg) {
    (void)arg;
    for (int i = 0; i < 20000; i++) {
        if (budget_reserve(shared, 3, "a thread") == OK) {
            over_count += budget_used_bytes(shared) > 10;
            budget_release(shared, 3);
        }
    }
    return NULL;
}

static void claim_threads(void) {
    CHECK_OK(budget_new(&shared, "shared", 10));
    pthread_t threads[4];
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        CHECK_EQ(0, pthread_create(&threads[i], NULL, reserve_many, NULL));
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQ(0, atomic_load(&over_count));
    CHECK_EQ(0, budget_used_bytes(shared));
    budget_free(&shared);
}

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
    CHECK_EQ(1048576 - 131072, budget_host_bytes());
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

static enum err make_budget(void *ctx) {
    (void)ctx;
    AUTO(budget_free) struct budget *b = NULL;
    return budget_new(&b, "x", 1);
}

static void claim_allocation(void) {
    CHECK_EQ(1, check_allocations(make_budget, NULL));
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a reservation fits whole or changes nothing", claim_reserve},
        {"threads never reserve more than there is", claim_threads},
        {"limits of control groups, version 2, own and above", claim_version_2},
        {"limits of control groups, version 1", claim_version_1},
        {"without control groups the machine is the limit", claim_without},
        {"a failed allocation is E_LIMIT", claim_allocation},
    };
    return check_main_in(&root, argc, argv, claims, COUNT_OF(claims));
}
