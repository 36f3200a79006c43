/* A node with CUDA lanes, on emulated devices: the program as it is, linked with the emulator instead of the driver. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "tests/e2e/host.h"

#define SECOND UINT64_C(1000000000)
enum { JOBS = 6 };

static const char *const cases[] = {"bn128/mul", "bls12381/mul"};

static void devices(const char *count) {
    setenv("EMULATOR_DEVICES", count, 1);
}

static void submit_all(struct host *h) {
    for (unsigned i = 0; i < JOBS; i++) {
        char job_id[16];
        snprintf(job_id, sizeof job_id, "j%u", i);
        submit_job(&h->user, &(struct job_order){.case_name = cases[i % 2], .job_id = job_id});
    }
}

/* How many devices they came from; bit i is the UUID that ends in i. */
static unsigned check_all(struct host *h) {
    unsigned seen = 0;
    for (unsigned i = 0; i < JOBS; i++) {
        char job_id[16];
        snprintf(job_id, sizeof job_id, "j%u", i);
        AUTO(message_free) result_message *r = job_result(&h->user, job_id, 1);
        check_proved(r, cases[i % 2], 1);
        const char *device = r->partitions[0]->device;
        CHECK_HAS(device, "cuda: emulator GPU-");
        seen |= 1u << (device[strlen(device) - 1] - '0');
    }
    CHECK_EQ(JOBS, host_stream_count(h, "DONE"));
    return seen;
}

static void claim_two_devices(void) {
    struct host h;
    struct ran ran;
    devices("2");
    host_start(&h);
    host_run(&ran, &h, "node --list-devices");
    CHECK_EQ(0, ran.exit_code);
    CHECK_HAS(ran.out, "device GPU-656d756c-6174-6564-2d64-657669636500 emulator");
    CHECK_HAS(ran.out, "device GPU-656d756c-6174-6564-2d64-657669636501 emulator");
    host_start_cuda_node(&h, 0);
    host_wait_for_lanes(&h, 2);
    submit_all(&h);
    CHECK_EQ(3, check_all(&h)); /* both */
    host_stop(&h);
}

static void claim_killed_lane(void) {
    struct host h;
    devices("1");
    host_start(&h);
    host_start_cuda_node(&h, 0);
    host_wait_for_lanes(&h, 1);
    pid_t pid = host_lane_pid(&h, 0, 0);
    submit_all(&h);
    host_kill_lane(&h, 0, 0);
    CHECK_EQ(1, check_all(&h));
    CHECK(host_lane_pid(&h, 0, 0) != pid);
    host_stop(&h);
}

/* The context of the device is gone in the middle of a job: another process goes on, and no job pays for it. */
static void claim_lost_device(void) {
    struct host h;
    char fault[300];
    devices("1");
    host_start(&h);
    snprintf(fault, sizeof fault, "%s/fault", h.dir);
    setenv("EMULATOR_FAULT", fault, 1);
    host_start_cuda_node(&h, 0);
    host_wait_for_lanes(&h, 1);
    pid_t pid = host_lane_pid(&h, 0, 0);
    int fd = open(fault, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    close(fd);
    submit_all(&h);
    CHECK_EQ(1, check_all(&h));
    CHECK(access(fault, F_OK) != 0); /* it has happened */
    CHECK(host_lane_pid(&h, 0, 0) != pid);
    for (unsigned i = 0; i < JOBS; i++) {
        char job_id[16];
        snprintf(job_id, sizeof job_id, "j%u", i);
        struct record_slot slot = job_record(&h.user, job_id, JOB_DONE);
        CHECK_EQ(0, record_part_counts(&slot.record.parts[0]).attempts);
        record_slot_done(&slot);
    }
    unsetenv("EMULATOR_FAULT");
    host_stop(&h);
}

static void claim_no_device(void) {
    struct host h;
    struct ran ran;
    devices("0");
    host_start(&h);
    host_run(&ran, &h, "node --name w0 --backend cuda --server %s", h.server.url);
    CHECK_EQ(3, ran.exit_code);
    CHECK_HAS(ran.out, "nvidia-smi"); /* the cure */
    host_run(&ran, &h, "node --list-devices");
    CHECK_EQ(3, ran.exit_code);
    host_stop(&h);
}

static void claim_load_times(void) {
    struct host h;
    struct ran ran;
    devices("1");
    host_start_server(&h, NULL);
    host_run(&ran, &h, "bench load --synth bits --log2 8 --backend cuda --runs 3");
    CHECK_MSG(ran.exit_code == 0, "%s", ran.out);
    CHECK_HAS(ran.out, "\"memory_ns\": {\"median\": ");
    CHECK_HAS(ran.out, "\"hand_over_ns\": {\"median\": ");
    CHECK_HAS(ran.out, "\"arrival_ns\": {\"median\": ");
    CHECK(!strstr(ran.out, "\"median\": 0,"));
    host_stop(&h);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a node has one lane for each device, by UUID, and all prove", claim_two_devices},
        {"a killed lane comes back on its device, every result exactly once", claim_killed_lane},
        {"a lost device ends its process, not the jobs, and costs no attempt", claim_lost_device},
        {"without a device the node ends with 3, cause and cure", claim_no_device},
        {"bench load says where a device's time went", claim_load_times},
    };
    host_use_program("tests/e2e/bellows-emulated");
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
