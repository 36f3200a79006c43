/* One slot per circuit: its key is made, then job follows job with a pause between. The pauses and sizes of the slots differ, so now and then a
 * backlog builds up and goes away again.
 */
#include "node/cli/demo.h"

#include "node/base/clock.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/base/rng.h"
#include "node/daemon/child.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PARTS_MAX = 6, ARGS_MAX = 24, FAILURES_MAX = 5 };
static const uint64_t MILLISECOND_NS = 1000000;
static const uint64_t STOP_NS = UINT64_C(2000000000);

static const struct circuit {
    const char *name, *log2, *shape, *curve;
    uint64_t pause_ms; /* at most, after a job */
} circuits[] = {
    {"bits", "10", "bits", "bn128", 600},
    {"dense", "11", "dense", "bn128", 1500},
    {"porep", "12", "porep", "bls12381", 2500},
};
enum { SLOTS_COUNT = COUNT_OF(circuits) };

struct slot {
    struct child child;
    bool has_key;
    uint64_t due_ns;
    unsigned failures; /* in a row */
    char key[PATH_MAX + 64], witness[PATH_MAX + 64];
};

struct demo {
    char dir[PATH_MAX + 16], log[PATH_MAX + 16];
    char server[300];
    struct rng rng;
    struct slot slots[SLOTS_COUNT];
};

static enum err start(struct demo *d, struct slot *s, const char *const *words) {
    struct child_options options = {.argv = words, .log_path = d->log, .own_group = true};
    return child_start(&s->child, &options);
}

static enum err make_key(struct demo *d, struct slot *s, const struct circuit *c) {
    const char *words[] = {"/proc/self/exe", "key",     "synth",     s->key, s->witness,
                           "--log2",         c->log2,   "--threads", "1",    "--shape",
                           c->shape,         "--curve", c->curve,    NULL};
    return start(d, s, words);
}

static enum err send_job(struct demo *d, struct slot *s, const struct circuit *c) {
    static const char *const priorities[] = {"urgent", "high", "normal", "normal", "low"};
    const char *words[ARGS_MAX] = {"/proc/self/exe", "submit", s->key};
    char label[40], out[PATH_MAX + 32], priority[32];
    size_t count = 3, parts = 1 + rng_below(&d->rng, PARTS_MAX);
    snprintf(label, sizeof label, "--label=demo %s", c->name);
    snprintf(out, sizeof out, "--out=%s", d->dir);
    snprintf(priority, sizeof priority, "--priority=%s",
             priorities[rng_below(&d->rng, COUNT_OF(priorities))]);
    for (size_t i = 0; i < parts; i++) {
        words[count++] = s->witness;
    }
    const char *const more[] = {
        "--allow-insecure-keys", "--wait", "--timeout=60s", label, out, priority, d->server};
    for (size_t i = 0; i < COUNT_OF(more); i++) {
        words[count++] = more[i];
    }
    ASSERT(count < ARGS_MAX);
    return start(d, s, words);
}

static enum err look_after(struct demo *d, struct slot *s, const struct circuit *c) {
    bool ended = false;
    struct child_end end;
    child_poll(&ended, &end, &s->child);
    if (!ended) {
        return OK;
    }
    s->failures = end.exit_code == 0 ? 0 : s->failures + 1;
    REQUIRE(s->failures < FAILURES_MAX, E_NET, "the demo's jobs \"%s\" come to nothing; see %s",
            c->name, d->log);
    s->has_key |= end.exit_code == 0;
    s->due_ns = clock_ns() + rng_below(&d->rng, c->pause_ms) * MILLISECOND_NS;
    return OK;
}

enum err demo_step(struct demo *d) {
    for (size_t i = 0; i < SLOTS_COUNT; i++) {
        struct slot *s = &d->slots[i];
        if (s->child.pid) {
            TRY(look_after(d, s, &circuits[i]));
        } else if (clock_ns() >= s->due_ns) {
            TRY(s->has_key ? send_job(d, s, &circuits[i]) : make_key(d, s, &circuits[i]));
        }
    }
    return OK;
}

enum err demo_open(struct demo **out, const char *dir, const char *server) {
    AUTO(demo_close) struct demo *d = NULL;
    uint64_t seed;
    TRY(rng_os(&seed, sizeof seed));
    TRY(mem_new(&d, 1, sizeof *d));
    d->rng = rng_seeded(seed);
    snprintf(d->dir, sizeof d->dir, "%s/demo", dir);
    snprintf(d->log, sizeof d->log, "%s/demo.log", dir);
    snprintf(d->server, sizeof d->server, "--server=%s", server);
    TRY(dir_make(d->dir));
    for (size_t i = 0; i < SLOTS_COUNT; i++) {
        struct slot *slot = &d->slots[i];
        snprintf(slot->key, sizeof slot->key, "%s/demo/%s.zkey", dir, circuits[i].name);
        snprintf(slot->witness, sizeof slot->witness, "%s/demo/%s.wtns", dir, circuits[i].name);
    }
    *out = TAKE(d);
    return OK;
}

void demo_close(struct demo **pointer) {
    if (*pointer) {
        for (size_t i = 0; i < SLOTS_COUNT; i++) {
            child_stop(&(*pointer)->slots[i].child, STOP_NS);
        }
        mem_free_ptr(pointer);
    }
}
