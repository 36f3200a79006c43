/* Settings: one table (config_table.h), four sources, in this order: defaults < file < environment < flags.
 *
 * Everything is checked at once, before anything starts; a name that no row knows is refused, with the nearest one that
 * is known. The file holds `name = value` lines; `#` starts a comment line.
 *
 *     struct config_flag flags[] = {{"memory", "4GiB"}};
 *     struct config_sources from = {.file = NULL, .environment = environ, .flags = flags, .flags_count = 1};
 *     AUTO(config_free) struct config config = {0};
 *     TRY(config_load(&config, CONFIG_NODE, &from));
 *     … config.memory_bytes …
 *
 * Threads  one loads; afterwards any may read.
 * Errors   E_USAGE naming file and line, variable or flag, what was found and what is allowed; E_IO for the file.
 */
#pragma once
#include "node/base/config_table.h"
#include "node/base/text.h"

enum config_origin { CONFIG_FROM_DEFAULT, CONFIG_FROM_FILE, CONFIG_FROM_ENV, CONFIG_FROM_FLAG };

struct config {
#define CONFIG_FIELD_TEXT(name, fallback, value, commands, sentence)        const char *name;
#define CONFIG_FIELD_BYTES(name, fallback, least, most, commands, sentence) uint64_t name##_bytes;
#define CONFIG_FIELD_SPAN(name, fallback, least, most, commands, sentence)  uint64_t name##_ns;
#define CONFIG_FIELD_COUNT(name, fallback, least, most, commands, sentence) uint64_t name;
#define CONFIG_FIELD_SWITCH(name, fallback, commands, sentence)             bool name;
    CONFIG_TABLE(CONFIG_FIELD_TEXT, CONFIG_FIELD_TEXT, CONFIG_FIELD_BYTES, CONFIG_FIELD_SPAN,
                 CONFIG_FIELD_COUNT, CONFIG_FIELD_SWITCH)
    unsigned char *origins; /* owned: enum config_origin by row */
};

struct config_flag {
    const char *name;  /* without the dashes in front: "memory" */
    const char *value; /* "yes" for a switch given alone */
};
struct config_sources {
    const char *file;                /* NULL: no file */
    char **environment;              /* like environ; NULL: none */
    const struct config_flag *flags; /* later ones win */
    size_t flags_count;
};

/* On OK *out is the caller's, to config_free(); its texts live as long. `command` is one of enum config_command. */
FALLIBLE config_load(struct config *out, unsigned command, const struct config_sources *from);
void config_free(struct config *config); /* for AUTO */

/* For the parser of command lines: the flag's name when `command` takes --NAME, else NULL. Lent, static. */
const char *config_flag_find(bool *needs_value, unsigned command, const char *name,
                             size_t name_len);
/* The names of the flags that `command` takes, for suggestions; returns how many, at most `names_max`. Lent, static. */
size_t config_flag_names(const char **names, size_t names_max, unsigned command);

/* For a child process: "--NAME=VALUE" and a NUL for each row that all of `commands` take, unless its text is empty. Returns how many. */
size_t config_flags(struct text *out, const struct config *config, unsigned commands);

void config_help(struct text *out, unsigned command); /* the lines for --help */
void config_sample(struct text *out);                 /* the sample file, all rows as comments */
/* All rows as a JSON list: [{"name": …, "flag": …, "variable": …, "kind": …, "value": …, "range": …, "fallback": …, "commands": …, "text": …}, …]. */
void config_describe_json(struct text *out);
/* Effective values, in the file's format, each with where it came from. */
void config_show(struct text *out, const struct config *config, unsigned command);
/* The same as {"NAME": {"value": "…", "from": "file"}, …}; values are texts, as in the file. */
void config_show_json(struct text *out, const struct config *config, unsigned command);
