/* The child's output goes through a file, as its error message is longer than a line and must not fill a pipe. */
#include "node/daemon/devices.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "node/base/clock.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/daemon/child.h"

enum { OUTPUT_BYTES_MAX = 64 * 1024, PATH_BYTES = 1100 };
static const uint64_t WAIT_NS =
    UINT64_C(60000000000); /* a driver may take long over its first start */
static const uint64_t LOOK_NS = UINT64_C(10000000);
static const char WORD[] = "device ";

void devices_print(const struct device_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        printf("%s%s %s\n", WORD, list->devices[i].id, list->devices[i].name);
    }
}

static bool is_id(const char *id, size_t len) {
    bool ok = len > 0 && len < DEVICE_ID_BYTES;
    for (size_t i = 0; i < len && ok; i++) {
        ok = (id[i] >= 'a' && id[i] <= 'z') || (id[i] >= 'A' && id[i] <= 'Z') ||
             (id[i] >= '0' && id[i] <= '9') || id[i] == '-';
    }
    return ok;
}

enum err devices_read(struct device_list *out, const char *text) {
    struct device_list list = {0};
    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n");
        if (!strncmp(line, WORD, sizeof WORD - 1)) {
            const char *id = line + sizeof WORD - 1, *end = line + len;
            size_t id_len = strcspn(id, " \n");
            REQUIRE(is_id(id, id_len), E_FORMAT,
                    "a device's UUID is made of letters, digits and '-': "
                    "\"%.*s\" is none",
                    (int)(id_len < 60 ? id_len : 60), id);
            REQUIRE(list.count < DEVICES_MAX, E_FORMAT, "more than %d devices", DEVICES_MAX);
            const char *name = id + id_len < end ? id + id_len + 1 : end;
            snprintf(list.devices[list.count].id, DEVICE_ID_BYTES, "%.*s", (int)id_len, id);
            snprintf(list.devices[list.count++].name, DEVICE_NAME_BYTES, "%.*s", (int)(end - name),
                     name);
        }
        line += len + (line[len] == '\n');
    }
    *out = list;
    return OK;
}

/* The last line that is not empty. */
static void last_line(char *out, size_t out_bytes, char *text) {
    const char *last = "";
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL;) {
        last = *line ? line : last;
    }
    snprintf(out, out_bytes, "%s", last);
}

static enum err ask(struct child_end *end, const struct child_options *options) {
    struct child child;
    bool ended = false;
    TRY(child_start(&child, options));
    for (uint64_t start_ns = clock_ns(); !ended && clock_ns() - start_ns < WAIT_NS;) {
        child_poll(&ended, end, &child);
        if (!ended) {
            clock_sleep_ns(LOOK_NS);
        }
    }
    child_stop(&child, 0);
    REQUIRE(ended, E_TIMEOUT, "the driver has not listed its devices within %llu s; run nvidia-smi",
            (unsigned long long)(WAIT_NS / 1000000000));
    return OK;
}

enum err devices_find(struct device_list *out, const char *const *argv, const char *dir) {
    char path[PATH_BYTES], said[ERR_DETAIL_BYTES / 2];
    struct child_end end = {0};
    struct bytes_mut text = {0};
    int len = snprintf(path, sizeof path, "%s/devices-%ld", dir, (long)getpid());
    REQUIRE(len > 0 && (size_t)len < sizeof path, E_LIMIT, "the path of %s is too long", dir);
    unlink(path);
    enum err code = ask(&end, &(struct child_options){.argv = argv, .log_path = path});
    if (code == OK) {
        code = file_read_all(&text, path, OUTPUT_BYTES_MAX);
    }
    unlink(path);
    TRY(code);
    AUTO(mem_free_ptr) char *words = NULL;
    code = mem_new(&words, text.len + 1, 1);
    if (code == OK && text.len) {
        memcpy(words, text.ptr, text.len);
    }
    mem_free(text.ptr);
    TRY(code);
    struct device_list list = {0};
    TRY(devices_read(&list, words));
    last_line(said, sizeof said, words);
    REQUIRE(end.exit_code == 0, E_DEVICE, "%s",
            said[0] ? said : "the process that lists the devices died; run `nvidia-smi`");
    REQUIRE(list.count > 0, E_DEVICE,
            "no NVIDIA GPU is visible; check nvidia-smi and CUDA_VISIBLE_DEVICES");
    *out = list;
    return OK;
}
