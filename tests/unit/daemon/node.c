/* The supervisor, with a real nats-server and lanes that are shell scripts. */
#include "node/daemon/node.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/base/clock.h"
#include "node/base/file.h"
#include "node/base/log.h"
#include "node/base/mem.h"
#include "node/transport/fleet.h"
#include "proto/fleet.pb-c.h"
#include "proto/unpack.h"
#include "tests/check/server.h"
#include "tests/unit/daemon/submitter.h"

#define SECOND  UINT64_C(1000000000)
#define AS_NODE "--as-node"

struct supervised {
    struct check_server server;
    struct submitter user;
    struct subscription *beats;
    char *dir; /* owned */
    pid_t pid;
};

/* In a process of its own, started anew: node_run blocks signals and has children. Words: folder, server, lanes (a digit), script. */
static int run_node(char **words) {
    const char *argv[] = {"/bin/sh", "-c", words[3], "lane", NULL};
    struct node_config config = {.name = "n",
                                 .runtime_dir = words[0],
                                 .lanes_count = (unsigned)(words[2][0] - '0'),
                                 .transport = {.url = words[1]},
                                 .drain_ns = SECOND,
                                 .restarts_max = 3,
                                 .lane_argv = argv};
    char go[400];
    snprintf(go, sizeof go, "%s/go", words[0]);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    log_setup((enum log_level)(LOG_ERROR + 1), 0);
    while (access(go, F_OK) != 0) {
        clock_sleep_ns(SECOND / 100);
    }
    return err_exit_code(node_run(&config));
}

static void supervised_start(struct supervised *s, unsigned lanes_count, const char *script) {
    char full[700], lanes[16];
    *s = (struct supervised){0};
    check_server_start(&s->server, NULL);
    CHECK_OK(dir_make_temp(&s->dir, "bellows-node"));
    CHECK_OK(subject_space_init(&s->user.space, NULL));
    snprintf(full, sizeof full, "cd %s; %s", s->dir, script);
    snprintf(lanes, sizeof lanes, "%u", lanes_count);
    s->pid = fork();
    if (s->pid == 0) {
        execl("/proc/self/exe", "node", AS_NODE, s->dir, s->server.url, lanes, full, (char *)NULL);
        _exit(127);
    }
    CHECK(s->pid > 0);
    struct transport_options options = {.url = s->server.url, .open_wait_ns = 10 * SECOND};
    CHECK_OK(transport_open(&s->user.link, &options));
    struct subject beats = filter_heartbeats(&s->user.space);
    CHECK_OK(transport_subscribe(&s->beats, s->user.link, beats.text, NULL));
    CHECK_OK(fleet_ensure(s->user.link, &s->user.space, &(struct fleet_options){0}));
    snprintf(full, sizeof full, "%s/go", s->dir);
    CHECK_OK(file_write_all(full, bytes_of("", 0)));
}

/* Its exit code, which must come within ten seconds. */
static int supervised_end(struct supervised *s) {
    int status = 0;
    pid_t got = 0;
    for (int n = 0; n < 1000 && got == 0; n++) {
        clock_sleep_ns(SECOND / 100);
        got = waitpid(s->pid, &status, WNOHANG);
    }
    if (got == 0) {
        kill(s->pid, SIGKILL);
        waitpid(s->pid, &status, 0);
    }
    subscription_close(&s->beats);
    transport_close(&s->user.link);
    check_server_stop(&s->server);
    CHECK_OK(dir_remove_tree(s->dir));
    mem_free(s->dir);
    CHECK_MSG(got > 0, "the node still runs");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Until the supervisor says so for lane 0. */
static void wait_for_beat(struct supervised *s, Bellows__V1__LaneState state) {
    for (uint64_t start_ns = clock_ns(); clock_ns() - start_ns < 10 * SECOND;) {
        AUTO(message_done) struct message m = {0};
        AUTO(message_free) Bellows__V1__Heartbeat *beat = NULL;
        if (subscription_next(&m, s->beats, SECOND) == OK) {
            CHECK_OK(message_unpack(&beat, &bellows__v1__heartbeat__descriptor, m.data,
                                    HEARTBEAT_BYTES_MAX, "beat"));
            CHECK_STR("n", beat->node);
            if (beat->gpu == 0 && beat->state == state) {
                return;
            }
        }
    }
    CHECK_MSG(false, "no heartbeat says state %d", (int)state);
}

static bool has(const struct supervised *s, const char *name) {
    char path[400];
    snprintf(path, sizeof path, "%s/%s", s->dir, name);
    return access(path, F_OK) == 0;
}

static bool lane_is_back(void *ctx) {
    return has(ctx, "back");
}

static void claim_given_up(void) {
    struct supervised s;
    supervised_start(&s, 2,
                     "case \"$*\" in *--lane=0*) echo x >>starts; test -e repaired || exit 9; "
                     ": >back;; esac; exec sleep 1000");
    wait_for_beat(&s, BELLOWS__V1__LANE_STATE__LANE_STOPPED);
    wait_for_beat(&s, BELLOWS__V1__LANE_STATE__LANE_FENCED);
    wait_for_beat(&s, BELLOWS__V1__LANE_STATE__LANE_FENCED); /* and goes on saying so */
    char path[400];
    struct bytes_mut starts = {0};
    snprintf(path, sizeof path, "%s/starts", s.dir);
    CHECK_OK(file_read_all(&starts, path, 100));
    CHECK_EQ(3 * 2, starts.len); /* three times, and not again by itself */
    mem_free(starts.ptr);
    snprintf(path, sizeof path, "%s/repaired", s.dir);
    CHECK_OK(file_write_all(path, bytes_of("", 0)));
    struct subject resume = subject_ctl_node(&s.user.space, "n", "resume");
    struct subject stop = subject_ctl_node(&s.user.space, "n", "stop");
    CHECK_OK(give_order(&s.user, resume.text, 0));
    wait_until(lane_is_back, &s, "the lane is started again");
    CHECK_OK(give_order(&s.user, stop.text, 0));
    CHECK_EQ(0, supervised_end(&s));
}

static void claim_drained_across_deaths(void) {
    struct supervised s;
    supervised_start(
        &s, 1,
        "case \"$*\" in *--drained*) : >back;; esac; test -e dies && rm dies && exit 9; "
        "sleep 0.5; test -e back && exec sleep 1000; exit 9");
    struct subject drain = subject_ctl_lane(&s.user.space, (struct lane_name){"n", 0}, "drain");
    /* The lane, a script, does not answer: the supervisor alone remembers. It may not listen yet. */
    for (int n = 0; n < 100 && !has(&s, "back"); n++) {
        CHECK_OK(transport_send(s.user.link, drain.text, (struct bytes){0}));
        clock_sleep_ns(SECOND / 20);
    }
    CHECK(has(&s, "back"));
    kill(s.pid, SIGTERM);
    CHECK_EQ(0, supervised_end(&s));
}

static void claim_no_hope(void) {
    struct supervised s;
    supervised_start(&s, 1, "exit 9");
    CHECK_EQ(3, supervised_end(&s));
}

int main(int argc, char **argv) {
    if (argc == 6 && !strcmp(argv[1], AS_NODE)) {
        return run_node(argv + 2);
    }
    static const struct check_claim claims[] = {
        {"a lane that keeps failing is given up, shown as fenced, and started again when resumed",
         claim_given_up},
        {"a drained lane's successor is drained", claim_drained_across_deaths},
        {"a node without any lane left ends with 3", claim_no_hope},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
