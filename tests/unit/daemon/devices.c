/* Devices, as a child process lists them. */
#include "node/daemon/devices.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "node/base/file.h"
#include "node/base/mem.h"
#include "tests/check/check.h"

static void claim_read(void) {
    struct device_list list;
    CHECK_OK(devices_read(&list, "some warning\ndevice GPU-1a NVIDIA H200\n\ndevice GPU-2b\nend"));
    CHECK_EQ(2, list.count);
    CHECK_STR("GPU-1a", list.devices[0].id);
    CHECK_STR("NVIDIA H200", list.devices[0].name);
    CHECK_STR("GPU-2b", list.devices[1].id);
    CHECK_STR("", list.devices[1].name);
    CHECK_OK(devices_read(&list, ""));
    CHECK_EQ(0, list.count);
    list.count = 7;
    CHECK_ERR(E_FORMAT, devices_read(&list, "device ../etc x\n"));
    CHECK_ERR(E_FORMAT, devices_read(&list, "device  nameless id\n"));
    CHECK_ERR(E_FORMAT,
              devices_read(&list, "device GPU-1234567890123456789012345678901234567890123456"
                                  "78901234567890 x\n"));
    CHECK_EQ(7, list.count); /* untouched */
    char many[65 * 16] = "";
    for (int i = 0; i < 65; i++) {
        snprintf(many + strlen(many), sizeof many - strlen(many), "device G-%d\n", i);
    }
    CHECK_ERR(E_FORMAT, devices_read(&list, many));
}

static void find(enum err wanted, const char *word, const char *script) {
    struct device_list list = {0};
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    char *dir = NULL;
    CHECK_OK(dir_make_temp(&dir, "bellows-devices"));
    if (wanted == OK) {
        CHECK_OK(devices_find(&list, argv, dir));
        CHECK_EQ(1, list.count);
        CHECK_STR(word, list.devices[0].id);
    } else {
        CHECK_ERR(wanted, devices_find(&list, argv, dir));
        CHECK_HAS(err_detail(), word);
    }
    CHECK_EQ(0, rmdir(dir)); /* nothing is left in it */
    mem_free(dir);
}

static void claim_child(void) {
    find(OK, "GPU-1", "echo noise >&2; echo device GPU-1 card");
    find(E_DEVICE, "bellows node: install a driver",
         "echo 'bellows node: install a driver'; exit 3");
    find(E_DEVICE, "the process that lists the devices died", "kill -9 $$");
    find(E_DEVICE, "no NVIDIA GPU", "true");
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"lines of devices are read, others skipped, nonsense refused", claim_read},
        {"a child lists the devices, or its last word is the cause", claim_child},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
