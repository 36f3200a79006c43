/* One line: count, time of the last in milliseconds since 1970, and why. */
#include "node/daemon/strikes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/base/clock.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "proto/subjects.h"

static const uint64_t FORGET_MS = UINT64_C(86400000);
enum { PATH_BYTES = 4400, LINE_BYTES = ERR_DETAIL_BYTES + 64 };

static enum err path_of(char out[PATH_BYTES], const char *cache_dir, const char *device) {
    TRY(id_check(device, "device"));
    int len = snprintf(out, PATH_BYTES, "%s/strikes/%s", cache_dir, device);
    REQUIRE(len > 0 && len < PATH_BYTES, E_LIMIT, "the path of the cache, %s, is too long",
            cache_dir);
    return OK;
}

static void read_line(struct strikes *out, char *line, uint32_t strikes_max) {
    char *at = NULL, *reason = NULL;
    uint64_t count = strtoull(line, &at, 10), at_ms = strtoull(at, &reason, 10);
    uint64_t now_ms = clock_unix_ns() / 1000000;
    if (at == line || reason == at || count > UINT32_MAX ||
        (count < strikes_max && now_ms > at_ms + FORGET_MS)) {
        return;
    }
    out->count = (uint32_t)count;
    snprintf(out->reason, sizeof out->reason, "%s", reason + (*reason == ' '));
    out->reason[strcspn(out->reason, "\n")] = 0;
}

enum err strikes_load(struct strikes *out, const char *cache_dir, const char *device,
                      uint32_t strikes_max) {
    struct strikes s = {0};
    if (device && cache_dir) {
        char path[PATH_BYTES], line[LINE_BYTES + 1];
        struct bytes_mut text = {0};
        TRY(path_of(path, cache_dir, device));
        if (file_exists(path)) {
            enum err code = file_read_all(&text, path, LINE_BYTES);
            if (code == OK) {
                memcpy(line, text.ptr, text.len);
                line[text.len] = 0;
                mem_free(text.ptr);
                read_line(&s, line, strikes_max);
            } else if (code != E_FORMAT) { /* which is longer than any line of ours */
                return code;
            }
        }
    }
    *out = s;
    return OK;
}

enum err strikes_store(const struct strikes *s, const char *cache_dir, const char *device) {
    char path[PATH_BYTES], dir[PATH_BYTES], line[LINE_BYTES];
    if (!device || !cache_dir) {
        return OK;
    }
    TRY(path_of(path, cache_dir, device));
    if (s->count == 0) {
        REQUIRE(unlink(path) == 0 || errno == ENOENT, E_IO, "%s cannot be removed: %s", path,
                strerror(errno));
        return OK;
    }
    snprintf(dir, sizeof dir, "%s/strikes", cache_dir);
    TRY(dir_make(dir));
    int len = snprintf(line, sizeof line, "%" PRIu32 " %" PRIu64 " %s\n", s->count,
                       clock_unix_ns() / 1000000, s->reason);
    return file_write_all(path, bytes_of(line, (size_t)len));
}
