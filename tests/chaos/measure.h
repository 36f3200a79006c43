/* How fast a small fleet reacts: figures printed, limits checked. Each claim has a fleet of its own, without wires.
 *
 * Threads  the claim's.
 */
#pragma once

/* With so many records of ended jobs in the bucket, as after days, and so many jobs that wait. */
extern unsigned measure_kept, measure_open;
void claim_failover(void);
void claim_dead_lane(void);
void claim_latency(void);
void claim_full_disk(void); /* disk.c */
