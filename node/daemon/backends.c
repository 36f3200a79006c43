/* The one place that knows both backends. Falling back is allowed to `auto` only, and only because the reason is handed
 * to the caller, who prints it: a fleet that is twenty times slower with all lights green is the failure to avoid.
 */
#include "node/daemon/backends.h"
#include "node/cpu/cpu.h"

#include <stdio.h>
#include <string.h>

#ifdef BELLOWS_CUDA
#include "cuda/gpu.h"

enum err backends_describe(struct backend_device *out, size_t *count, size_t max) {
    int all = 0;
    TRY(gpu_count(&all));
    for (*count = 0; *count < (size_t)all && *count < max; ++*count) {
        struct gpu_device d;
        TRY(gpu_describe(&d, (int)*count));
        struct backend_device *to = &out[*count];
        *to = (struct backend_device){.compute_major = d.compute_major,
                                      .compute_minor = d.compute_minor,
                                      .driver_version = d.driver_version,
                                      .runtime_version = d.runtime_version,
                                      .memory_bytes = d.memory_bytes};
        snprintf(to->name, sizeof to->name, "%s", d.name);
        snprintf(to->uuid, sizeof to->uuid, "%s", d.uuid);
    }
    return OK;
}
#else
enum err backends_describe(struct backend_device *out, size_t *count, size_t max) {
    (void)out;
    (void)count;
    (void)max;
    FAIL(E_DEVICE, "CUDA is not compiled into this build");
}

static enum err gpu_backend_open(struct backend **out, const struct backend_options *options) {
    (void)out;
    (void)options;
    FAIL(E_DEVICE, "CUDA is not compiled into this build");
}
#endif

bool backends_cuda_compiled(void) {
#ifdef BELLOWS_CUDA
    return true;
#else
    return false;
#endif
}

enum err backends_devices(struct device_list *out) {
#ifdef BELLOWS_CUDA
    struct device_list list = {0};
    int count;
    TRY(gpu_count(&count));
    for (int i = 0; i < count && list.count < DEVICES_MAX; i++) {
        struct gpu_device d;
        TRY(gpu_describe(&d, i));
        snprintf(list.devices[list.count].id, DEVICE_ID_BYTES, "%s", d.uuid);
        snprintf(list.devices[list.count++].name, DEVICE_NAME_BYTES, "%s", d.name);
    }
    *out = list;
    return OK;
#else
    (void)out;
    FAIL(E_DEVICE, "CUDA is not compiled into this build; build with -Dcuda=enabled, or use "
                   "--backend cpu");
#endif
}

enum err backends_kind(enum backend_kind *out, const char *name) {
    static const char *const names[] = {
        [BACKEND_AUTO] = "auto", [BACKEND_CUDA] = "cuda", [BACKEND_CPU] = "cpu"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!strcmp(name, names[i])) {
            *out = (enum backend_kind)i;
            return OK;
        }
    }
    FAIL(E_USAGE, "backend is \"%s\"; it is one of auto, cuda, cpu", name);
}

static void choose(struct backend_choice *choice, enum backend_kind kind, const struct backend *b,
                   const char *reason) {
    if (choice) {
        choice->kind = kind;
        snprintf(choice->why, sizeof choice->why, "%s%s", b->device_name, reason);
    }
}

enum err backends_open(struct backend **out, struct backend_choice *choice,
                       const struct backend_options *options) {
    /* A device that was named is a wish for CUDA as clear as --backend cuda. */
    if (options->kind == BACKEND_CUDA || (options->kind == BACKEND_AUTO && options->device)) {
        enum err code = gpu_backend_open(out, options);
        if (code != OK) {
            char cause[ERR_DETAIL_BYTES];
            snprintf(cause, sizeof cause, "%.400s", err_detail());
            FAIL(code,
                 "%s; a backend or device that was asked for never falls back: use --backend cpu "
                 "or auto",
                 cause);
        }
        choose(choice, BACKEND_CUDA, *out, "");
        return OK;
    }
    char reason[280] = "";
    if (options->kind == BACKEND_AUTO) {
        if (gpu_backend_open(out, options) == OK) {
            choose(choice, BACKEND_CUDA, *out, " (auto)");
            return OK;
        }
        snprintf(reason, sizeof reason, " (auto: %.260s)", err_detail());
    }
    TRY(cpu_backend_open(out, options));
    choose(choice, BACKEND_CPU, *out, reason);
    return OK;
}
