/* Cables: each node in a network namespace of its own, joined to this machine by a veth pair that can be pulled out or spoilt.
 *
 * Unlike a wire (wire.h), which a relay cuts in good order, a pulled cable tells nobody: packets vanish, connections stay half open and TCP
 * sends again at its own pace. A spoilt one loses packets: at random where the kernel has netem, else by a queue that overflows.
 *
 * Needs root, `ip`, and for spoiling `tc`; where any is missing or the kernel refuses, there are no cables and the nodes stay outside.
 *
 * Owner    the claim.
 * Threads  one.
 */
#pragma once
#include <stdbool.h>

enum { CABLES_MAX = 4 };

struct cables;

/* NULL: there are none, for the reason in *why. */
struct cables *cables_open(unsigned count, const char **why);
void cables_close(struct cables **c);
const char *cable_address(const struct cables *c, unsigned idx);   /* this machine's, at its end */
const char *cable_namespace(const struct cables *c, unsigned idx); /* for `ip netns exec` */
/* False: the kernel did not do it. */
bool cable_pull(const struct cables *c, unsigned idx);
bool cable_spoil(const struct cables *c, unsigned idx, unsigned loss_percent, unsigned delay_ms);
/* Sound again, whatever was done to it. */
void cable_mend(const struct cables *c, unsigned idx);
