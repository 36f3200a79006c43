/* A daemon's pages: where they are, when a node is ready, and how lanes' blocks reach their processes. */
#include "node/daemon/pages.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "tests/check/check.h"
#include "tests/check/command.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct pages *open_pages(const struct pages_options *options) {
    struct pages *p = NULL;
    CHECK_OK(pages_open(&p, options));
    return p;
}

static void fetch(char out[16384], const char *url, const char *path) {
    char full[200];
    snprintf(full, sizeof full, "%s%s", url, path);
    const char *argv[] = {"curl", "-sS", "--max-time", "10", full, NULL};
    if (check_command(out, 16384, NULL, argv) == 127) {
        check_skip("no curl here");
    }
}

static void claim_node(void) {
    struct pages_options o = {
        .address = "127.0.0.1:0", .fallback = PAGES_NODE_ADDRESS, .node = "w1", .blocks_count = 2};
    AUTO(pages_close) struct pages *p = open_pages(&o);
    static char page[16384];
    fetch(page, pages_url(p), "/readyz");
    CHECK_STR("none of 2 lanes is ready", page);
    struct metric_block *second = pages_block(p, 1);
    metric_set(second, METRIC_LANE_STATE, METRIC_LANE_STATE_READY, 1);
    fetch(page, pages_url(p), "/readyz");
    CHECK_STR("none of 2 lanes is ready", page); /* its process is gone */
    metric_set(second, METRIC_LANE_UP, 0, 1);
    fetch(page, pages_url(p), "/readyz");
    CHECK_STR("ready", page);
    fetch(page, pages_url(p), "/metrics");
    CHECK_HAS(page, "bellows_ledger_seconds_total{node=\"w1\",gpu=\"0\",account=\"wait.no_work\"} "
                    "0.000000000\n");
    CHECK_HAS(page, "bellows_ledger_seconds_total{node=\"w1\",gpu=\"1\",account=\"wait.no_work\"} "
                    "0.000000000\n");
}

static bool never(void *ctx, char reason[EXPOSE_REASON_BYTES]) {
    snprintf(reason, EXPOSE_REASON_BYTES, "%s", (const char *)ctx);
    return false;
}

static void claim_coordinator(void) {
    struct pages_options o = {.address = "127.0.0.1:0",
                              .fallback = PAGES_COORDINATOR_ADDRESS,
                              .blocks_count = 1,
                              .ready = never,
                              .ready_ctx = (void *)(uintptr_t) "it reads the records"};
    AUTO(pages_close) struct pages *p = open_pages(&o);
    static char page[16384];
    fetch(page, pages_url(p), "/readyz");
    CHECK_STR("it reads the records", page);
    metric_set(pages_block(p, 0), METRIC_JOBS_OPEN, 0, 7);
    fetch(page, pages_url(p), "/metrics");
    CHECK_HAS(page, "\nbellows_jobs_open 7\n");
}

static void claim_places(void) {
    AUTO(mem_free_ptr) char *dir = NULL;
    char file[300];
    struct bytes_mut url = {0};
    CHECK_OK(dir_make_temp(&dir, "bellows-pages"));
    snprintf(file, sizeof file, "%s/url", dir);
    struct pages_options o = {
        .address = "", .fallback = "127.0.0.1:0", .url_file = file, .node = "w"};
    AUTO(pages_close) struct pages *first = open_pages(&o);
    CHECK_OK(file_read_all(&url, file, 100));
    CHECK_MEM(pages_url(first), url.ptr, url.len);
    mem_free(url.ptr);
    CHECK_OK(dir_remove_tree(dir));
    const char *taken = pages_url(first) + strlen("http://");
    struct pages_options second = {.address = "", .fallback = taken, .node = "w"};
    AUTO(pages_close)
    struct pages *elsewhere = open_pages(&second); /* the usual port is taken: no error */
    CHECK_STR("", pages_url(elsewhere));
    struct pages *none = NULL;
    second.address = taken; /* one that was asked for is one */
    CHECK_ERR(E_IO, pages_open(&none, &second));
    second.address = "nonsense";
    CHECK_ERR(E_USAGE, pages_open(&none, &second));
    second.address = "off";
    AUTO(pages_close) struct pages *off = open_pages(&second);
    CHECK_STR("", pages_url(off));
    CHECK(!pages_block(NULL, 3));
}

static bool inherits(int fd) {
    char path[40], out[200];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const char *argv[] = {"test", "-e", path, NULL};
    return check_command(out, sizeof out, NULL, argv) == 0;
}

static void claim_descriptors(void) {
    struct pages_options o = {
        .address = "off", .fallback = PAGES_NODE_ADDRESS, .node = "w", .blocks_count = 2};
    AUTO(pages_close) struct pages *p = open_pages(&o);
    int first = pages_lend(p, 0);
    CHECK(inherits(first));
    pages_keep(p, 0);
    CHECK(!inherits(first));
    CHECK(pages_lend(p, 1) != first);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a node is ready when one of its lanes is, and shows them all", claim_node},
        {"a coordinator says itself whether it is ready", claim_coordinator},
        {"the usual port may be taken, one that was asked for may not", claim_places},
        {"a lane's process inherits its own block", claim_descriptors},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
