/* Hostile JSON, read strictly: one text has one meaning.
 *
 * cJSON builds the tree. What it tolerates beyond RFC 8259 is refused before or after it: a byte-order mark, a NUL in
 * the text or as \u0000 (C strings would end there), text after the value, a field given twice, nesting past
 * JSON_DEPTH_MAX. Errors name the line and column, or the field. JSON is written through text.h.
 *
 * Threads  a tree belongs to one thread at a time; reading it from several is fine.
 * Errors   E_FORMAT for shape and past a named limit, E_RANGE for a number out of range, E_LIMIT out of memory.
 *          Outputs untouched unless OK.
 */
#pragma once
#include "node/base/bytes.h"

#include <cjson/cJSON.h>

enum {
    JSON_BYTES_MAX = 64 << 20,
    JSON_DEPTH_MAX = 64,
    JSON_VALUES_MAX = 1 << 22, /* a tree takes 64 bytes for each value beside the texts */
    JSON_FIELDS_MAX = 256      /* of one object */
};

/* *out is the caller's: json_free. `name` (of the file) is put before each error. */
FALLIBLE json_parse(cJSON **out, struct bytes json, const char *name);
FALLIBLE json_read(cJSON **out, const char *path); /* "-" is standard input */
void json_free(cJSON **json);                      /* for AUTO */

/* The values of a tree, checked for their kind. `field` names the value in errors: "pi_a[1] is not a text in quotes". */
FALLIBLE json_text(const char **out, const cJSON *value,
                   const char *field); /* lent from the tree */
FALLIBLE json_bool(bool *out, const cJSON *value, const char *field);
/* A whole number in [least, most]; JSON's numbers are exact only below 2^53, so most < 2^53. */
FALLIBLE json_number(uint64_t *out, const cJSON *value, uint64_t least, uint64_t most,
                     const char *field);
FALLIBLE json_list(size_t *count, const cJSON *value, const char *field); /* walk ->child, ->next */
/* A list of exactly `count` texts. */
FALLIBLE json_texts(const char **out, size_t count, const cJSON *value, const char *field);

/* The same by the name of a field, which must be there. */
FALLIBLE json_member(const cJSON **out, const cJSON *object, const char *field);
FALLIBLE json_text_member(const char **out, const cJSON *object, const char *field);
FALLIBLE json_number_member(uint64_t *out, const cJSON *object, uint64_t least, uint64_t most,
                            const char *field);
FALLIBLE json_list_member(const cJSON **out, size_t *count, const cJSON *object, const char *field);
