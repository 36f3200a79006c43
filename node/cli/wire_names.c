/* The file is read whole and cut in place; a wire's entry points into it. */
#include "node/cli/wire_names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/mem.h"

static enum err take_line(struct wire_names *n, char *line, uint64_t number, const char *path) {
    char *wire_text = strchr(line, ','), *name = wire_text ? strchr(wire_text + 1, ',') : NULL;
    name = name ? strchr(name + 1, ',') : NULL;
    REQUIRE(name && name[1], E_FORMAT,
            "%s: line %" PRIu64 " is not \"label,wire,component,name\"; it is the file that "
            "circom --sym writes",
            path, number);
    char *end = NULL;
    long long wire = strtoll(wire_text + 1, &end, 10);
    REQUIRE(*end == ',' && end > wire_text + 1, E_FORMAT,
            "%s: line %" PRIu64 " has no number of a wire", path, number);
    REQUIRE(wire < (long long)n->count, E_RANGE,
            "%s: line %" PRIu64 " names wire %lld; the circuit has %" PRIu32
            ": the files are of two circuits",
            path, number, wire, n->count);
    if (wire >= 0 && !n->names[wire]) {
        n->names[wire] = name + 1;
    }
    return OK;
}

enum err wire_names_open(struct wire_names *out, const char *path, uint32_t wires_count) {
    AUTO(wire_names_close) struct wire_names n = {.count = wires_count};
    AUTO(file_map_close) struct file_map map = {0};
    TRY(file_map_open(&map, path));
    TRY(mem_new_raw(&n.text, map.bytes.len + 1, 1));
    memcpy(n.text, map.bytes.ptr, map.bytes.len);
    n.text[map.bytes.len] = '\0';
    TRY(mem_new(&n.names, (size_t)wires_count + 1, sizeof *n.names));
    uint64_t number = 0;
    for (char *line = n.text; *line;) {
        char *end = strchr(line, '\n'), *next = end ? end + 1 : line + strlen(line);
        if (end) {
            *end = '\0';
        }
        TRY(take_line(&n, line, ++number, path));
        line = next;
    }
    *out = n;
    n = (struct wire_names){0};
    return OK;
}

void wire_names_close(struct wire_names *n) {
    mem_free(n->text);
    mem_free(n->names);
    *n = (struct wire_names){0};
}

const char *wire_names_get(const struct wire_names *n, uint32_t wire) {
    return n->names && wire < n->count ? n->names[wire] : NULL;
}
