/* Wires: TCP relays on loopback between a process and the server, which can be cut, stalled or slowed.
 *
 * Each process of the fleet connects through a wire of its own, so that one loses the server while the others keep it. A cut closes
 * what is connected and refuses what comes; a hole takes connections and moves no byte, as when a cable is pulled; a slow wire
 * holds every piece back for the delay, which with pieces of at most 64 KiB also limits what passes in a second.
 *
 * Owner    the claim.
 * Threads  wires_open starts one that moves the bytes; wire_set any.
 * Errors   E_IO.
 */
#pragma once
#include "node/base/err.h"

enum { WIRES_MAX = 8 };
enum wire_mode { WIRE_SOUND, WIRE_CUT, WIRE_HOLE, WIRE_SLOW };

struct wires;

/* `addresses`: where each listens; NULL, or NULL in it: on loopback. */
FALLIBLE wires_open(struct wires **out, unsigned count, unsigned server_port,
                    const char *const *addresses);
void wires_close(struct wires **w);
unsigned wire_port(const struct wires *w, unsigned idx);
void wire_set(struct wires *w, unsigned idx, enum wire_mode mode, uint64_t delay_ns);
