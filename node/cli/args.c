/* A command line becomes a list of (option, value) pairs in the order given, and a list of words that are not options.
 * Everything is checked against the command's tables at once, so that a command starts only with sound arguments; the
 * look-ups afterwards cannot fail. Names of options are searched linearly: tables are short.
 */
#include "node/cli/args.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/base/nearest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { ARGS_MAX = 65536, NAMES_MAX = 64, WORD_MAX = 64 };

struct given {
    const struct option *option;
    const char *value; /* lent */
};
struct args {
    const struct command *command;
    struct given *given;       /* owned */
    const char **words;        /* owned */
    struct config_flag *flags; /* owned: options of config_table.h */
    const char *config_file;   /* lent; NULL: none given */
    size_t given_count, words_count, flags_count;
    bool reported;
};

bool switch_word(bool *out, const char *word) {
    static const char *const off[] = {"", "0", "no", "false", "off"};
    static const char *const on[] = {"1", "yes", "true", "on"};
    for (size_t i = 0; i < COUNT_OF(off); i++) {
        if (!strcasecmp(word, off[i])) {
            *out = false;
            return true;
        }
    }
    for (size_t i = 0; i < COUNT_OF(on); i++) {
        if (!strcasecmp(word, on[i])) {
            *out = true;
            return true;
        }
    }
    return false;
}

static size_t least_of(size_t a, size_t b) {
    return a < b ? a : b;
}

static const struct option *find_option(const struct command *command, const char *name,
                                        size_t name_len) {
    for (const struct option *o = command->options; o && o->kind != OPTION_END; o++) {
        if (strlen(o->name) == name_len && !strncmp(o->name, name, name_len)) {
            return o;
        }
    }
    return NULL;
}

static enum err unknown_option(const struct command *command, const char *name, size_t name_len) {
    const char *names[NAMES_MAX];
    size_t count = 0;
    names[count++] = "help";
    if (command->config) {
        names[count++] = "config";
        count += config_flag_names(names + count, NAMES_MAX - count, command->config);
    }
    for (const struct option *o = command->options; o && o->kind != OPTION_END; o++) {
        if (count < NAMES_MAX) {
            names[count++] = o->name;
        }
    }
    char word[WORD_MAX + 1];
    snprintf(word, sizeof word, "%.*s", (int)least_of(name_len, WORD_MAX), name);
    const char *near = nearest_name(word, names, count);
    if (near) {
        FAIL(E_USAGE, "unknown option --%s; did you mean --%s?", word, near);
    }
    FAIL(E_USAGE, "unknown option --%s; `bellows %s --help` lists the options", word,
         command->name);
}

static bool is_choice(const char *choices, const char *value) {
    size_t len = strlen(value);
    for (const char *at = choices; *at;) {
        size_t word_len = strcspn(at, "|");
        if (word_len == len && len > 0 && !strncmp(at, value, len)) {
            return true;
        }
        at += word_len + (at[word_len] == '|');
    }
    return false;
}

static bool number_of(uint64_t *out, const char *value) {
    char *end = NULL;
    if (value[0] < '0' || value[0] > '9') {
        return false;
    }
    errno = 0;
    *out = strtoull(value, &end, 10);
    return errno == 0 && *end == '\0';
}

/* `origin` is how the value came: "--threads" or "BELLOWS_THREADS". */
static enum err check_value(const struct option *option, const char *origin, const char *value) {
    bool on;
    uint64_t number;
    switch (option->kind) {
    case OPTION_SWITCH:
        REQUIRE(switch_word(&on, value), E_USAGE, "%s is a switch: \"%s\" is neither yes nor no",
                origin, value);
        return OK;
    case OPTION_CHOICE:
        REQUIRE(is_choice(option->value, value), E_USAGE, "%s is \"%s\"; it takes one of %s",
                origin, value, option->value);
        return OK;
    case OPTION_NUMBER:
        REQUIRE(number_of(&number, value) && number >= option->least && number <= option->most,
                E_USAGE, "%s is \"%s\"; it takes a whole number from %llu to %llu", origin, value,
                (unsigned long long)option->least, (unsigned long long)option->most);
        return OK;
    case OPTION_TEXT:
        REQUIRE(value[0] != '\0', E_USAGE, "%s is empty; it takes %s", origin, option->value);
        return OK;
    case OPTION_END:
        break;
    }
    FAIL(E_INTERNAL, "option table of %s has an unknown kind", origin);
}

/* --config and the options of config_table.h; config_load checks their values. */
static enum err add_setting(struct args *args, const char *word, const char *next,
                            bool *next_used) {
    const char *name = word + 2, *value = "yes", *setting = NULL;
    size_t name_len = strcspn(name, "=");
    bool needs_value = true, is_file = name_len == 6 && !strncmp(name, "config", 6);
    if (args->command->config && !is_file) {
        setting = config_flag_find(&needs_value, args->command->config, name, name_len);
    }
    if (!args->command->config || (!is_file && !setting)) {
        return unknown_option(args->command, name, name_len);
    }
    if (name[name_len] == '=') {
        value = name + name_len + 1;
    } else if (needs_value) {
        REQUIRE(next, E_USAGE, "%s needs a value", word);
        value = next;
        *next_used = true;
    }
    if (is_file) {
        REQUIRE(!args->config_file, E_USAGE, "--config is given twice");
        REQUIRE(*value, E_USAGE, "--config is empty; it takes a FILE");
        args->config_file = value;
        return OK;
    }
    for (size_t i = 0; i < args->flags_count; i++) {
        REQUIRE(strcmp(args->flags[i].name, setting) != 0, E_USAGE, "--%s is given twice", setting);
    }
    args->flags[args->flags_count++] = (struct config_flag){setting, value};
    return OK;
}

static enum err add_option(struct args *args, const char *word, const char *next, bool *next_used) {
    const char *name = word + 2;
    size_t name_len = strcspn(name, "=");
    const struct option *option = find_option(args->command, name, name_len);
    if (!option) {
        return add_setting(args, word, next, next_used);
    }
    char origin[WORD_MAX + 8];
    snprintf(origin, sizeof origin, "--%s", option->name);
    const char *value = "yes";
    if (name[name_len] == '=') {
        value = name + name_len + 1;
    } else if (option->kind != OPTION_SWITCH) {
        REQUIRE(next, E_USAGE, "%s needs a value: %s %s", origin, origin, option->value);
        value = next;
        *next_used = true;
    }
    for (size_t i = 0; i < args->given_count && !option->repeats; i++) {
        REQUIRE(args->given[i].option != option, E_USAGE, "%s is given twice", origin);
    }
    TRY(check_value(option, origin, value));
    args->given[args->given_count++] = (struct given){option, value};
    return OK;
}

static enum err add_environment(struct args *args) {
    for (const struct option *o = args->command->options; o && o->kind != OPTION_END; o++) {
        const char *value = o->env ? getenv(o->env) : NULL;
        if (!value || args_count(args, o->name) > 0) {
            continue;
        }
        if (value[0] == '\0' && o->kind != OPTION_SWITCH) {
            continue; /* set to nothing is not set */
        }
        TRY(check_value(o, o->env, value));
        args->given[args->given_count++] = (struct given){o, value};
    }
    return OK;
}

static size_t positionals_count(const struct command *command) {
    size_t count = 0;
    while (command->positionals && command->positionals[count].name) {
        count++;
    }
    return count;
}

static enum err check_words(const struct args *args) {
    const struct command *command = args->command;
    size_t count = positionals_count(command);
    bool repeats = count > 0 && command->positionals[count - 1].repeats;
    REQUIRE(args->words_count <= count || repeats, E_USAGE,
            "\"%s\" is one argument too many; `bellows %s --help` shows the order",
            args->words[least_of(count, args->words_count - 1)], command->name);
    for (size_t i = args->words_count; i < count; i++) {
        REQUIRE(command->positionals[i].fallback, E_USAGE,
                "%s is missing (%s); `bellows %s --help` shows the order",
                command->positionals[i].name, command->positionals[i].text, command->name);
    }
    for (size_t i = 0; i < args->words_count; i++) {
        REQUIRE(args->words[i][0] != '\0', E_USAGE, "%s is an empty text",
                command->positionals[least_of(i, count - 1)].name);
    }
    return OK;
}

enum err args_parse(struct args **out, bool *help_wanted, const struct command *command, int argc,
                    char **argv) {
    *help_wanted = false;
    size_t options_count = 0;
    for (const struct option *o = command->options; o && o->kind != OPTION_END; o++) {
        options_count++;
    }
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            *help_wanted = true;
            return OK;
        }
    }
    REQUIRE(argc <= ARGS_MAX, E_USAGE, "%d arguments, at most %d are taken", argc, ARGS_MAX);
    AUTO(args_free) struct args *args = NULL;
    TRY(mem_new(&args, 1, sizeof *args));
    args->command = command;
    TRY(mem_new(&args->given, (size_t)argc + options_count + 1, sizeof *args->given));
    TRY(mem_new(&args->words, (size_t)argc + 1, sizeof *args->words));
    TRY(mem_new(&args->flags, (size_t)argc + 1, sizeof *args->flags));
    bool options_over = false;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (!options_over && !strcmp(word, "--")) {
            options_over = true;
        } else if (!options_over && !strncmp(word, "--", 2)) {
            bool next_used = false;
            TRY(add_option(args, word, i + 1 < argc ? argv[i + 1] : NULL, &next_used));
            i += next_used;
        } else if (!options_over && word[0] == '-' && word[1] != '\0') {
            FAIL(E_USAGE, "unknown option %s; options have two dashes, and `--` ends them", word);
        } else {
            args->words[args->words_count++] = word;
        }
    }
    TRY(add_environment(args));
    TRY(check_words(args));
    *out = TAKE(args);
    return OK;
}

void args_free(struct args **args) {
    if (*args) {
        mem_free((*args)->given);
        mem_free((*args)->words);
        mem_free((*args)->flags);
        mem_free(*args);
        *args = NULL;
    }
}

const struct command *args_command(const struct args *args) {
    return args->command;
}

bool args_has(const struct args *args, const char *name) {
    return find_option(args->command, name, strlen(name)) != NULL;
}

size_t args_count(const struct args *args, const char *name) {
    ASSERT(find_option(args->command, name, strlen(name)));
    size_t count = 0;
    for (size_t i = 0; i < args->given_count; i++) {
        count += !strcmp(args->given[i].option->name, name);
    }
    return count;
}

const char *args_nth(const struct args *args, const char *name, size_t i) {
    for (size_t k = 0; k < args->given_count; k++) {
        if (!strcmp(args->given[k].option->name, name) && i-- == 0) {
            return args->given[k].value;
        }
    }
    assert_fail("args_nth past args_count", __FILE__, __LINE__);
}

const char *args_text(const struct args *args, const char *name) {
    const struct option *option = find_option(args->command, name, strlen(name));
    ASSERT(option);
    size_t count = args_count(args, name);
    return count > 0 ? args_nth(args, name, count - 1) : option->fallback;
}

bool args_switch(const struct args *args, const char *name) {
    const char *value = args_text(args, name);
    bool on = false;
    return value && switch_word(&on, value) && on;
}

uint64_t args_number(const struct args *args, const char *name, uint64_t if_absent) {
    const char *value = args_text(args, name);
    uint64_t number = if_absent;
    ASSERT(!value || number_of(&number, value));
    return number;
}

const char *args_positional(const struct args *args, const char *name) {
    for (size_t i = 0; i < positionals_count(args->command); i++) {
        const struct positional *p = &args->command->positionals[i];
        if (!strcmp(p->name, name)) {
            return i < args->words_count ? args->words[i] : p->fallback;
        }
    }
    assert_fail("args_positional of a name that is in no table", __FILE__, __LINE__);
}

size_t args_rest_count(const struct args *args) {
    size_t count = positionals_count(args->command);
    ASSERT(count > 0);
    return args->words_count >= count ? args->words_count - count + 1 : 0;
}

const char *args_rest(const struct args *args, size_t i) {
    ASSERT(i < args_rest_count(args));
    return args->words[positionals_count(args->command) - 1 + i];
}

enum err args_spares(const char *output, const char *input, const char *order) {
    bool stream = !strcmp(output, "-") || !strcmp(input, "-");
    REQUIRE(stream || !file_same(input, output), E_USAGE,
            "output %s is also an input; the order is %s", output, order);
    return OK;
}

enum err args_config(struct config *out, const struct args *args) {
    const char *file = args->config_file ? args->config_file : getenv("BELLOWS_CONFIG");
    struct config_sources from = {.file = file && *file ? file : NULL,
                                  .environment = environ,
                                  .flags = args->flags,
                                  .flags_count = args->flags_count};
    return config_load(out, args->command->config, &from);
}

void args_reported(struct args *args) {
    args->reported = true;
}

bool args_is_reported(const struct args *args) {
    return args->reported;
}

static void print_row(const char *name, const char *text, const char *fallback, const char *env) {
    printf("  %-28s %s", name, text);
    if (fallback) {
        printf(" [%s]", fallback);
    }
    if (env) {
        printf(" ($%s)", env);
    }
    putchar('\n');
}

void args_print_help(const struct command *command) {
    printf("bellows %s: %s\n\nusage: bellows %s", command->name, command->sentence, command->name);
    size_t count = positionals_count(command);
    for (size_t i = 0; i < count; i++) {
        const struct positional *p = &command->positionals[i];
        printf(p->fallback ? " [%s%s]" : " %s%s", p->name, p->repeats ? "..." : "");
    }
    puts(" [options]");
    for (size_t i = 0; i < count; i++) {
        if (i == 0) {
            putchar('\n');
        }
        print_row(command->positionals[i].name, command->positionals[i].text,
                  command->positionals[i].fallback, NULL);
    }
    puts("\noptions:");
    for (const struct option *o = command->options; o && o->kind != OPTION_END; o++) {
        char name[96];
        snprintf(name, sizeof name, "--%s%s%s", o->name, o->value ? " " : "",
                 o->value ? o->value : "");
        print_row(name, o->text, o->fallback, o->env);
    }
    if (command->config) {
        struct text settings = {0};
        config_help(&settings, command->config);
        fputs(settings.failed || !settings.ptr ? "" : settings.ptr, stdout);
        text_free(&settings);
        print_row("--config FILE", "Settings, as name = value lines.", NULL, "BELLOWS_CONFIG");
    }
    print_row("--help", "Prints this page.", NULL, NULL);
    if (command->notes) {
        printf("\n%s\n", command->notes);
    }
}

static void describe(struct text *out, const char *before, const char *name, const char *value) {
    text_addf(out, "%s\"%s\": ", before, name);
    if (value) {
        text_add_json_string(out, value);
    } else {
        text_add(out, "null");
    }
}

void args_describe_json(struct text *out, const struct command *command) {
    static const char *const kinds[] = {"", "switch", "text", "choice", "number"};
    const char *settings[NAMES_MAX];
    describe(out, "{", "name", command->name);
    describe(out, ", ", "text", command->sentence);
    describe(out, ", ", "notes", command->notes);
    text_add(out, ",\n \"positionals\": [");
    for (size_t i = 0; i < positionals_count(command); i++) {
        const struct positional *p = &command->positionals[i];
        describe(out, i ? ",\n  {" : "\n  {", "name", p->name);
        describe(out, ", ", "text", p->text);
        describe(out, ", ", "fallback", p->fallback);
        text_addf(out, ", \"repeats\": %s}", p->repeats ? "true" : "false");
    }
    text_add(out, "],\n \"options\": [");
    for (const struct option *o = command->options; o && o->kind != OPTION_END; o++) {
        describe(out, o != command->options ? ",\n  {" : "\n  {", "name", o->name);
        describe(out, ", ", "kind", kinds[o->kind]);
        describe(out, ", ", "value", o->value);
        describe(out, ", ", "text", o->text);
        describe(out, ", ", "fallback", o->fallback);
        describe(out, ", ", "variable", o->env);
        text_addf(out, ", \"repeats\": %s}", o->repeats ? "true" : "false");
    }
    text_add(out, "],\n \"settings\": [");
    size_t count = command->config ? config_flag_names(settings, NAMES_MAX, command->config) : 0;
    for (size_t i = 0; i < count; i++) {
        text_addf(out, "%s\"%s\"", i ? ", " : "", settings[i]);
    }
    text_add(out, "]}");
}
