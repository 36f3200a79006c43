/* The cache folder: found by the environment, kept whole, done without where it cannot be written. */
#include "node/key/remembered.h"
#include "tests/check/check.h"

#include "node/base/file.h"
#include "node/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void claim_put_then_get(void) {
    char *folder = NULL, line[REMEMBERED_BYTES_MAX];
    CHECK_OK(dir_make_temp(&folder, "bellows-remembered"));
    setenv("BELLOWS_CACHE", folder, 1);
    CHECK(!remembered_get(line, "kind", "name"));
    remembered_put("kind", "name", "first\n");
    CHECK(remembered_get(line, "kind", "name"));
    CHECK_STR("first\n", line);
    remembered_put("kind", "name", "second\n");
    CHECK(remembered_get(line, "kind", "name"));
    CHECK_STR("second\n", line);
    CHECK(!remembered_get(line, "other", "name"));
    CHECK_OK(dir_remove_tree(folder));
    CHECK(!remembered_get(line, "kind", "name"));
    mem_free(folder);
}

static void claim_order_of_folders(void) {
    char *folder = NULL, line[REMEMBERED_BYTES_MAX], path[600];
    CHECK_OK(dir_make_temp(&folder, "bellows-remembered"));
    unsetenv("BELLOWS_CACHE");
    setenv("HOME", folder, 1);
    unsetenv("XDG_CACHE_HOME");
    remembered_put("k", "n", "home");
    snprintf(path, sizeof path, "%s/.cache/bellows/k/n", folder);
    CHECK(file_exists(path));
    snprintf(path, sizeof path, "%s/xdg", folder);
    setenv("XDG_CACHE_HOME", path, 1);
    CHECK(!remembered_get(line, "k", "n"));
    remembered_put("k", "n", "xdg");
    snprintf(path, sizeof path, "%s/xdg/bellows/k/n", folder);
    CHECK(file_exists(path));
    setenv("XDG_CACHE_HOME", "relative", 1); /* not allowed by its own standard: ignored */
    CHECK(remembered_get(line, "k", "n"));
    CHECK_STR("home", line);
    CHECK_OK(dir_remove_tree(folder));
    mem_free(folder);
}

static void claim_unwritable_is_quiet(void) {
    char line[REMEMBERED_BYTES_MAX];
    static const char *const folders[] = {"/dev/null/x", "/proc/x"};
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        setenv("BELLOWS_CACHE", folders[i], 1);
        remembered_put("k", "n", "x");
        CHECK(!remembered_get(line, "k", "n"));
    }
    char *longest = mem_alloc(9000);
    memset(longest, 'a', 8999);
    longest[0] = '/';
    longest[8999] = '\0';
    setenv("BELLOWS_CACHE", longest, 1);
    remembered_put("k", "n", "x");
    CHECK(!remembered_get(line, "k", "n"));
    mem_free(longest);
    unsetenv("BELLOWS_CACHE");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    remembered_put("k", "n", "x");
    CHECK(!remembered_get(line, "k", "n"));
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"remembered: what was put is got, until the folder goes", claim_put_then_get},
        {"remembered: $BELLOWS_CACHE, then $XDG_CACHE_HOME, then ~/.cache", claim_order_of_folders},
        {"remembered: a folder that cannot be written costs nothing else",
         claim_unwritable_is_quiet},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
