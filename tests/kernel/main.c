/* kernel-tests SUBJECT [options of check.h | --bench]: one program, since every copy of it carries all kernels. */
#include "tests/kernel/device.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} subjects[] = {
    {"field", kernel_field},     {"fixed", kernel_fixed}, {"inbox", kernel_inbox},
    {"lane", kernel_lane},       {"large", kernel_large}, {"lost", kernel_lost},
    {"msm", kernel_msm},         {"ntt", kernel_ntt},     {"prove", kernel_prove},
    {"vectors", kernel_vectors},
};

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0); /* an abort must not swallow what was measured */
    for (size_t i = 0; argc > 1 && i < COUNT_OF(subjects); i++) {
        if (!strcmp(argv[1], subjects[i].name)) {
            return subjects[i].run(argc - 1, argv + 1);
        }
    }
    fprintf(
        stderr,
        "usage: kernel-tests field|fixed|inbox|lane|large|lost|msm|ntt|prove|vectors [options]\n");
    return 2;
}
