/* What is remembered of a device's strikes, and for how long; a file that says nothing is no strike. */
#include "node/daemon/strikes.h"

#include "node/base/clock.h"
#include "node/base/file.h"
#include "tests/check/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FENCE = 3 };
#define DAY_MS UINT64_C(86400000)

static char *dir;

static const char *path_of(const char *device) {
    static char path[600];
    snprintf(path, sizeof path, "%s/strikes/%s", dir, device);
    return path;
}

static struct strikes load(const char *device) {
    struct strikes s = {.count = 77};
    CHECK_OK(strikes_load(&s, dir, device, FENCE));
    return s;
}

static void write_text(const char *device, const void *text, size_t len) {
    char folder[600];
    snprintf(folder, sizeof folder, "%s/strikes", dir);
    CHECK_OK(dir_make(folder));
    CHECK_OK(file_write_all(path_of(device), bytes_of(text, len)));
}

static void write_line(const char *device, unsigned count, uint64_t age_ms) {
    char line[100];
    int len = snprintf(line, sizeof line, "%u %" PRIu64 " it was hot\n", count,
                       clock_unix_ns() / 1000000 - age_ms);
    write_text(device, line, (size_t)len);
}

static void claim_kept(void) {
    struct strikes s = {.count = 2, .reason = "the sums differ"};
    CHECK_EQ(0, load("GPU-a").count);
    CHECK_OK(strikes_store(&s, dir, "GPU-a"));
    s = load("GPU-a");
    CHECK_EQ(2, s.count);
    CHECK_STR("the sums differ", s.reason);
    CHECK_EQ(0, load("GPU-b").count);
    s.count = 0;
    CHECK_OK(strikes_store(&s, dir, "GPU-a"));
    CHECK(!file_exists(path_of("GPU-a")));
    CHECK_EQ(0, load("GPU-a").count);
    CHECK_OK(strikes_store(&(struct strikes){.count = 1}, dir, NULL));
    CHECK_OK(strikes_load(&s, dir, NULL, FENCE));
    CHECK_EQ(0, s.count);
    CHECK_ERR(E_FORMAT, strikes_load(&s, dir, "../else", FENCE));
}

static void claim_forgotten(void) {
    write_line("GPU-a", FENCE - 1, DAY_MS - 60000);
    CHECK_EQ(FENCE - 1, load("GPU-a").count);
    write_line("GPU-a", FENCE - 1, DAY_MS + 60000);
    CHECK_EQ(0, load("GPU-a").count);
    write_line("GPU-a", FENCE, 100 * DAY_MS);
    struct strikes s = load("GPU-a");
    CHECK_EQ(FENCE, s.count);
    CHECK_STR("it was hot", s.reason);
}

static void claim_damaged(void) {
    static const char *const texts[] = {"", "\n", "many", "3", "3 soon", "99999999999 1 x"};
    char longer[4096];
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        write_text("GPU-a", texts[i], strlen(texts[i]));
        CHECK_MSG(load("GPU-a").count == 0, "\"%s\"", texts[i]);
    }
    memset(longer, '3', sizeof longer);
    write_text("GPU-a", longer, sizeof longer);
    CHECK_EQ(0, load("GPU-a").count);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"strikes are kept by device until they are taken back", claim_kept},
        {"fewer than fence a lane are forgotten after a day, as many stay", claim_forgotten},
        {"a file that cannot be read as strikes counts as none", claim_damaged},
    };
    return check_main_in(&dir, argc, argv, claims, COUNT_OF(claims));
}
