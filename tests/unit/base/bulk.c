/* Pages are zero, whole and given back; what cannot be had is refused. */
#include "node/base/bulk.h"
#include "tests/check/check.h"

static void claim_pages(void) {
    static const size_t sizes[] = {1, 4096, 4097, 5 << 20};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct bytes_mut p = {0};
        CHECK_OK(bulk_open(&p, sizes[i]));
        CHECK(p.len == sizes[i] && (uintptr_t)p.ptr % 4096 == 0);
        CHECK(p.ptr[0] == 0 && p.ptr[p.len / 2] == 0 && p.ptr[p.len - 1] == 0);
        p.ptr[0] = p.ptr[p.len - 1] = 1;
        bulk_close(&p);
        CHECK(!p.ptr && p.len == 0);
        bulk_close(&p);
    }
}

static void claim_refused(void) {
    struct bytes_mut p = {0};
    CHECK_ERR(E_LIMIT, bulk_open(&p, SIZE_MAX / 2));
    CHECK_HAS(err_detail(), "no room for");
    CHECK(!p.ptr);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"pages are zero and can be given back twice", claim_pages},
        {"more than there can be is refused", claim_refused},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
