/* A folder per kind and a file per fact. Reading is by open and read alone, since a missing file is the usual case and
 * not an error to put into words; writing goes through the temporary name and rename of file_write_all. */
#include "node/key/remembered.h"

#include "node/base/file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool cache_path(char out[PATH_MAX], const char *kind, const char *name) {
    const char *own = getenv("BELLOWS_CACHE"), *xdg = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    int len = -1;
    const char *slash = name[0] ? "/" : "";
    if (own && own[0]) {
        len = snprintf(out, PATH_MAX, "%s/%s%s%s", own, kind, slash, name);
    } else if (xdg && xdg[0] == '/') {
        len = snprintf(out, PATH_MAX, "%s/bellows/%s%s%s", xdg, kind, slash, name);
    } else if (home && home[0] == '/') {
        len = snprintf(out, PATH_MAX, "%s/.cache/bellows/%s%s%s", home, kind, slash, name);
    }
    return len > 0 && len < PATH_MAX;
}

bool remembered_get(char out[REMEMBERED_BYTES_MAX], const char *kind, const char *name) {
    char path[PATH_MAX];
    if (!cache_path(path, kind, name)) {
        return false;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t got = read(fd, out, REMEMBERED_BYTES_MAX - 1);
    close(fd);
    if (got <= 0) {
        return false;
    }
    out[got] = '\0';
    return true;
}

void remembered_put(const char *kind, const char *name, const char *text) {
    char folder[PATH_MAX], path[PATH_MAX];
    if (!cache_path(folder, kind, "") || !cache_path(path, kind, name)) {
        return;
    }
    if (dir_make(folder) == OK) {
        IGNORE(file_write_all(path, bytes_of(text, strlen(text))));
    }
}
