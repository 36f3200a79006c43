/* The connections of a daemon: several to one server, each for one purpose, opened together, watched together, closed together.
 *
 * What the library says about them is logged, once a daemon is ending no more. A connection that is closed for good (credentials
 * refused again and again) cannot come back: links_lost says so, and the daemon ends with exit code 4, to be started again by whoever
 * keeps it.
 *
 * Threads  one, but for links_lost.
 * Errors   the transport's.
 */
#pragma once
#include <signal.h>
#include <sys/types.h>

#include "node/transport/transport.h"

enum { LINKS_MAX = 2 + OBJECT_LINKS_MAX };

struct links;

struct link_wish {
    const char *purpose;      /* "control"; lent, static */
    uint64_t request_wait_ns; /* 0: the default */
    bool coalesces; /* what is sent may wait a millisecond for more, to go out in one write */
};
/* Who waits for a server can be told to end: by a signal of `set`, which the caller has blocked, or by the end of `parent` (0: none). */
struct link_patience {
    const sigset_t *set; /* lent */
    pid_t parent;
    bool said; /* that it waits */
};
/* `who` stands before the purpose in the server's list of connections. Keeps trying for a minute, and says so once; E_CANCELLED when
 * it was told to end. */
FALLIBLE links_open(struct links **out, const struct transport_options *options, const char *who,
                    const struct link_wish *wishes, size_t wishes_count,
                    struct link_patience *patience);
void links_close(struct links **l);                             /* for AUTO */
struct transport *links_get(const struct links *l, size_t idx); /* lent */
bool links_lost(const struct links *l);
