/* The twin: a broker inside the process, same contract as a server's (transport.h).
 *
 * For tests of daemons, lanes and coordinators in one program. It keeps streams, consumers, ages and duplicates as the server
 * does, by clock_ns(), so that a test that holds the clock decides when an ack wait ends or a key expires. Faults can be
 * switched on: a partition makes every call of a transport fail with E_NET until it is healed.
 *
 * Not here: the server's own messages (advisories), several servers, permissions.
 *
 * Owner    whoever opened it; closed after all its transports.
 * Threads  any.
 */
#pragma once
#include "node/transport/transport.h"

struct loopback;

FALLIBLE loopback_open(struct loopback **out);
void loopback_close(struct loopback **b); /* asserts that no transport is open */
/* A transport on this broker; options may be NULL (only name and on_event matter). */
FALLIBLE loopback_connect(struct transport **out, struct loopback *b,
                          const struct transport_options *options);

/* --- Faults --- */
void loopback_partition(struct transport *t,
                        bool cut); /* calls fail with E_NET; messages wait in streams */
/* Forgets what a restarted server forgets: duplicate windows of messages that are gone, core subscriptions' unread messages,
 * memory streams; transports see a disconnect and a reconnect. */
void loopback_restart(struct loopback *b);
