/* Codes, classes, the slot of detail. */
#include "tests/check/check.h"

#include <string.h>

static enum err fails_with_detail(int x) {
    REQUIRE(x < 3, E_RANGE, "x is %d, at most 2 allowed", x);
    return OK;
}

static enum err passes_it_on(int x) {
    TRY(fails_with_detail(x));
    return OK;
}

static void claim_detail(void) {
    CHECK_OK(passes_it_on(1));
    CHECK_ERR(E_RANGE, passes_it_on(7));
    CHECK_STR("x is 7, at most 2 allowed", err_detail());
    CHECK_ERR(E_RANGE, err_prefix(E_RANGE, "file %s", "a.zkey"));
    CHECK_STR("file a.zkey: x is 7, at most 2 allowed", err_detail());
}

static void claim_class(void) {
    for (int code = 0; code < ERR_COUNT; code++) {
        enum err back;
        CHECK(strlen(err_name((enum err)code)) > 0);
        CHECK(err_from_name(&back, err_name((enum err)code)));
        CHECK_EQ(code, back);
        CHECK((err_exit_code((enum err)code) == 0) == (code == OK));
    }
    CHECK_EQ(CLASS_REJECT, err_class(E_UNSAT));
    CHECK_EQ(1, err_exit_code(E_UNSAT));
    CHECK_EQ(CLASS_BUG, err_class((enum err)999));
}

static void claim_fault(void) {
    IGNORE(fails_with_detail(9));
    struct fault f = fault_of(E_RANGE);
    IGNORE(err_set(E_IO, "something else"));
    CHECK_ERR(E_RANGE, fault_raise(&f));
    CHECK_STR("x is 9, at most 2 allowed", err_detail());
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a detail is written where the failure is and prefixed above", claim_detail},
        {"every code has a name, a class and an exit code", claim_class},
        {"a fault carries code and detail by value", claim_fault},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
