/* The screen of `bellows top`: one picture of the fleet, drawn with ncurses, and the keys that move about in it.
 *
 * Pages: the fleet, one device, one queue, one job, the help. The bars' letters say the cause even where there is no colour. Works from 40×10
 * upwards; resizing redraws.
 *
 * Owner    the command.
 * Threads  one.
 * Errors   E_USAGE where standard output is no terminal that can be drawn on.
 */
#pragma once
#include "node/cli/fleet_watch.h"

struct top_screen;

FALLIBLE top_screen_open(struct top_screen **out, bool colour, const char *filter);
void top_screen_close(struct top_screen **s); /* gives the terminal back; for AUTO */
/* Draws, then waits for a key up to wait_ms and does what it says. False: the user wants to leave. */
bool top_screen_step(struct top_screen *s, const struct watch *picture, const char *server,
                     unsigned wait_ms);
