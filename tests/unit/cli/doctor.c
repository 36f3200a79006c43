/* Doctor on machines that are made up: trees of /proc, /sys and /dev in a scratch folder. */
#include "node/cli/doctor.h"
#include "node/base/cgroup.h"
#include "node/base/file.h"
#include "node/daemon/backends.h"
#include "tests/check/check.h"
#include "tests/unit/cli/program.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* With one more setting than the cache; NULL: none. */
static void look_with(const struct scratch *s, const char *name, char *value) {
    char group[512], self[512];
    AUTO(config_free) struct config config = {0};
    char cache[512];
    snprintf(cache, sizeof cache, "%s", s->path);
    struct config_flag flags[] = {{"cache", cache}, {name, value}};
    struct config_sources from = {.flags = flags, .flags_count = name ? 2 : 1};
    CHECK_OK(config_load(&config, CONFIG_NODE, &from));
    snprintf(group, sizeof group, "%s/sys/fs/cgroup", s->path);
    snprintf(self, sizeof self, "%s/proc/self/cgroup", s->path);
    cgroup_look_in(group, self);
    findings.count = 0;
    doctor_host(&findings, &config, s->path);
    doctor_cards(&findings, s->path);
    cgroup_look_in(NULL, NULL);
}

static void look(const struct scratch *s) {
    look_with(s, NULL, NULL);
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
        {"/sys/fs/cgroup/cpu.max", "50000 100000\n", "cores", FINDING_NOTE, "by control group"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        AUTO(scratch_close) struct scratch s = {0};
        scratch_open(&s);
        make_machine(&s);
        put(&s, rows[i].path, rows[i].text);
        look(&s);
        bool one_core = !strcmp(rows[i].check, "cores") && sysconf(_SC_NPROCESSORS_ONLN) == 1;
        CHECK_HAS(expect(rows[i].check, one_core ? FINDING_GOOD : rows[i].state)->found,
                  one_core ? "1 of 1 cores" : rows[i].found);
    }
}

/* What a lane locks is what --staging says. */
static void claim_staging(void) {
    AUTO(scratch_close) struct scratch s = {0};
    scratch_open(&s);
    make_machine(&s);
    put(&s, "/proc/self/limits", "Max locked memory         2147483648     unlimited     bytes\n");
    look(&s);
    CHECK_HAS(expect("memlock", FINDING_NOTE)->found, "2048.0 MiB (ulimit -l)");
    look_with(&s, "staging", "4GiB");
    CHECK_HAS(expect("memlock", backends_cuda_compiled() ? FINDING_WARNING : FINDING_NOTE)->found,
              "each 4096.0 MiB");
}

static void claim_numbers(void) {
    static const struct {
        uint64_t free_gib;
        bool named;
        enum finding_state state;
    } disks[] = {{100, true, FINDING_GOOD},
                 {100, false, FINDING_WARNING},
                 {10, true, FINDING_WARNING},
                 {0, true, FINDING_BAD}};
    static const struct {
        double ahead_s;
        enum finding_state state;
        const char *found;
    } clocks[] = {{0.4, FINDING_GOOD, "400 ms ahead of"},
                  {-0.7, FINDING_WARNING, "700 ms behind"},
                  {6, FINDING_BAD, "6000 ms ahead of"}};
    for (size_t i = 0; i < COUNT_OF(disks); i++) {
        findings.count = 0;
        doctor_space(&findings, "/keys", disks[i].free_gib << 30, disks[i].named);
        CHECK_HAS(expect("cache", disks[i].state)->found, "GiB free in /keys");
        CHECK_EQ(!disks[i].named, strstr(findings.list[0].found, "no --cache is named") != NULL);
    }
    for (size_t i = 0; i < COUNT_OF(clocks); i++) {
        findings.count = 0;
        doctor_ahead(&findings, clocks[i].ahead_s);
        CHECK_HAS(expect("clock", clocks[i].state)->found, clocks[i].found);
    }
}

/* Is the kernel's clock kept by somebody? The test asks it itself. */
static void claim_time_service(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct timex t = {0};
    bool loose = adjtimex(&t) == TIME_ERROR && (t.status & STA_UNSYNC);
    scratch_open(&s);
    make_machine(&s);
    look(&s);
    expect("clock", loose ? FINDING_WARNING : FINDING_GOOD);
}

/* Answers everybody with one line, until it is killed. */
static pid_t greeter(unsigned *port, const char *line) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 8) == 0);
    CHECK_EQ(0, getsockname(fd, (struct sockaddr *)&at, &len));
    *port = ntohs(at.sin_port);
    pid_t pid = fork();
    CHECK(pid >= 0);
    while (pid == 0) {
        int to = accept(fd, NULL, NULL);
        if (to < 0 || write(to, line, strlen(line)) < 0) {
            _exit(1);
        }
        close(to);
    }
    close(fd);
    return pid;
}

/* What doctor says of a server that greets so. */
static void greeted(struct run *r, const struct scratch *s, const char *line) {
    unsigned port;
    pid_t pid = greeter(&port, line);
    run_program(r, s, NULL, "doctor --part network --server nats://127.0.0.1:%u", port);
    CHECK_EQ(0, kill(pid, SIGKILL));
    CHECK_EQ(pid, waitpid(pid, NULL, 0));
}

static void claim_greeting(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    greeted(&r, &s,
            "INFO {\"server_id\":\"X\",\"server_name\":\"old\",\"version\":\"2.8.4\","
            "\"max_payload\":1048576}\r\n");
    run_expect(&r, 4, "bad      server       nats-server 2.8.4, named old", "the network failed");
    CHECK_HAS(r.out, "update it to 2.9 or later");
    CHECK_HAS(r.out, "bad      jetstream    off");
    CHECK_HAS(r.out, "a jetstream block in its configuration");
    CHECK_HAS(r.out, "bad      max_payload  1.0 MiB");
    CHECK_HAS(r.out, "max_payload: 8MB");
    CHECK_HAS(r.out, "bad      login");
    run_free(&r);
    greeted(&r, &s, "HTTP/1.1 400 Bad Request\r\n\r\n");
    run_expect(&r, 4, "what answers there is no NATS server", "the network failed");
    CHECK_HAS(r.out, "--server or BELLOWS_SERVER");
    run_free(&r);
}

/* On a machine whose CUDA finds no device it is a device's failure, not a note; without CUDA it is a note. */
static void claim_no_device(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    run_script(&r, &s, "CUDA_VISIBLE_DEVICES= $BELLOWS doctor --part device");
    if (backends_cuda_compiled()) {
        run_expect(&r, 3, "bad      cuda         no usable GPU: ", "of the device failed");
        CHECK_HAS(r.out, "start nodes with --backend cpu");
    } else {
        run_expect(&r, 0, "note     cuda         this build has no CUDA", "");
        CHECK_HAS(r.out, "-Dcuda=enabled");
    }
    run_free(&r);
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
        {"locked memory is held against what a lane will lock", claim_staging},
        {"room for keys and a clock that is off are told by how much", claim_numbers},
        {"a clock that nobody keeps is told", claim_time_service},
        {"a NATS server too old, without JetStream, with small messages, or none at all is told",
         claim_greeting},
        {"no device is a failure where CUDA is compiled in, else a note", claim_no_device},
        {"cards without driver, device files or near memory are found", claim_cards},
        {"what was compiled for which device is told", claim_archs},
        {"keys that others can read and files that are not there are found", claim_secrets},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
