/* Devices that can prove, found without touching them from here: asking the driver makes a context, and a supervisor that holds one could
 * not survive its device. So a child process asks.
 *
 * Threads  devices_find: the main thread.
 * Errors   E_DEVICE when there is none, with cause and cure, as the child said it; E_IO, E_TIMEOUT when it said nothing.
 */
#pragma once
#include "node/base/err.h"

enum { DEVICES_MAX = 64, DEVICE_ID_BYTES = 48, DEVICE_NAME_BYTES = 64 };

struct device_list {
    size_t count;
    struct {
        char id[DEVICE_ID_BYTES]; /* "GPU-8a6f…", as nvidia-smi prints it */
        char name[DEVICE_NAME_BYTES];
    } devices[DEVICES_MAX];
};

/* In the child: prints one line per device, "device ID NAME". */
void devices_print(const struct device_list *list);
/* In the supervisor: runs `argv` (NULL-terminated), which prints them, with its output in a file of `dir` meanwhile. */
FALLIBLE devices_find(struct device_list *out, const char *const *argv, const char *dir);
/* Reads such lines; others are skipped. E_FORMAT for an id that is none or too many devices. */
FALLIBLE devices_read(struct device_list *out, const char *text);
