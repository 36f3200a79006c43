/* Leadership: one coordinator works, the others stand by.
 *
 * A lease is an entry of the bucket `lead` that vanishes by itself; its holder renews it by compare-and-set, four times in its life.
 * Who could not renew for three quarters of it steps down by his own clock, before anybody else can have got it; who stands by asks
 * sixteen times in a life, so a dead leader is followed a little more than one life after his last renewal. The lease keeps two coordinators from working
 * against each other; safety does not rest on it but on the revisions of the job records.
 *
 * Owner    the coordinator; its transport is lent and used by no other thread, as calls may block.
 * Threads  lead_open starts one; the functions any.
 * Errors   lead_open: E_FORMAT for a holder's name that is no id, E_LIMIT without memory or thread. A server that is away is no error.
 */
#pragma once
#include "node/transport/fleet.h"

struct lead;

FALLIBLE lead_open(struct lead **out, struct transport *t, const struct subject_space *space,
                   const char *holder, uint64_t ttl_ns);
void lead_close(struct lead **l); /* gives the lease up, so that the next one need not wait */
bool lead_is_held(const struct lead *l);
/* Counts how often it was won: differs when it was lost in between. */
uint64_t lead_term(const struct lead *l);
