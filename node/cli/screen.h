/* What a person sees of long work: one line at the bottom of the terminal, on standard error.
 *
 * It appears after two seconds, is redrawn a few times a second and is wiped at the end. Where standard error is not a
 * terminal (a pipe, a log, a CI job) nothing is ever drawn and no thread is made.
 *
 * Threads  screen_open, _follow and _close from one thread; screen_progress from any.
 * Errors   none: a screen that cannot be had is a screen that draws nothing.
 */
#pragma once
#include "node/groth16/backend.h"

struct screen;

/* `title` is lent for the screen's life. *out may come back NULL: nothing to draw on; all calls accept that. */
void screen_open(struct screen **out, const char *title);
void screen_close(struct screen **screen);
/* From now on the bar shows the job's step and share; NULL: what screen_progress says. The watch outlives the screen or
 * the next call. */
void screen_follow(struct screen *screen, const struct job_watch *watch);
/* Share done, 0 … 1, in the shape that key_check's callback has; `screen` is a struct screen *. */
void screen_progress(void *screen, double done);
