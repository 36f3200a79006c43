/* Ctrl-C and friends: the first signal asks the work to stop and leave nothing behind, the second ends the process.
 *
 * After the clean-up the process ends by the signal itself, so that a shell's loop over many proofs ends too.
 *
 * Threads  the main thread; the flag is set from the signal handler.
 */
#pragma once

/* SIGINT, SIGTERM and SIGHUP set *flag from now on; each restores its default action as it comes. */
void stop_sets(_Atomic int *flag);
int stop_signal(void); /* the signal that came, 0: none */
/* Ends the process by the signal that came; returns if none did. */
void stop_as_signalled(void);
