/* Doctor on machines that are made up: trees of /proc, /sys and /dev in a scratch folder. */
#include "node/cli/doctor.h"
#include "node/base/cgroup.h"
#include "node/base/file.h"
#include "node/daemon/backends.h"
#include "tests/check/check.h"
#include "tests/unit/cli/program.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static struct findings findings;

static void put(const struct scratch *s, const char *path, const char *text) {
    char full[512], folder[512];
    snprintf(full, sizeof full, "%s%s", s->path, path);
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(full, '/') - full), full);
    CHECK_OK(dir_make(folder));
    CHECK_OK(file_write_all(full, bytes_of(text, strlen(text))));
}

/* The finding of that check; fails the claim when there is none, or it has another state. */
static const struct finding *expect(const char *check, enum finding_state state) {
    for (size_t i = 0; i < findings.count; i++) {
        const struct finding *one = &findings.list[i];
        if (!strcmp(one->check, check)) {
            CHECK_MSG(one->state == state, "%s is %s, want %s: %s", check,
                      finding_state_name(one->state), finding_state_name(state), one->found);
            CHECK_MSG(state < FINDING_WARNING || one->cure[0], "%s has no cure", check);
            return one;
        }
    }
    CHECK_MSG(false, "no finding %s", check);
    return NULL;
}

static bool has(const char *check) {
    for (size_t i = 0; i < findings.count; i++) {
        if (!strcmp(findings.list[i].check, check)) {
            return true;
        }
    }
    return false;
}

/* A machine without fault, its control group's limit 8 GiB. */
static void make_machine(const struct scratch *s) {
    put(s, "/proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max core file size        0                    unlimited            bytes     \n"
        "Max processes             96364                96364                processes \n"
        "Max open files            65536                65536                files     \n"
        "Max locked memory         unlimited            unlimited            bytes     \n");
    put(s, "/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    put(s, "/proc/sys/vm/overcommit_memory", "0\n");
    put(s, "/proc/swaps", "Filename\t\t\t\tType\n");
    put(s, "/sys/devices/system/node/online", "0\n");
    put(s, "/proc/self/cgroup", "0::/\n");
    put(s, "/sys/fs/cgroup/memory.max", "8589934592\n");
}

static void look(const struct scratch *s) {
    char group[512], self[512];
    AUTO(config_free) struct config config = {0};
    char cache[512];
    snprintf(cache, sizeof cache, "%s", s->path);
    struct config_flag flags[] = {{"cache", cache}};
    struct config_sources from = {.flags = flags, .flags_count = 1};
    CHECK_OK(config_load(&config, CONFIG_NODE, &from));
    snprintf(group, sizeof group, "%s/sys/fs/cgroup", s->path);
    snprintf(self, sizeof self, "%s/proc/self/cgroup", s->path);
    cgroup_look_in(group, self);
    findings.count = 0;
    doctor_host(&findings, &config, s->path);
    doctor_cards(&findings, s->path);
    cgroup_look_in(NULL, NULL);
}

static void claim_sound(void) {
    AUTO(scratch_close) struct scratch s = {0};
    scratch_open(&s);
    make_machine(&s);
    look(&s);
    static const char *const checks[] = {"memlock", "files",     "threads", "core",
                                         "memory",  "hugepages", "swap",    "numa"};
    for (size_t i = 0; i < COUNT_OF(checks); i++) {
        expect(checks[i], FINDING_GOOD);
    }
    CHECK(!has("overcommit") && !has("permissions"));
    CHECK_HAS(expect("memory", FINDING_GOOD)->found,
              "8.0 GiB for this process (its control group's limit)");
}

static void claim_faults(void) {
    enum finding_state locked = backends_cuda_compiled() ? FINDING_WARNING : FINDING_NOTE;
    const struct {
        const char *path, *text, *check;
        enum finding_state state;
        const char *found;
    } rows[] = {
        {"/proc/self/limits", "Max locked memory         8388608     unlimited     bytes\n",
         "memlock", locked, "8.0 MiB"},
        {"/proc/self/limits", "Max open files            256         65536         files\n",
         "files", FINDING_WARNING, "256 open files"},
        {"/proc/self/limits", "Max processes             100         100           processes\n",
         "threads", FINDING_WARNING, "100 threads"},
        {"/proc/self/limits", "Max core file size        unlimited   unlimited     bytes\n", "core",
         FINDING_WARNING, "witnesses"},
        {"/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n", "hugepages",
         FINDING_WARNING, "off"},
        {"/proc/sys/vm/overcommit_memory", "2\n", "overcommit", FINDING_WARNING, "mapped"},
        {"/proc/swaps", "Filename Type\n/dev/sda2 partition 1 0 -2\n", "swap", FINDING_WARNING,
         "/dev/sda2,"},
        {"/sys/devices/system/node/online", "0-1\n", "numa", FINDING_NOTE, "NUMA nodes 0-1"},
        {"/sys/fs/cgroup/memory.max", "1073741824\n", "memory", FINDING_WARNING, "1.0 GiB"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        AUTO(scratch_close) struct scratch s = {0};
        scratch_open(&s);
        make_machine(&s);
        put(&s, rows[i].path, rows[i].text);
        look(&s);
        CHECK_HAS(expect(rows[i].check, rows[i].state)->found, rows[i].found);
    }
}

static void make_card(const struct scratch *s, const char *numa_node) {
    put(s, "/sys/bus/pci/devices/0000:00:1f.0/vendor", "0x8086\n");
    put(s, "/sys/bus/pci/devices/0000:00:1f.0/class", "0x030000\n");
    put(s, "/sys/bus/pci/devices/0000:65:00.0/vendor", "0x10de\n");
    put(s, "/sys/bus/pci/devices/0000:65:00.0/class", "0x030200\n");
    put(s, "/sys/bus/pci/devices/0000:65:00.0/numa_node", numa_node);
    put(s, "/sys/bus/pci/devices/0000:66:00.0/vendor", "0x10de\n"); /* a bridge of the same maker */
    put(s, "/sys/bus/pci/devices/0000:66:00.0/class", "0x068000\n");
    put(s, "/proc/self/status", "Name:\tx\nMems_allowed:\t1\nMems_allowed_list:\t0,2-3\n");
}

static void claim_cards(void) {
    AUTO(scratch_close) struct scratch s = {0};
    scratch_open(&s);
    make_machine(&s);
    look(&s);
    CHECK(!has("driver"));
    make_card(&s, "1\n");
    look(&s);
    CHECK_HAS(expect("driver", FINDING_BAD)->found, "1 NVIDIA cards are on the bus, and no driver");
    CHECK_EQ(!backends_cuda_compiled(), has("cards"));
    put(&s, "/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Wed Oct 1\nGCC version: 12\n");
    look(&s);
    CHECK_HAS(expect("driver", FINDING_GOOD)->found, "kernel module 580.159.04, 1 cards");
    CHECK_HAS(expect("permissions", FINDING_BAD)->found, "/dev/nvidiactl");
    put(&s, "/dev/nvidiactl", "");
    put(&s, "/dev/nvidia-uvm", "");
    look(&s);
    expect("permissions", FINDING_GOOD);
    findings.count = 0;
    doctor_cards(&findings, s.path);
    CHECK_HAS(expect("numa", FINDING_WARNING)->found,
              "0000:65:00.0 hangs on NUMA node 1, and this process has memory of 0,2-3 only");
    make_card(&s, "3\n");
    findings.count = 0;
    doctor_cards(&findings, s.path);
    expect("numa", FINDING_GOOD);
}

static void claim_archs(void) {
    static const struct {
        const char *archs;
        unsigned major, minor;
        enum finding_state state;
    } rows[] = {
        {"90", 9, 0, FINDING_GOOD},      {"90", 10, 0, FINDING_NOTE},
        {"90", 8, 9, FINDING_BAD},       {"80", 8, 9, FINDING_GOOD},
        {"89", 8, 6, FINDING_BAD},       {"80, 90", 8, 6, FINDING_GOOD},
        {"80,100", 12, 0, FINDING_NOTE}, {"90a", 9, 0, FINDING_GOOD},
        {"90a", 10, 0, FINDING_BAD},     {"all", 12, 0, FINDING_GOOD},
        {"all", 7, 0, FINDING_BAD},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        enum finding_state state = doctor_arch(rows[i].archs, rows[i].major, rows[i].minor);
        CHECK_MSG(state == rows[i].state, "%s on %u.%u: %s", rows[i].archs, rows[i].major,
                  rows[i].minor, finding_state_name(state));
    }
}

static void claim_secrets(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    put(&s, "/key", "x");
    CHECK_EQ(0, chmod(scratch_path(&s, "key"), 0644));
    run_program(
        &r, &s, NULL,
        "doctor --part host --json --tls-key key --tls-ca nowhere --tls-cert key --cache .");
    CHECK_EQ(2, r.exit_code);
    CHECK_HAS(r.out, "tls_ca = nowhere: No such file");
    CHECK_HAS(r.out, "(mode 644)");
    CHECK_HAS(r.out, "chmod 600 key");
    CHECK(!strstr(r.out, "tls_cert ="));
    run_free(&r);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a sound machine has good findings only", claim_sound},
        {"each fault of a machine is found, with what it is and a cure", claim_faults},
        {"cards without driver, device files or near memory are found", claim_cards},
        {"what was compiled for which device is told", claim_archs},
        {"keys that others can read and files that are not there are found", claim_secrets},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
