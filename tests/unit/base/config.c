/* Order of sources, refusals that name the place, and a sample file that is the table. */
#include "node/base/config.h"
#include "node/base/file.h"
#include "node/base/json.h"
#include "node/base/mem.h"
#include "tests/check/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *dir; /* made and removed by main */

static const char *config_file(const char *content) {
    static char path[256];
    snprintf(path, sizeof path, "%s/bellows.conf", dir);
    CHECK_OK(file_write_all(path, bytes_of(content, strlen(content))));
    return path;
}

static enum err load(struct config *out, const char *file, char *variable, const char *flag,
                     const char *value) {
    char *environment[] = {"PATH=/bin", "BELLOWS_VECTORS=/x", variable, NULL};
    struct config_flag flags[] = {{flag, value}};
    struct config_sources from = {file, environment, flags, flag ? 1 : 0};
    return config_load(out, CONFIG_NODE, &from);
}

static void refuses(const char *file, char *variable, const char *flag, const char *value,
                    const char *detail) {
    struct config c = {0};
    enum err code = load(&c, file, variable, flag, value);
    if (code == OK) {
        config_free(&c);
    }
    CHECK_MSG(code == E_USAGE, "%s: gave %s (%s)", detail, err_name(code), err_detail());
    CHECK_HAS(err_detail(), detail);
}

static void claim_defaults(void) {
    AUTO(config_free) struct config c = {0};
    struct config_sources none = {0};
    CHECK_OK(config_load(&c, CONFIG_NODE, &none));
    CHECK_STR("nats://127.0.0.1:4222", c.server);
    CHECK_STR("info", c.log_level);
    CHECK_EQ(4, c.backlog);
    CHECK_EQ(0, c.memory_bytes);
}

static void claim_order(void) {
    const char *file = config_file("# a comment\n\n backlog = 7 \r\nmemory=4MiB\nname = \"w 1\"\n");
    struct config c = {0};
    CHECK_OK(load(&c, file, NULL, NULL, NULL));
    CHECK_EQ(7, c.backlog);
    CHECK_EQ(4 << 20, c.memory_bytes);
    CHECK_STR("w 1", c.name);
    config_free(&c);
    CHECK_OK(load(&c, file, "BELLOWS_BACKLOG=8", NULL, NULL));
    CHECK_EQ(8, c.backlog);
    config_free(&c);
    static const char *const nothing[] = {
        "BELLOWS_BACKLOG=", "BELLOWS_NAME=", "BELLOWS_PLAINTEXT=", "BELLOWS_BACKEND="};
    for (size_t i = 0; i < COUNT_OF(nothing); i++) {
        CHECK_OK(load(&c, file, (char *)(uintptr_t)nothing[i], NULL, NULL));
        CHECK_EQ(7, c.backlog);
        CHECK_STR("w 1", c.name);
        CHECK_STR("auto", c.backend);
        config_free(&c);
    }
    CHECK_OK(load(&c, file, "BELLOWS_BACKLOG=8", "backlog", "9"));
    CHECK_EQ(9, c.backlog);
    AUTO(text_free) struct text shown = {0};
    config_show(&shown, &c, CONFIG_NODE);
    CHECK_HAS(shown.ptr, "# command line\nbacklog = 9\n");
    CHECK_HAS(shown.ptr, "# file\nmemory = 4MiB\n");
    CHECK_HAS(shown.ptr, "# default\nlog_level = info\n");
    config_free(&c);
}

static void claim_json(void) {
    AUTO(config_free) struct config c = {0};
    CHECK_OK(load(&c, NULL, "BELLOWS_NAME=a \"b\"", NULL, NULL));
    AUTO(text_free) struct text shown = {0};
    config_show_json(&shown, &c, CONFIG_NODE);
    AUTO(json_free) cJSON *tree = NULL;
    CHECK_OK(json_parse(&tree, text_bytes(&shown), "settings"));
    const cJSON *name;
    const char *value, *from;
    CHECK_OK(json_member(&name, tree, "name"));
    CHECK_OK(json_text_member(&value, name, "value"));
    CHECK_OK(json_text_member(&from, name, "from"));
    CHECK_STR("a \"b\"", value);
    CHECK_STR("environment", from);
}

static void claim_unknown(void) {
    refuses(config_file("\nbacklogs = 7\n"), NULL, NULL, NULL, "line 2 of ");
    CHECK_HAS(err_detail(), "no option is named backlogs; did you mean backlog?");
    refuses(NULL, "BELLOWS_SEVER=", NULL, NULL, "did you mean BELLOWS_SERVER?");
    refuses(NULL, "BELLOWS_SEVER=x", NULL, NULL, "did you mean BELLOWS_SERVER?");
    refuses(NULL, NULL, "back-log", "1", "did you mean backlog?");
    refuses(NULL, NULL, "attempts", "1", "no option is named attempts"); /* the coordinator's */
    AUTO(config_free) struct config c = {0};
    CHECK_OK(load(&c, config_file("attempts = 5\n"), NULL, NULL, NULL)); /* shared file */
}

static void claim_values(void) {
    refuses(config_file("backlog = 33\n"), NULL, NULL, NULL, "backlog is 33; allowed is 1 to 32");
    refuses(config_file("backlog = x\n"), NULL, NULL, NULL, "backlog: \"x\" does not begin");
    refuses(NULL, "BELLOWS_MEMORY=4XB", NULL, NULL, "BELLOWS_MEMORY: \"4XB\" has no unit");
    refuses(NULL, NULL, "log-level", "loud",
            "--log-level is \"loud\"; allowed is debug|info|warn|error");
    refuses(NULL, NULL, "log-level", "", "--log-level is \"\"");
    refuses(config_file("backlog 7\n"), NULL, NULL, NULL, "not of the form name = value");
    refuses(config_file("backlog = 7\nbacklog = 8\n"), NULL, NULL, NULL, "backlog is set twice");
    refuses(config_file("attempts = 0\n"), NULL, NULL, NULL, "attempts is 0"); /* not ours, wrong */
}

static void claim_hostile_file(void) {
    struct config c = {0};
    char path[300];
    snprintf(path, sizeof path, "%s/zero.conf", dir);
    CHECK_OK(file_write_all(path, bytes_of("backlog = 7\0\n", 13)));
    CHECK_ERR(E_USAGE, load(&c, path, NULL, NULL, NULL));
    CHECK_HAS(err_detail(), "zero byte");
    refuses(config_file("\xef\xbb\xbf"
                        "backlog = 7\n"),
            NULL, NULL, NULL, "byte-order mark");
    CHECK_ERR(E_IO, load(&c, "/nonexistent.conf", NULL, NULL, NULL));
    CHECK_ERR(E_FORMAT, load(&c, "/dev/zero", NULL, NULL, NULL));
    CHECK(!c.server);
}

static void claim_flags(void) {
    bool needs_value = false;
    CHECK_STR("log-level", config_flag_find(&needs_value, CONFIG_NODE, "log-level=x", 9));
    CHECK(needs_value);
    CHECK(!config_flag_find(&needs_value, CONFIG_NODE, "log_level", 9));
    CHECK(!config_flag_find(&needs_value, CONFIG_NODE, "attempts", 8));
    CHECK(config_flag_find(&needs_value, CONFIG_COORDINATOR, "attempts", 8));
    AUTO(text_free) struct text help = {0};
    config_help(&help, CONFIG_NODE);
    CHECK_HAS(help.ptr, "  --backlog N                  Jobs that a lane holds at once. [4] "
                        "($BELLOWS_BACKLOG)\n");
    CHECK(!strstr(help.ptr, "--attempts"));
}

/* What a process hands to its child is what the child then has. */
static void claim_child(void) {
    AUTO(config_free) struct config c = {0}, again = {0};
    AUTO(text_free) struct text words = {0};
    struct config_flag flags[32];
    CHECK_OK(load(&c, config_file("memory = 3GiB\nkeep = a,b\nkey_tables = off\ndrain = 1500ms\n"),
                  NULL, "log-level", "warn"));
    size_t count = config_flags(&words, &c, CONFIG_NODE | CONFIG_DEV);
    CHECK(count > 8 && count <= COUNT_OF(flags));
    char *at = words.ptr;
    for (size_t i = 0; i < count; i++) {
        char *end = at + strlen(at), *equals = strchr(at, '=');
        CHECK(!strncmp(at, "--", 2) && equals);
        *equals = '\0';
        flags[i] = (struct config_flag){at + 2, equals + 1};
        at = end + 1;
    }
    CHECK_EQ(words.len, (size_t)(at - words.ptr));
    struct config_sources from = {.flags = flags, .flags_count = count};
    CHECK_OK(config_load(&again, CONFIG_NODE, &from));
    CHECK_EQ(UINT64_C(3) << 30, again.memory_bytes);
    CHECK_EQ(1500000000, again.drain_ns);
    CHECK_STR("a,b", again.keep);
    CHECK_STR("warn", again.log_level);
    CHECK_STR("auto", again.key_tables); /* no setting of dev's */
}

static void claim_sample(void) {
    AUTO(text_free) struct text sample = {0};
    config_sample(&sample);
    CHECK_OK(text_done(&sample));
    char path[512];
    const char *root = getenv("BELLOWS_ROOT");
    snprintf(path, sizeof path, "%s/deploy/config/bellows.conf", root ? root : ".");
    if (getenv("BELLOWS_WRITE_SAMPLE")) {
        CHECK_OK(file_write_all(path, text_bytes(&sample)));
    }
    struct bytes_mut kept;
    CHECK_OK(file_read_all(&kept, path, 1 << 20));
    bool same = kept.len == sample.len && !memcmp(kept.ptr, sample.ptr, kept.len);
    mem_free(kept.ptr);
    CHECK_MSG(same, "deploy/config/bellows.conf is not the table's; write it anew with "
                    "BELLOWS_WRITE_SAMPLE=1 ./test unit-base-config");
    AUTO(config_free) struct config c = {0};
    CHECK_OK(load(&c, path, NULL, NULL, NULL)); /* as it is, and with every line in force */
    for (char *at = sample.ptr; (at = strstr(at, "\n#")) != NULL; at++) {
        if (at[2] != ' ') {
            at[1] = ' ';
        }
    }
    AUTO(config_free) struct config all = {0};
    CHECK_OK(load(&all, config_file(sample.ptr), NULL, NULL, NULL));
    CHECK_STR(c.server, all.server);
}

static enum err load_all(void *ctx) {
    AUTO(config_free) struct config c = {0};
    return load(&c, ctx, "BELLOWS_SERVER=nats://x", "name", "w2");
}

static void claim_allocation(void) {
    char path[256];
    snprintf(path, sizeof path, "%s", config_file("cache = /x\nname = w1\n"));
    CHECK(check_allocations(load_all, path) > 10);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"without sources every option has its default", claim_defaults},
        {"file beats default, environment beats file unless empty, flag beats environment",
         claim_order},
        {"settings are shown as JSON with where they come from", claim_json},
        {"an unknown name is refused with the nearest known one", claim_unknown},
        {"a value out of range is refused with its place and what is allowed", claim_values},
        {"a file that is no text, no file or endless is refused", claim_hostile_file},
        {"a command takes its own flags only, and --help lists them", claim_flags},
        {"a child gets the settings that it shares as flags", claim_child},
        {"the sample file in deploy is the table, and loads", claim_sample},
        {"a failed allocation is E_LIMIT", claim_allocation},
    };
    return check_main_in(&dir, argc, argv, claims, COUNT_OF(claims));
}
