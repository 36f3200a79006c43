/* One call, one line: nothing in a value can add a line or a field of its own. */
#include "node/base/log.h"
#include "node/base/clock.h"
#include "node/base/json.h"
#include "node/base/mem.h"
#include "tests/check/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char captured[1 << 20];
static int kept_fd = -1, pipe_ends[2];

static void capture(void) {
    CHECK_EQ(0, pipe2(pipe_ends, O_NONBLOCK));
    kept_fd = dup(STDERR_FILENO);
    dup2(pipe_ends[1], STDERR_FILENO);
    close(pipe_ends[1]);
}

static const char *captured_text(void) {
    dup2(kept_fd, STDERR_FILENO);
    close(kept_fd);
    size_t len = 0;
    for (ssize_t n; (n = read(pipe_ends[0], captured + len, sizeof captured - 1 - len)) > 0;) {
        len += (size_t)n;
    }
    close(pipe_ends[0]);
    captured[len] = '\0';
    return captured;
}

static size_t lines_count(const char *text) {
    size_t count = 0;
    for (; *text; text++) {
        count += *text == '\n';
    }
    return count;
}

static void claim_line(void) {
    log_setup(LOG_INFO, false);
    log_context("node=w1 gpu=0");
    capture();
    log_info("job.done", "job=%s prove_ns=%d", "j-1", 7);
    log_debug("job.detail", "x=1");
    log_context("");
    log_info("node.started", "%s", "");
    const char *text = captured_text();
    CHECK_EQ(2, lines_count(text));
    CHECK(!strncmp(text, "job.done job=j-1 prove_ns=7 node=w1 gpu=0 level=info ts=20", 58));
    CHECK_HAS(text, "\nnode.started level=info ts=");
}

static void claim_injection(void) {
    char quoted[64];
    log_setup(LOG_INFO, false);
    capture();
    log_info("job.done", "job=%s", "x\njob.done job=forged");
    log_info("job.done", "job=%s", log_quote(quoted, sizeof quoted, "y\r\nlevel=error \x1b[31m\""));
    const char *text = captured_text();
    CHECK_EQ(2, lines_count(text));
    CHECK_HAS(text, "job=x\\njob.done");
    CHECK_HAS(text, "job=\"y\\r\\nlevel=error \\x1b[31m\\\"\" level=info");
    for (const char *c = text; *c; c++) {
        CHECK(*c == '\n' || (unsigned char)*c >= 0x20);
    }
}

static void claim_quote(void) {
    char out[32];
    CHECK_STR("plain-value_1", log_quote(out, sizeof out, "plain-value_1"));
    CHECK_STR("\"\"", log_quote(out, sizeof out, ""));
    CHECK_STR("\"a b\"", log_quote(out, sizeof out, "a b"));
    CHECK_STR("\"a=b\"", log_quote(out, sizeof out, "a=b"));
    CHECK_STR("\"a\\\"b\\\\c\"", log_quote(out, sizeof out, "a\"b\\c"));
    CHECK_STR("\"a\\nb\"", log_quote(out, sizeof out, "a\nb"));
    CHECK_STR("für", log_quote(out, sizeof out, "für"));
    for (size_t bytes = 8; bytes < 40;
         bytes++) { /* always terminated, closed, never past the end */
        char small[48];
        memset(small, '#', sizeof small);
        log_quote(small, bytes, "ünder a \"long\" \nvalue that is cut ü");
        size_t len = strlen(small);
        CHECK(len < bytes && small[0] == '"' && small[len - 1] == '"');
        CHECK_EQ('#', small[bytes]);
    }
}

static void claim_cut(void) {
    AUTO(mem_free_ptr) char *huge = mem_alloc(20001);
    memset(huge, 'x', 20000);
    huge[20000] = '\0';
    log_setup(LOG_INFO, false);
    log_context("node=w1");
    capture();
    log_info("job.done", "job=1 text=\"%s\"", huge);
    log_context("");
    const char *text = captured_text();
    CHECK_EQ(1, lines_count(text));
    CHECK(strlen(text) <= LOG_LINE_BYTES);
    CHECK_HAS(text, "x…\" node=w1 level=info ts=");
}

static void claim_json(void) {
    char quoted[64];
    log_setup(LOG_INFO, true);
    log_context("node=w1");
    capture();
    log_warn("json.event", "job=007 prove_ns=12 rate_per_s=1.5 bad_ns=1x flag text=%s",
             log_quote(quoted, sizeof quoted, "a \"b\"\n= c"));
    log_context("");
    log_setup(LOG_INFO, false);
    const char *text = captured_text();
    CHECK_EQ(1, lines_count(text));
    AUTO(json_free) cJSON *tree = NULL;
    CHECK_OK(json_parse(&tree, bytes_of(text, strlen(text)), "line"));
    const char *value;
    uint64_t n;
    CHECK_OK(json_text_member(&value, tree, "event"));
    CHECK_STR("json.event", value);
    CHECK_OK(json_text_member(&value, tree, "job"));
    CHECK_STR("007", value);
    CHECK_OK(json_number_member(&n, tree, 0, 100, "prove_ns"));
    CHECK_EQ(12, n);
    CHECK_OK(json_text_member(&value, tree, "bad_ns"));
    CHECK_OK(json_text_member(&value, tree, "text"));
    CHECK_STR("a \"b\"\n= c", value);
    CHECK_OK(json_text_member(&value, tree, "level"));
    CHECK_STR("warn", value);
    CHECK_OK(json_text_member(&value, tree, "node"));
}

static void claim_repeats(void) {
    log_setup(LOG_INFO, false);
    clock_hold(1);
    capture();
    for (int i = 0; i < 100; i++) {
        log_warn("net.lost", "try_idx=%d", i);
        log_info("job.done", "job=%d", i); /* one line per job, always */
    }
    clock_hold(1 + LOG_REPEATS_NS);
    log_warn("net.lost", "try_idx=%d", 100);
    clock_release();
    const char *text = captured_text();
    CHECK_EQ(100 + LOG_REPEATS_MAX + 1, lines_count(text));
    CHECK_HAS(text, "net.lost try_idx=100 suppressed_count=80 level=warn");
}

static void claim_levels(void) {
    enum log_level level;
    CHECK(log_level_from_name(&level, "warn") && level == LOG_WARN);
    CHECK(!log_level_from_name(&level, "loud"));
    log_setup(LOG_ERROR, false);
    capture();
    log_warn("levels.event", "x=1");
    log_error("levels.event", "x=2");
    log_setup(LOG_INFO, false);
    const char *text = captured_text();
    CHECK_EQ(1, lines_count(text));
    CHECK_HAS(text, "x=2");
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a line is event, fields, context, level and time", claim_line},
        {"a newline in a value cannot forge a line", claim_injection},
        {"log_quote quotes what needs it and always ends in time", claim_quote},
        {"a line that is too long is cut and keeps its context", claim_cut},
        {"a JSON line is JSON and holds the same values", claim_json},
        {"repeats of a warning are counted, not shown", claim_repeats},
        {"lines below the level are not written", claim_levels},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
