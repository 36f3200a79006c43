/* Control: an operator's orders to lanes and nodes, over the fleet's own wires.
 *
 *   <prefix>.ctl.lane.<node>.<gpu>.VERB    one lane                 the lane answers
 *   <prefix>.ctl.node.<node>.VERB          all lanes of a node      its supervisor answers, the lanes obey silently
 *   <prefix>.ctl.all.VERB                  all lanes of the fleet   every supervisor answers
 *
 * drain    takes nothing new, what has not started goes back, what is being proved may end within the grace; the process stays up
 * resume   takes work again; a fence and its strikes are forgotten
 * stop     a node only: ends as after SIGTERM
 *
 * The supervisor listens to its lanes' orders too, so that a lane that it starts again is as its predecessor was told to be.
 *
 * Owner    the lane or the supervisor; closed before its transport.
 * Threads  open and close: the owner's. The handler runs on a thread of the transport.
 * Errors   the transport's. An order that cannot be read, or is unknown, is answered with E_FORMAT or E_USAGE and does nothing.
 */
#pragma once
#include "node/job/record.h"
#include "node/transport/transport.h"

struct control;

enum control_verb { CONTROL_DRAIN, CONTROL_RESUME, CONTROL_STOP };
struct control_order {
    enum control_verb verb;
    bool one_lane; /* `gpu` says which; else all lanes that hear it */
    uint32_t gpu;
    uint64_t grace_ns;                /* drain: UINT64_MAX: as long as it takes */
    char reason[RECORD_DETAIL_BYTES]; /* may be "" */
};
/* Sets flags and wakes, and never waits; its error goes to who asked. */
typedef enum err control_handler(void *ctx, const struct control_order *order);

struct control_options {
    const struct subject_space *space; /* lent */
    const char *node;
    bool supervisor; /* else the lane `gpu` */
    uint32_t gpu;
    control_handler *handler;
    void *handler_ctx;
};
FALLIBLE control_open(struct control **out, struct transport *t,
                      const struct control_options *options);
void control_close(struct control **c);
