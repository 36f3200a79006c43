/* The environment is read at each call: it is short, and a test may change it. */
#include "node/base/drag.h"

#ifdef BELLOWS_DRAG
#include <stdio.h>
#include <stdlib.h>

#include "node/base/clock.h"
#include "node/base/quantity.h"

void drag(enum drag_place place) {
    static const char *const variables[DRAG_PLACES_COUNT] = {[DRAG_DECODE] = "BELLOWS_SLOW_DECODE"};
    const char *text = getenv(variables[place]);
    uint64_t ns = 0;
    if (text && text[0] && quantity_span_ns(&ns, text) == OK) {
        clock_sleep_ns(ns);
    }
}

bool drag_lies(unsigned lane) {
    const char *path = getenv("BELLOWS_LYING");
    unsigned liar = 0;
    FILE *file = path && path[0] ? fopen(path, "re") : NULL;
    bool told = file && fscanf(file, "%u", &liar) == 1;
    if (file) {
        fclose(file);
    }
    return told && liar == lane;
}
#endif
