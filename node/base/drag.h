/* Drag: a place that a test slows down, to see that a slow place is told from others; and a device that a test makes lie, to see that it is
 * found out.
 *
 * Only builds with tests or debug checks have it; in others it is nothing, whatever the environment says.
 *
 *     BELLOWS_SLOW_DECODE=50ms bellows dev
 *     BELLOWS_LYING=FILE bellows dev                  as long as the file holds the number of a lane
 *
 * Threads  any.
 */
#pragma once
#include <stdbool.h>

enum drag_place { DRAG_DECODE, DRAG_PLACES_COUNT };

#ifdef BELLOWS_DRAG
void drag(
    enum drag_place
        place); /* sleeps as long as the environment says; not at all without a word from it */
bool drag_lies(unsigned lane); /* what its device says is to be made wrong */
#else
static inline void drag(enum drag_place place) {
    (void)place;
}
static inline bool drag_lies(unsigned lane) {
    (void)lane;
    return false;
}
#endif
