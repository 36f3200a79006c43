/* `bellows dev --demo` as a newcomer starts it: jobs of all its circuits are proved within seconds, and nothing is left afterwards. */
#include "node/base/mem.h"
#include "tests/check/check.h"
#include "tests/unit/cli/program.h"

#include <string.h>

/* Looks every quarter of a second; 9 when half a minute was not enough. */
#define UNTIL(condition)                                                                           \
    "for i in $(seq 120); do sleep 0.25; $BELLOWS list --state done >done.txt; if " condition      \
    "; then exit 0; fi; done; cat fleet/demo.log; exit 9"

static void begin(struct scratch *s) {
    struct run r;
    scratch_open(s);
    run_script(&r, s, "PATH=$PATH:/usr/sbin:/usr/local/sbin command -v nats-server");
    int code = r.exit_code;
    run_free(&r);
    if (code != 0) {
        scratch_close(s);
        check_skip("nats-server is not installed");
    }
}

static void claim_works(void) {
    struct scratch s;
    struct run r;
    begin(&s);
    run_script(&r, &s,
               "unset BELLOWS_CACHE; export XDG_RUNTIME_DIR=$PWD TMPDIR=$PWD; "
               "$BELLOWS dev --demo --dir fleet --threads 1 --run '%s'",
               UNTIL("[ $(grep -c done done.txt) -ge 6 ]"));
    CHECK_MSG(r.exit_code == 0, "exit code %d: %s%s", r.exit_code, r.out, r.err);
    run_free(&r);
    run_script(&r, &s, "ls fleet/demo");
    CHECK_HAS(r.out, "bits.zkey");
    CHECK_HAS(r.out, "dense.zkey");
    CHECK_HAS(r.out, "porep.zkey");
    run_free(&r);
    scratch_close(&s);
}

static void claim_clean(void) {
    struct scratch s;
    struct run r;
    begin(&s);
    run_script(&r, &s,
               "unset BELLOWS_CACHE; mkdir tmp; XDG_RUNTIME_DIR=$PWD TMPDIR=$PWD/tmp $BELLOWS dev "
               "--demo --threads 1 --run "
               "'sleep 1' && ls -A tmp");
    CHECK_MSG(r.exit_code == 0, "exit code %d: %s", r.exit_code, r.err);
    CHECK_STR("", r.out);
    run_free(&r);
    scratch_close(&s);
}

static void claim_useless(void) {
    struct scratch s;
    struct run r;
    begin(&s);
    /* Keys cannot be made in a folder that is a file. */
    run_script(&r, &s,
               "unset BELLOWS_CACHE; export XDG_RUNTIME_DIR=$PWD TMPDIR=$PWD; $BELLOWS dev --demo "
               "--dir fleet --threads 1 "
               "--run 'rm -rf fleet/demo; touch fleet/demo; sleep 60'");
    CHECK(r.exit_code == 4);
    CHECK_HAS(r.err, "come to nothing");
    CHECK_HAS(r.err, "demo.log");
    run_free(&r);
    scratch_close(&s);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"dev --demo has jobs proved within seconds", claim_works},
        {"it leaves nothing behind", claim_clean},
        {"jobs that come to nothing end it, with the name of their log", claim_useless},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
