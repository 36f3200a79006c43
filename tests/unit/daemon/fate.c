/* Every code against the table of fate.h, written down a second time. */
#include "node/daemon/fate.h"

#include "tests/check/check.h"

static void claim_table(void) {
    static const struct {
        enum err code;
        struct verdict want;
    } rows[] = {
        {OK, {FATE_DONE, false, false, false}},
        {E_FORMAT, {FATE_FAIL, false, false, false}},
        {E_RANGE, {FATE_FAIL, false, false, false}},
        {E_CURVE, {FATE_FAIL, false, false, false}},
        {E_UNSAT, {FATE_FAIL, false, false, false}},
        {E_LIMIT, {FATE_GIVE_BACK, false, false, false}},
        {E_QUEUE, {FATE_GIVE_BACK, false, false, false}},
        {E_DEVICE, {FATE_GIVE_BACK, true, false, false}},
        {E_DEVICE_LOST, {FATE_GIVE_BACK, true, false, true}},
        {E_SELFCHECK, {FATE_SETTLE, false, false, false}},
        {E_IO, {FATE_TRY_AGAIN, false, false, false}},
        {E_NET, {FATE_TRY_AGAIN, false, false, false}},
        {E_TIMEOUT, {FATE_TRY_AGAIN, false, false, false}},
        {E_CANCELLED, {FATE_STOP, false, false, false}},
        {E_DEADLINE, {FATE_STOP, false, false, false}},
        {E_USAGE, {FATE_FAIL, false, true, false}},
        {E_INTERNAL, {FATE_FAIL, false, true, false}},
    };
    CHECK_EQ(ERR_COUNT, COUNT_OF(rows));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct verdict got = verdict_of(rows[i].code);
        CHECK_MSG(got.fate == rows[i].want.fate && got.strike == rows[i].want.strike &&
                      got.alarm == rows[i].want.alarm && got.death == rows[i].want.death,
                  "%s: fate %d strike %d alarm %d death %d", err_name(rows[i].code), (int)got.fate,
                  got.strike, got.alarm, got.death);
    }
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"every error code has the fate of its class", claim_table},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
