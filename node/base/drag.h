/* Drag: a place that a test slows down, to see that a slow place is told from others.
 *
 * Only builds with tests or debug checks have it; in others it is nothing, whatever the environment says.
 *
 *     BELLOWS_SLOW_DECODE=50ms bellows dev
 *
 * Threads  any.
 */
#pragma once

enum drag_place { DRAG_DECODE, DRAG_PLACES_COUNT };

#ifdef BELLOWS_DRAG
void drag(
    enum drag_place
        place); /* sleeps as long as the environment says; not at all without a word from it */
#else
static inline void drag(enum drag_place place) {
    (void)place;
}
#endif
