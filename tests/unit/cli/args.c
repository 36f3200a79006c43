/* Parsing from tables: every kind of option, the environment behind it, and switches that mean what they say. */
#include "node/cli/args.h"
#include "node/base/mem.h"
#include "tests/check/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum err run_nothing(struct args *args) {
    (void)args;
    return OK;
}

static const struct positional positionals[] = {
    {.name = "KEY", .fallback = "default.zkey", .text = "a key"},
    {.name = "FILE", .fallback = "files", .text = "files", .repeats = true},
    {0},
};
static const struct option options[] = {
    {.kind = OPTION_SWITCH, .name = "json", .env = "BELLOWS_TEST_JSON", .text = "Switch."},
    {.kind = OPTION_NUMBER,
     .name = "threads",
     .value = "N",
     .env = "BELLOWS_TEST_THREADS",
     .least = 1,
     .most = 64,
     .text = "Number."},
    {.kind = OPTION_CHOICE,
     .name = "backend",
     .value = "auto|cuda|cpu",
     .fallback = "auto",
     .env = "BELLOWS_TEST_BACKEND",
     .text = "Choice."},
    {.kind = OPTION_TEXT, .name = "server", .value = "URL", .repeats = true, .text = "Text."},
    OPTIONS_END,
};
static const struct command command = {.name = "test",
                                       .sentence = "tests",
                                       .positionals = positionals,
                                       .options = options,
                                       .run = run_nothing};

static enum err parse(struct args **out, const char *line) {
    static char text[512];
    static char *words[32];
    int count = 0;
    bool help = false;
    strncpy(text, line, sizeof text - 1);
    for (char *save = NULL, *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        words[count++] = w;
    }
    return args_parse(out, &help, &command, count, words);
}

static void claim_order(void) {
    AUTO(args_free) struct args *args = NULL;
    CHECK_OK(parse(&args, "k.zkey --threads 8 a --json b --server=x --server y -- --c"));
    CHECK_STR("k.zkey", args_positional(args, "KEY"));
    CHECK_EQ(3, args_rest_count(args));
    CHECK_STR("a", args_rest(args, 0));
    CHECK_STR("b", args_rest(args, 1));
    CHECK_STR("--c", args_rest(args, 2));
    CHECK_EQ(8, args_number(args, "threads", 0));
    CHECK(args_switch(args, "json"));
    CHECK_EQ(2, args_count(args, "server"));
    CHECK_STR("x", args_nth(args, "server", 0));
    CHECK_STR("y", args_nth(args, "server", 1));
    CHECK_STR("auto", args_text(args, "backend"));
}

static void claim_absent(void) {
    AUTO(args_free) struct args *args = NULL;
    CHECK_OK(parse(&args, ""));
    CHECK_STR("default.zkey", args_positional(args, "KEY"));
    CHECK_EQ(0, args_rest_count(args));
    CHECK_EQ(5, args_number(args, "threads", 5));
    CHECK(!args_switch(args, "json"));
    CHECK(!args_text(args, "server"));
    CHECK(args_has(args, "json") && !args_has(args, "nothing"));
}

/* 0 and its relatives mean off, whoever says it; anything unclear is refused. */
static void claim_switch_words(void) {
    static const struct {
        const char *word;
        int on; /* -1: refused */
    } rows[] = {{"", 0},   {"0", 0},   {"no", 0},       {"false", 0}, {"FALSE", 0}, {"off", 0},
                {"1", 1},  {"yes", 1}, {"true", 1},     {"True", 1},  {"on", 1},    {"2", -1},
                {" ", -1}, {"y", -1},  {"enabled", -1}, {"0 ", -1},   {"null", -1}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        AUTO(args_free) struct args *args = NULL;
        setenv("BELLOWS_TEST_JSON", rows[i].word, 1);
        if (rows[i].on < 0) {
            CHECK_ERR(E_USAGE, parse(&args, "a"));
            CHECK_HAS(err_detail(), "BELLOWS_TEST_JSON");
        } else {
            CHECK_OK(parse(&args, "a"));
            CHECK_EQ(rows[i].on, args_switch(args, "json"));
        }
        unsetenv("BELLOWS_TEST_JSON");
        if (!strchr(rows[i].word, ' ')) {
            char line[64];
            AUTO(args_free) struct args *given = NULL;
            snprintf(line, sizeof line, "--json=%s", rows[i].word);
            enum err code = parse(&given, line);
            CHECK_EQ(rows[i].on < 0 ? E_USAGE : OK, code);
            CHECK(code != OK || args_switch(given, "json") == rows[i].on);
        }
    }
}

static void claim_environment(void) {
    setenv("BELLOWS_TEST_THREADS", "7", 1);
    setenv("BELLOWS_TEST_BACKEND", "", 1);
    AUTO(args_free) struct args *args = NULL;
    CHECK_OK(parse(&args, "a"));
    CHECK_EQ(7, args_number(args, "threads", 1));
    CHECK_STR("auto", args_text(args, "backend"));
    args_free(&args);
    CHECK_OK(parse(&args, "a --threads 3"));
    CHECK_EQ(3, args_number(args, "threads", 1));
    args_free(&args);
    setenv("BELLOWS_TEST_THREADS", "many", 1);
    CHECK_ERR(E_USAGE, parse(&args, "a"));
    CHECK_HAS(err_detail(), "BELLOWS_TEST_THREADS");
    CHECK_OK(parse(&args, "a --threads 3")); /* overridden, so never looked at */
    unsetenv("BELLOWS_TEST_THREADS");
    unsetenv("BELLOWS_TEST_BACKEND");
}

static void claim_refusals(void) {
    static const struct {
        const char *line, *needle;
    } rows[] = {
        {"--threads", "needs a value"},
        {"--threads=", "whole number"},
        {"--threads 65", "from 1 to 64"},
        {"--threads 1x", "whole number"},
        {"--threads -1", "whole number"},
        {"--threads +1", "whole number"},
        {"--threads 18446744073709551617", "whole number"},
        {"--threads 2 --threads 2", "twice"},
        {"--backend cud", "auto|cuda|cpu"},
        {"--backend cuda|cpu", "auto|cuda|cpu"},
        {"--backend=", "auto|cuda|cpu"},
        {"--server=", "empty"},
        {"--servr x", "--server"},
        {"--jso", "--json"},
        {"-x", "two dashes"},
        {"--", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        AUTO(args_free) struct args *args = NULL;
        if (!rows[i].needle) {
            CHECK_OK(parse(&args, rows[i].line));
            continue;
        }
        CHECK_ERR(E_USAGE, parse(&args, rows[i].line));
        CHECK_HAS(err_detail(), rows[i].needle);
        CHECK(!args);
    }
}

static enum err parse_once(void *ctx) {
    (void)ctx;
    AUTO(args_free) struct args *args = NULL;
    return parse(&args, "k.zkey --threads 8 a b --server x");
}

static void claim_memory(void) {
    CHECK(check_allocations(parse_once, NULL) > 0);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"options, positionals and what follows -- keep their order", claim_order},
        {"what is absent has its fallback", claim_absent},
        {"0, no, false, off and nothing mean off, on the line and in the environment",
         claim_switch_words},
        {"the command line wins over the environment", claim_environment},
        {"what cannot be meant is refused by name", claim_refusals},
        {"parsing survives every failed allocation", claim_memory},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
