/* libFuzzer's door to one target; built once per target with -DTARGET=name (clang, -Dfuzz=true). */
#include "tests/fuzz/targets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    TARGET(bytes_of(data, len));
    return 0;
}
