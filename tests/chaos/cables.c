/* `ip` and `tc` do it all. Names and the private network hold this process's id, so that two runs do not meet; what a run that failed has
 * left behind is removed by the next.
 */
#include "tests/chaos/cables.h"

#include <dirent.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "node/base/mem.h"
#include "tests/check/check.h"

struct cables {
    unsigned count;
    char names[CABLES_MAX][16];     /* of the namespace, and of this machine's end */
    char addresses[CABLES_MAX][20]; /* of this machine's end */
};

__attribute__((format(printf, 1, 2))) static bool run(const char *format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    snprintf(line + len, sizeof line - (size_t)len, " >/dev/null 2>&1");
    return system(line) == 0;
}

static bool open_one(struct cables *c, unsigned idx) {
    unsigned pid = (unsigned)getpid();
    char *name = c->names[idx], *address = c->addresses[idx];
    snprintf(name, sizeof c->names[0], "bl%uw%u", pid, idx);
    snprintf(address, sizeof c->addresses[0], "10.%u.%u.%u", 200 + pid / 256 % 50, pid % 256,
             4 * idx + 1);
    c->count++; /* what is half made is removed, too */
    return run("ip netns add %s", name) && run("ip -n %s link set lo up", name) &&
           run("ip link add %s type veth peer name end netns %s", name, name) &&
           run("ip addr add %s/30 dev %s", address, name) && run("ip link set %s up", name) &&
           run("ip -n %s addr add 10.%u.%u.%u/30 dev end", name, 200 + pid / 256 % 50, pid % 256,
               4 * idx + 2) &&
           run("ip -n %s link set end up", name);
}

static void remove_one(const char *name) {
    run("ip link del %s", name);
    run("ip netns del %s", name);
}

static void remove_left_behind(void) {
    DIR *dir = opendir("/run/netns");
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
        unsigned pid, idx;
        if (sscanf(e->d_name, "bl%uw%u", &pid, &idx) == 2 && kill((pid_t)pid, 0) != 0) {
            char name[16];
            snprintf(name, sizeof name, "bl%uw%u", pid, idx);
            remove_one(name);
        }
    }
    if (dir) {
        closedir(dir);
    }
}

struct cables *cables_open(unsigned count, const char **why) {
    struct cables *c = NULL;
    CHECK(count <= CABLES_MAX);
    if (geteuid() != 0) {
        *why = "only root may make network namespaces";
        return NULL;
    }
    if (!run("ip -V")) {
        *why = "there is no program `ip`";
        return NULL;
    }
    remove_left_behind();
    c = mem_zero_alloc(1, sizeof *c);
    CHECK(c);
    while (c->count < count) {
        if (!open_one(c, c->count)) {
            *why = "the kernel refuses network namespaces or veth pairs";
            cables_close(&c);
            return NULL;
        }
    }
    return c;
}

void cables_close(struct cables **cables) {
    struct cables *c = *cables;
    if (c) {
        for (unsigned i = 0; i < c->count; i++) {
            remove_one(c->names[i]);
        }
        mem_free(c);
        *cables = NULL;
    }
}

const char *cable_address(const struct cables *c, unsigned idx) {
    return c->addresses[idx];
}

const char *cable_namespace(const struct cables *c, unsigned idx) {
    return c->names[idx];
}

bool cable_pull(const struct cables *c, unsigned idx) {
    return run("ip -n %s link set end down", c->names[idx]);
}

/* In both directions. */
bool cable_spoil(const struct cables *c, unsigned idx, unsigned loss_percent, unsigned delay_ms) {
    const char *name = c->names[idx];
    const char *in[] = {"", "ip netns exec "}, *device[] = {name, "end"};
    bool done = true;
    for (int i = 0; i < 2; i++) {
        const char *enter = i ? name : "";
        done &= run("%s%s tc qdisc replace dev %s root netem loss %u%% delay %ums %ums", in[i],
                    enter, device[i], loss_percent, delay_ms, delay_ms / 2) ||
                run("%s%s tc qdisc replace dev %s root tbf rate 1mbit burst 4kb latency 10ms",
                    in[i], enter, device[i]);
    }
    return done;
}

void cable_mend(const struct cables *c, unsigned idx) {
    run("tc qdisc del dev %s root", c->names[idx]);
    run("ip netns exec %s tc qdisc del dev end root", c->names[idx]);
    run("ip -n %s link set end up", c->names[idx]);
}
