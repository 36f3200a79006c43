/* The table is expanded three times: into struct config (config.h), into the rows below, and into the flags' names. All
 * code works on rows; a row's field is found by its offset.
 *
 * Every value, defaults included, goes through set_row(), so there is one place where texts become values.
 */
#include "node/base/config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/base/nearest.h"
#include "node/base/quantity.h"

enum { FILE_BYTES_MAX = 1 << 20, NAME_BYTES_MAX = 64, ORIGIN_BYTES_MAX = 300 };

enum kind { KIND_TEXT, KIND_CHOICE, KIND_BYTES, KIND_SPAN, KIND_COUNT, KIND_SWITCH };

struct row {
    enum kind kind;
    const char *name, *fallback,
        *value; /* value: the words of a choice, or what stands for it in --help */
    uint64_t least, most;
    unsigned commands;
    const char *sentence;
    size_t offset;
};

#define STRINGIFY_(x) #x
#define ROW_TEXT(name, fallback, value, commands, sentence)                                        \
    {KIND_TEXT, #name, fallback, value, 0, 0, commands, sentence, offsetof(struct config, name)},
#define ROW_CHOICE(name, fallback, value, commands, sentence)                                      \
    {KIND_CHOICE, #name, fallback, value, 0, 0, commands, sentence, offsetof(struct config, name)},
#define ROW_BYTES(name, fallback, least, most, commands, sentence)                                 \
    {KIND_BYTES, #name,    fallback,                                                               \
     "SIZE",     least,    most,                                                                   \
     commands,   sentence, offsetof(struct config, name##_bytes)},
#define ROW_SPAN(name, fallback, least, most, commands, sentence)                                  \
    {KIND_SPAN, #name,    fallback,                                                                \
     "TIME",    least,    most,                                                                    \
     commands,  sentence, offsetof(struct config, name##_ns)},
#define ROW_COUNT(name, fallback, least, most, commands, sentence)                                 \
    {KIND_COUNT, #name,    STRINGIFY_(fallback),         "N", least, most,                         \
     commands,   sentence, offsetof(struct config, name)},
#define ROW_SWITCH(name, fallback, commands, sentence)                                             \
    {KIND_SWITCH, #name,    (fallback) ? "yes" : "no",    "yes|no", 0, 0,                          \
     commands,    sentence, offsetof(struct config, name)},

static const struct row rows[] = {
    CONFIG_TABLE(ROW_TEXT, ROW_CHOICE, ROW_BYTES, ROW_SPAN, ROW_COUNT, ROW_SWITCH)};

static const char *const other_variables[] = {CONFIG_OTHER_VARIABLES};

/* --- Names: tenant_jobs, BELLOWS_TENANT_JOBS, --tenant-jobs --- */

static void flag_name(char out[NAME_BYTES_MAX], const struct row *row) {
    snprintf(out, NAME_BYTES_MAX, "%s", row->name);
    for (char *c = out; *c; c++) {
        *c = *c == '_' ? '-' : *c;
    }
}

static void variable_name(char out[NAME_BYTES_MAX], const struct row *row) {
    snprintf(out, NAME_BYTES_MAX, "BELLOWS_%s", row->name);
    for (char *c = out; *c; c++) {
        *c = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
    }
}

static const struct row *row_of_flag(const char *name, size_t name_len) {
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char flag[NAME_BYTES_MAX];
        flag_name(flag, &rows[i]);
        if (strlen(flag) == name_len && !memcmp(flag, name, name_len)) {
            return &rows[i];
        }
    }
    return NULL;
}

static const struct row *row_of_name(const char *name) {
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (!strcmp(rows[i].name, name)) {
            return &rows[i];
        }
    }
    return NULL;
}

/* --- Values --- */

static bool is_choice(const char *choices, const char *word) {
    size_t len = strlen(word);
    for (const char *at = choices; len > 0 && *at;) {
        size_t choice_len = strcspn(at, "|");
        if (choice_len == len && !memcmp(at, word, len)) {
            return true;
        }
        at += choice_len + (at[choice_len] == '|');
    }
    return false;
}

static bool switch_value(bool *out, const char *word) {
    static const char *const words[] = {"no", "yes", "off", "on", "false", "true", "0", "1"};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (!strcasecmp(word, words[i])) {
            *out = i % 2 == 1;
            return true;
        }
    }
    return false;
}

static void range_text(char *out, size_t out_bytes, const struct row *row) {
    char least[QUANTITY_TEXT_BYTES], most[QUANTITY_TEXT_BYTES];
    if (row->kind == KIND_BYTES) {
        quantity_bytes_text(least, row->least);
        quantity_bytes_text(most, row->most);
    } else if (row->kind == KIND_SPAN) {
        quantity_span_text(least, row->least);
        quantity_span_text(most, row->most);
    } else {
        snprintf(least, sizeof least, "%llu", (unsigned long long)row->least);
        snprintf(most, sizeof most, "%llu", (unsigned long long)row->most);
    }
    snprintf(out, out_bytes, "%s to %s", least, most);
}

static FALLIBLE number_value(uint64_t *out, const struct row *row, const char *text,
                             const char *origin) {
    uint64_t n;
    enum err code = row->kind == KIND_BYTES  ? quantity_bytes(&n, text)
                    : row->kind == KIND_SPAN ? quantity_span_ns(&n, text)
                                             : quantity_number(&n, text);
    if (code != OK) {
        return err_prefix(E_USAGE, "%s", origin);
    }
    char range[2 * QUANTITY_TEXT_BYTES + 8];
    range_text(range, sizeof range, row);
    REQUIRE(n >= row->least && n <= row->most, E_USAGE, "%s is %.40s; allowed is %s", origin, text,
            range);
    *out = n;
    return OK;
}

/* `origin` is where the text stands: "line 3 of bellows.conf: lanes", "BELLOWS_LANES", "--lanes". */
static FALLIBLE set_row(struct config *config, const struct row *row, const char *text,
                        const char *origin, enum config_origin from) {
    char *field = (char *)config + row->offset, *copy;
    switch (row->kind) {
    case KIND_CHOICE:
        REQUIRE(is_choice(row->value, text), E_USAGE, "%s is \"%.40s\"; allowed is %s", origin,
                text, row->value);
        /* fall through */
    case KIND_TEXT:
        copy = mem_strdup(text);
        REQUIRE(copy, E_LIMIT, "out of memory: %s", origin);
        mem_free_ptr(field);
        memcpy(field, &copy, sizeof copy);
        break;
    case KIND_SWITCH:
        REQUIRE(switch_value((bool *)field, text), E_USAGE, "%s is \"%.40s\"; allowed is yes or no",
                origin, text);
        break;
    case KIND_BYTES:
    case KIND_SPAN:
    case KIND_COUNT:
        TRY(number_value((uint64_t *)field, row, text, origin));
        break;
    }
    config->origins[row - rows] = (unsigned char)from;
    return OK;
}

/* --- Sources --- */

static FALLIBLE unknown_name(const char *where, const char *name, const char *const *names,
                             size_t names_count) {
    const char *near = nearest_name(name, names, names_count);
    REQUIRE(!near, E_USAGE, "%s: no option is named %.64s; did you mean %s?", where, name, near);
    FAIL(E_USAGE, "%s: no option is named %.64s", where, name);
}

static char *trim(char *s) {
    s += strspn(s, " \t\r");
    size_t len = strlen(s);
    while (len > 0 && strchr(" \t\r", s[len - 1])) {
        s[--len] = '\0';
    }
    return s;
}

static FALLIBLE load_line(struct config *config, bool *seen, char *line, const char *where) {
    char *name = trim(line);
    if (*name == '\0' || *name == '#') {
        return OK;
    }
    char *value = strchr(name, '=');
    REQUIRE(value, E_USAGE, "%s: \"%.40s\" is not of the form name = value", where, name);
    *value++ = '\0';
    name = trim(name);
    value = trim(value);
    size_t len = strlen(value);
    if (len >= 2 && value[0] == '"' && value[len - 1] == '"') {
        value[len - 1] = '\0';
        value++;
    }
    const struct row *row = row_of_name(name);
    if (!row) {
        const char *names[COUNT_OF(rows)];
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
            names[i] = rows[i].name;
        }
        return unknown_name(where, name, names, COUNT_OF(rows));
    }
    REQUIRE(!seen[row - rows], E_USAGE, "%s: %s is set twice", where, row->name);
    seen[row - rows] = true;
    char origin[ORIGIN_BYTES_MAX + NAME_BYTES_MAX];
    snprintf(origin, sizeof origin, "%s: %s", where, row->name);
    return set_row(config, row, value, origin, CONFIG_FROM_FILE);
}

static FALLIBLE load_lines(struct config *config, char *text, const char *path) {
    bool seen[COUNT_OF(rows)] = {false};
    size_t line_count = 0;
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        char where[ORIGIN_BYTES_MAX];
        snprintf(where, sizeof where, "line %zu of %.200s", ++line_count, path);
        TRY(load_line(config, seen, line, where));
    }
    return OK;
}

static FALLIBLE load_file(struct config *config, const char *path) {
    struct bytes_mut raw;
    TRY(file_read_all(&raw, path, FILE_BYTES_MAX));
    AUTO(mem_free_ptr) char *text = (char *)mem_grow(raw.ptr, raw.len + 1);
    if (!text) {
        mem_free(raw.ptr);
        FAIL(E_LIMIT, "out of memory: %s", path);
    }
    text[raw.len] = '\0';
    REQUIRE(strlen(text) == raw.len, E_USAGE, "%s holds a zero byte; it is not a text", path);
    REQUIRE(strncmp(text, "\xef\xbb\xbf", 3) != 0, E_USAGE,
            "%s starts with a byte-order mark; save it without one", path);
    return load_lines(config, text, path);
}

static FALLIBLE unknown_variable(const char *variable) {
    static char storage[COUNT_OF(rows)][NAME_BYTES_MAX];
    const char *names[COUNT_OF(rows)];
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        variable_name(storage[i], &rows[i]);
        names[i] = storage[i];
    }
    return unknown_name("environment", variable, names, COUNT_OF(rows));
}

static FALLIBLE load_variable(struct config *config, const char *assignment) {
    static const char prefix[] = "BELLOWS_";
    const char *equals = strchr(assignment, '=');
    if (!equals || strncmp(assignment, prefix, sizeof prefix - 1)) {
        return OK;
    }
    char name[NAME_BYTES_MAX];
    snprintf(name, sizeof name, "%.*s", (int)(equals - assignment), assignment);
    for (size_t i = 0; i < COUNT_OF(other_variables); i++) {
        if (!strcmp(name + sizeof prefix - 1, other_variables[i])) {
            return OK;
        }
    }
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char variable[NAME_BYTES_MAX];
        variable_name(variable, &rows[i]);
        if (!strcmp(variable, name)) {
            return equals[1] ? set_row(config, &rows[i], equals + 1, variable, CONFIG_FROM_ENV)
                             : OK; /* set to nothing is not set */
        }
    }
    return unknown_variable(name);
}

static FALLIBLE load_flag(struct config *config, unsigned command, const struct config_flag *flag) {
    const struct row *row = row_of_flag(flag->name, strlen(flag->name));
    char origin[NAME_BYTES_MAX + 4];
    snprintf(origin, sizeof origin, "--%.60s", flag->name);
    if (!row || !(row->commands & command)) {
        const char *names[COUNT_OF(rows)];
        return unknown_name("command line", origin + 2, names,
                            config_flag_names(names, COUNT_OF(names), command));
    }
    return set_row(config, row, flag->value, origin, CONFIG_FROM_FLAG);
}

/* Frees what set_row made; numbers stay. */
void config_free(struct config *config) {
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (rows[i].kind == KIND_TEXT || rows[i].kind == KIND_CHOICE) {
            mem_free_ptr((char *)config + rows[i].offset);
        }
    }
    mem_free_ptr(&config->origins);
}

enum err config_load(struct config *out, unsigned command, const struct config_sources *from) {
    AUTO(config_free) struct config config = {0};
    TRY(mem_new(&config.origins, COUNT_OF(rows), 1));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        TRY(set_row(&config, &rows[i], rows[i].fallback, rows[i].name, CONFIG_FROM_DEFAULT));
    }
    if (from->file) {
        TRY(load_file(&config, from->file));
    }
    for (char **at = from->environment; at && *at; at++) {
        TRY(load_variable(&config, *at));
    }
    for (size_t i = 0; i < from->flags_count; i++) {
        TRY(load_flag(&config, command, &from->flags[i]));
    }
    *out = config;
    config = (struct config){0};
    return OK;
}

/* --- What is said about the table --- */

static _Thread_local char flag_names[COUNT_OF(rows)]
                                    [NAME_BYTES_MAX]; /* the same text whenever written */

const char *config_flag_find(bool *needs_value, unsigned command, const char *name,
                             size_t name_len) {
    const struct row *row = row_of_flag(name, name_len);
    if (!row || !(row->commands & command)) {
        return NULL;
    }
    *needs_value = row->kind != KIND_SWITCH;
    flag_name(flag_names[row - rows], row);
    return flag_names[row - rows];
}

size_t config_flag_names(const char **names, size_t names_max, unsigned command) {
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(rows) && count < names_max; i++) {
        if (rows[i].commands & command) {
            flag_name(flag_names[i], &rows[i]);
            names[count++] = flag_names[i];
        }
    }
    return count;
}

static bool has_range(const struct row *row) {
    return row->kind == KIND_BYTES || row->kind == KIND_SPAN || row->kind == KIND_COUNT;
}

void config_help(struct text *out, unsigned command) {
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct row *row = &rows[i];
        if (!(row->commands & command)) {
            continue;
        }
        char flag[NAME_BYTES_MAX], variable[NAME_BYTES_MAX], left[2 * NAME_BYTES_MAX + 8];
        flag_name(flag, row);
        variable_name(variable, row);
        snprintf(left, sizeof left, "--%s%s%s", flag, row->kind == KIND_SWITCH ? "" : " ",
                 row->kind == KIND_SWITCH ? "" : row->value);
        text_addf(out, "  %-28s %s", left, row->sentence);
        if (*row->fallback) {
            text_addf(out, " [%s]", row->fallback);
        }
        text_addf(out, " ($%s)\n", variable);
    }
}

static void add_commands(struct text *out, unsigned commands) {
    static const struct {
        unsigned bit;
        const char *name;
    } names[] = {{CONFIG_NODE, "node"},
                 {CONFIG_COORDINATOR, "coordinator"},
                 {CONFIG_DEV, "dev"},
                 {CONFIG_CLIENT, "clients"}};
    bool first = true;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (commands & names[i].bit) {
            text_addf(out, "%s%s", first ? "" : ", ", names[i].name);
            first = false;
        }
    }
}

void config_sample(struct text *out) {
    text_add(out, "# Settings of Bellows, every one with its default. Order: defaults < this file "
                  "< environment\n"
                  "# < command line. Names that are not listed here are refused; a variable set to "
                  "nothing is not set.\n");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct row *row = &rows[i];
        char flag[NAME_BYTES_MAX], variable[NAME_BYTES_MAX], range[2 * QUANTITY_TEXT_BYTES + 8];
        flag_name(flag, row);
        variable_name(variable, row);
        range_text(range, sizeof range, row);
        text_addf(out, "\n# %s\n# For ", row->sentence);
        add_commands(out, row->commands);
        text_addf(out, "; %s; also --%s, %s.\n", has_range(row) ? range : row->value, flag,
                  variable);
        text_addf(out, "#%s =%s%s\n", row->name, *row->fallback ? " " : "", row->fallback);
    }
}

void config_describe_json(struct text *out) {
    static const char *const kinds[] = {"text", "choice", "bytes", "span", "count", "switch"};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct row *row = &rows[i];
        char flag[NAME_BYTES_MAX], variable[NAME_BYTES_MAX], range[2 * QUANTITY_TEXT_BYTES + 8];
        flag_name(flag, row);
        variable_name(variable, row);
        range_text(range, sizeof range, row);
        text_addf(out,
                  "%s{\"name\": \"%s\", \"flag\": \"%s\", \"variable\": \"%s\", \"kind\": \"%s\", "
                  "\"value\": ",
                  i ? ",\n" : "[", row->name, flag, variable, kinds[row->kind]);
        text_add_json_string(out, row->value);
        text_add(out, ", \"range\": ");
        text_add_json_string(out, has_range(row) ? range : "");
        text_add(out, ", \"fallback\": ");
        text_add_json_string(out, row->fallback);
        text_add(out, ", \"commands\": \"");
        add_commands(out, row->commands);
        text_add(out, "\", \"text\": ");
        text_add_json_string(out, row->sentence);
        text_add(out, "}");
    }
    text_add(out, "]");
}

/* Lent: from the config, or written to `scratch`. */
static const char *value_text(char scratch[QUANTITY_TEXT_BYTES], const struct row *row,
                              const struct config *config) {
    const char *field = (const char *)config + row->offset, *words;
    uint64_t n;
    switch (row->kind) {
    case KIND_TEXT:
    case KIND_CHOICE:
        memcpy(&words, field, sizeof words);
        return words;
    case KIND_SWITCH:
        return *(const bool *)field ? "yes" : "no";
    case KIND_BYTES:
        memcpy(&n, field, sizeof n);
        quantity_bytes_text(scratch, n);
        return scratch;
    case KIND_SPAN:
        memcpy(&n, field, sizeof n);
        quantity_span_text(scratch, n);
        return scratch;
    case KIND_COUNT:
        memcpy(&n, field, sizeof n);
        snprintf(scratch, QUANTITY_TEXT_BYTES, "%llu", (unsigned long long)n);
        return scratch;
    }
    UNREACHABLE("a kind of option without a text");
}

static const char *const origin_names[] = {"default", "file", "environment", "command line"};

void config_show(struct text *out, const struct config *config, unsigned command) {
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char scratch[QUANTITY_TEXT_BYTES];
        if (rows[i].commands & command) {
            const char *value = value_text(scratch, &rows[i], config);
            text_addf(out, "# %s\n%s =%s%s\n", origin_names[config->origins[i]], rows[i].name,
                      *value ? " " : "", value);
        }
    }
}

void config_show_json(struct text *out, const struct config *config, unsigned command) {
    const char *before = "{";
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char scratch[QUANTITY_TEXT_BYTES];
        if (rows[i].commands & command) {
            text_addf(out, "%s\"%s\": {\"value\": ", before, rows[i].name);
            text_add_json_string(out, value_text(scratch, &rows[i], config));
            text_addf(out, ", \"from\": \"%s\"}", origin_names[config->origins[i]]);
            before = ", ";
        }
    }
    text_add(out, "}\n");
}

size_t config_flags(struct text *out, const struct config *config, unsigned commands) {
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char scratch[QUANTITY_TEXT_BYTES], flag[NAME_BYTES_MAX];
        const char *value = value_text(scratch, &rows[i], config);
        if ((rows[i].commands & commands) == commands && *value) {
            flag_name(flag, &rows[i]);
            text_addf(out, "--%s=%s", flag, value);
            text_add_bytes(out, bytes_of("", 1));
            count++;
        }
    }
    return count;
}
