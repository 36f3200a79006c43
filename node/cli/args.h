/* Command lines: one table per command, from which parsing, --help and suggestions all come.
 *
 * A command is a struct command in its own cmd_*.c and one line in main.c's list. Names may be two words ("key
 * inspect"). Options are --name VALUE or --name=VALUE; switches also take =yes and =no. An option may name an environment
 * variable that supplies its value when the command line does not; there 0, no, false, off and the empty text mean off.
 *
 * Threads  one.
 * Errors   E_USAGE with the nearest name that exists.
 */
#pragma once
#include "node/base/config.h"

enum option_kind {
    OPTION_END,    /* ends a table */
    OPTION_SWITCH, /* on or off */
    OPTION_TEXT,   /* any text: a path, a URL, a name */
    OPTION_CHOICE, /* one of the words of `value`, separated by | */
    OPTION_NUMBER  /* a whole number in [least, most] */
};

struct option {
    enum option_kind kind;
    const char *name; /* without the dashes */
    const char
        *value; /* what stands for the value in --help: "N", "auto|cuda|cpu"; NULL for a switch */
    const char *text;     /* one sentence for --help */
    const char *fallback; /* value when absent, shown in --help; NULL: none */
    const char *env;      /* environment variable behind it; NULL: none */
    uint64_t least, most; /* OPTION_NUMBER */
    bool repeats;         /* may be given several times: args_nth */
};
#define OPTIONS_END                                                                                \
    { .kind = OPTION_END }

struct positional {
    const char *name;     /* "KEY"; NULL ends a table */
    const char *fallback; /* value when absent; NULL: must be given */
    const char *text;     /* one sentence for --help */
    bool repeats;         /* takes all that is left, at least one; the last of its table */
};

struct args; /* opaque */

struct command {
    const char *name;     /* one or two words, lower case */
    const char *sentence; /* what it does, for the list of commands */
    const struct positional *positionals;
    const struct option *options; /* --help is added to all of them */
    unsigned
        config; /* enum config_command: also takes those rows of config_table.h, and --config FILE */
    const char *notes; /* printed after the options: exit codes, examples; may be NULL */
    /* The error is printed by main as "bellows NAME: detail" (and as JSON when there is a switch "json" and it is on),
     * and its exit code is err_exit_code's, unless args_reported() was called. */
    FALLIBLE (*run)(struct args *args);
};

/* Parses argv[0 … argc-1], the words after the command's name. *help_wanted: --help was among them, nothing else was
 * checked. On OK *out is the caller's: args_free. */
FALLIBLE args_parse(struct args **out, bool *help_wanted, const struct command *command, int argc,
                    char **argv);
void args_free(struct args **args);
const struct command *args_command(const struct args *args);

/* `name` must be in the command's tables (asserted). All texts are lent from argv, the environment or the tables. */
bool args_has(const struct args *args,
              const char *name); /* is there such an option? The others assert it */
bool args_switch(const struct args *args, const char *name);
const char *args_text(const struct args *args,
                      const char *name); /* NULL: absent without fallback */
uint64_t args_number(const struct args *args, const char *name, uint64_t if_absent);
size_t args_count(const struct args *args, const char *name);              /* times given */
const char *args_nth(const struct args *args, const char *name, size_t i); /* i < args_count */
const char *args_positional(const struct args *args, const char *name);
size_t args_rest_count(const struct args *args); /* values of the repeating positional */
const char *args_rest(const struct args *args, size_t i);
/* E_USAGE when `output` would be written over `input`; `order` is that of the command's arguments. */
FALLIBLE args_spares(const char *output, const char *input, const char *order);

/* The settings of a command with `config`: defaults, --config or $BELLOWS_CONFIG, environment, flags. config_free. */
FALLIBLE args_config(struct config *out, const struct args *args);

/* The command has said what there was to say; main only turns the code into an exit code. */
void args_reported(struct args *args);
bool args_is_reported(const struct args *args);

/* on/off words of switches and variables: 1 yes true on, and 0 no false off and "". False when it is neither. */
bool switch_word(bool *out, const char *word);
/* The command's --help text, to standard output. */
void args_print_help(const struct command *command);
/* The command's tables as a JSON object, settings by their flags: what man pages and completions are made of. */
void args_describe_json(struct text *out, const struct command *command);
