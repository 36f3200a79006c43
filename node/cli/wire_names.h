/* What circom calls the wires of a circuit: its .sym file.
 *
 *     label,wire,component,name      one line each; wire -1: optimised away
 *
 * Of several names of one wire the first is taken, which is the outermost.
 *
 * Owner    the caller, to wire_names_close.
 * Threads  const after opening.
 * Errors   E_FORMAT, E_RANGE with the line; E_IO, E_LIMIT.
 * Source   circom 2 --sym.
 */
#pragma once
#include "node/base/file.h"

struct wire_names {
    char *text;         /* owned: the file, cut into texts */
    const char **names; /* owned; lent from text; NULL where a wire has none */
    uint32_t count;
};
FALLIBLE wire_names_open(struct wire_names *out, const char *path, uint32_t wires_count);
void wire_names_close(struct wire_names *n);
const char *wire_names_get(const struct wire_names *n, uint32_t wire); /* NULL: none */
