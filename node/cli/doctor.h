/* Doctor: what of this machine, its devices and its way to the fleet works, what does not, why, and what to do.
 *
 * A check adds one finding, good or bad; nothing is changed and nothing is left behind, so it may run beside a working node.
 *
 * Threads  one.
 */
#pragma once
#include "node/base/config.h"
#include "node/base/text.h"

enum finding_state {
    FINDING_GOOD,
    FINDING_NOTE,    /* worth knowing, nothing to do */
    FINDING_WARNING, /* works, but badly or not for long */
    FINDING_BAD,     /* does not work */
    FINDING_STATES_COUNT
};
struct finding {
    const char *part;  /* "network", "host", "device"; static */
    const char *check; /* "clock"; static */
    enum finding_state state;
    char found[400]; /* what was found and why it matters */
    char cure[240];  /* "" when there is nothing to do */
};
enum { FINDINGS_MAX = 64 };
struct findings {
    struct finding list[FINDINGS_MAX];
    size_t count;
};
/* Adds one; the text is `found`. The cure is added by finding_cure. Past FINDINGS_MAX they are dropped (asserted in debug builds). */
void finding_add(struct findings *f, const char *part, const char *check, enum finding_state state,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));
void finding_cure(struct findings *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *finding_state_name(enum finding_state state);

/* --- The parts. What the kernel says is read below `root`: "" on this machine, a made-up tree in tests. --- */
void doctor_network(struct findings *out, const struct config *config);
void doctor_host(struct findings *out, const struct config *config, const char *root);
/* NVIDIA cards, their driver, device files and NUMA nodes, as the kernel shows them: also where CUDA does not start. */
void doctor_cards(struct findings *out, const char *root);
void doctor_device(struct findings *out); /* what CUDA says */

/* So much room is left for fetched keys at `path`, which --cache names or not. */
void doctor_space(struct findings *f, const char *path, uint64_t free_bytes, bool named);
/* This machine's clock is so much ahead of the server's (negative: behind). */
void doctor_ahead(struct findings *f, double ahead_s);

enum { DOCTOR_LINE_BYTES = 512 };
/* The first line of the file `path` below `root`; false when it cannot be read. */
bool doctor_line(char out[DOCTOR_LINE_BYTES], const char *root, const char *path);
/* Runs a device of compute capability major.minor what was compiled for `archs` ("80,90", "all")? GOOD: as it is; NOTE: the driver
 * compiles it when a lane starts; BAD: not. */
enum finding_state doctor_arch(const char *archs, unsigned major, unsigned minor);
