/* snarkjs as the judge: it takes our proofs and our exported keys, and we take its proofs.
 *
 * Every case of the vectors is proved by the built program, with random blinding, and judged by snarkjs under the stored
 * key and under the one that we export. snarkjs is installed by npm into the build folder, once; without npm or network
 * the claims are skipped.
 */
#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/base/text.h"
#include "tests/check/check.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { CASES_MAX = 128, OUTPUT_BYTES_MAX = 1 << 16 };

static const char *const curves[] = {"bn128", "bls12381"};

struct golden {
    char name[64];    /* "bn128/mul" */
    char folder[512]; /* where its vectors lie */
};

static struct golden cases[CASES_MAX];
static size_t cases_count;
static char *scratch; /* owned */
static char output[OUTPUT_BYTES_MAX];

static const char *from_env(const char *name) {
    const char *value = getenv(name);
    CHECK_MSG(value, "%s is not set: run through meson test", name);
    return value;
}

/* Runs a shell command; what it prints is in `output`, cut there. Returns its exit status. */
static int run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int run(const char *format, ...) {
    char command[4096];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(command, sizeof command, format, args);
    va_end(args);
    CHECK(len > 0 && (size_t)len < sizeof command);
    FILE *f = popen(command, "r");
    CHECK_MSG(f, "cannot run %s", command);
    output[fread(output, 1, sizeof output - 1, f)] = '\0';
    int status = pclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void find_cases(void) {
    cases_count = 0;
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        DIR *dir = opendir(check_vectors(curves[i]));
        CHECK(dir != NULL);
        for (struct dirent *e; (e = readdir(dir));) {
            struct golden *g = &cases[cases_count];
            char key[600];
            if (e->d_name[0] == '.' || !strcmp(e->d_name, "bad")) {
                continue;
            }
            snprintf(g->name, sizeof g->name, "%s/%.40s", curves[i], e->d_name);
            snprintf(g->folder, sizeof g->folder, "%s", check_vectors(g->name));
            snprintf(key, sizeof key, "%s/circuit.zkey", g->folder);
            CHECK(file_exists(key));
            CHECK(++cases_count < CASES_MAX);
        }
        closedir(dir);
    }
    CHECK(cases_count >= 2 * 18);
}

static void begin(void) {
    static bool tried, installed; /* by the first claim for all */
    const char *root = from_env("BELLOWS_ROOT"), *build = from_env("BELLOWS_BUILD");
    if (!tried) {
        tried = true;
        installed =
            run("mkdir -p %s/tests/interop/snarkjs && cd %s/tests/interop/snarkjs && "
                "cp %s/tests/interop/snarkjs/* . && { cmp -s package-lock.json installed || { "
                "npm ci --ignore-scripts --no-audit --no-fund && cp package-lock.json installed; "
                "}; } >npm.log 2>&1 && node --version",
                build, build, root) == 0;
    }
    if (!installed) {
        check_skip("npm cannot install snarkjs here; see %s/tests/interop/snarkjs/npm.log", build);
    }
    find_cases();
    CHECK_OK(dir_make_temp(&scratch, "bellows-snarkjs"));
}

static void end(void) {
    CHECK_OK(dir_remove_tree(scratch));
    mem_free(scratch);
    scratch = NULL;
}

/* Runs judge.js over lines of file names and wants `verdict` for every case. */
static void judge(const char *what, const struct text *lines, const char *verdict) {
    char list[600];
    CHECK_OK(text_done(lines));
    snprintf(list, sizeof list, "%s/list", scratch);
    CHECK_OK(file_write_all(list, text_bytes(lines)));
    int code = run("cd %s/tests/interop/snarkjs && node judge.js %s %s 2>&1",
                   from_env("BELLOWS_BUILD"), what, list);
    CHECK_MSG(code == 0, "judge.js ended with %d: %.400s", code, output);
    for (size_t i = 0; i < cases_count; i++) {
        char want[128];
        snprintf(want, sizeof want, "%s %s\n", cases[i].name, verdict);
        CHECK_MSG(strstr(output, want), "no \"%s %s\" in: %.800s", cases[i].name, verdict, output);
    }
}

/* Proves case i with the built program into scratch/i.proof and scratch/i.public. */
static void prove(size_t i) {
    int code = run("cd %s && %s/bellows prove --backend cpu --allow-insecure-keys %s/circuit.zkey "
                   "%s/witness.wtns %zu.proof %zu.public 2>&1",
                   scratch, from_env("BELLOWS_BUILD"), cases[i].folder, cases[i].folder, i, i);
    CHECK_MSG(code == 0, "%s: prove ended with %d: %.400s", cases[i].name, code, output);
}

static void claim_our_proofs(void) {
    begin();
    AUTO(text_free) struct text stored = {0};
    AUTO(text_free) struct text exported = {0};
    for (size_t i = 0; i < cases_count; i++) {
        const struct golden *g = &cases[i];
        prove(i);
        int code = run("cd %s && %s/bellows key export-vkey --allow-insecure-keys "
                       "%s/circuit.zkey %zu.vkey",
                       scratch, from_env("BELLOWS_BUILD"), g->folder, i);
        CHECK_MSG(code == 0, "%s: export-vkey ended with %d", g->name, code);
        text_addf(&stored, "%s %s/verification_key.json %s/%zu.public %s/%zu.proof\n", g->name,
                  g->folder, scratch, i, scratch, i);
        text_addf(&exported, "%s %s/%zu.vkey %s/%zu.public %s/%zu.proof\n", g->name, scratch, i,
                  scratch, i, scratch, i);
    }
    judge("verify", &stored, "true");
    judge("verify", &exported, "true");
    end();
}

/* The judge can say no: each proof before the public signals and key of another case of the same curve. */
static void claim_wrong_pairs(void) {
    begin();
    AUTO(text_free) struct text lines = {0};
    for (size_t i = 0; i < cases_count; i++) {
        const char *curve = strncmp(cases[i].name, "bn128", 5) ? curves[1] : curves[0];
        bool is_base = strstr(cases[i].name, "/base-other") != NULL;
        const char *other = check_vectors(curve);
        text_addf(&lines, "%s %s/%s/verification_key.json %s/%s/public.json %s/proof.json\n",
                  cases[i].name, other, is_base ? "base" : "base-other", other,
                  is_base ? "base" : "base-other", cases[i].folder);
    }
    judge("verify", &lines, "false");
    end();
}

static void claim_its_proofs(void) {
    begin();
    AUTO(text_free) struct text lines = {0};
    for (size_t i = 0; i < cases_count; i++) {
        text_addf(&lines, "%s %s/circuit.zkey %s/witness.wtns %s/%zu.proof %s/%zu.public\n",
                  cases[i].name, cases[i].folder, cases[i].folder, scratch, i, scratch, i);
    }
    judge("prove", &lines, "true");
    for (size_t i = 0; i < cases_count; i++) {
        int code = run("cd %s && %s/bellows verify --allow-insecure-keys "
                       "%s/verification_key.json %zu.public %zu.proof 2>&1",
                       scratch, from_env("BELLOWS_BUILD"), cases[i].folder, i, i);
        CHECK_MSG(code == 0, "%s: verify ended with %d: %.400s", cases[i].name, code, output);
    }
    end();
}

/* A synthetic key is a key to others too: snarkjs proves under it, we verify; we prove, it verifies. */
static void claim_synthetic_keys(void) {
    begin();
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        int code =
            run("set -e; cd %s; B=%s/bellows; A=--allow-insecure-keys; "
                "$B key synth k w --log2 10 --shape porep --curve %s; "
                "$B key export-vkey $A k v; $B prove --backend cpu $A k w proof public; "
                "cd %s/tests/interop/snarkjs; S=%s; "
                "echo \"x $S/k $S/w $S/p $S/q\" >$S/list; node judge.js prove $S/list; "
                "echo \"y $S/v $S/public $S/proof\" >$S/list; "
                "node judge.js verify $S/list; cd $S; $B verify $A v q p",
                scratch, from_env("BELLOWS_BUILD"), curves[i], from_env("BELLOWS_BUILD"), scratch);
        CHECK_MSG(code == 0, "%s: ended with %d: %.800s", curves[i], code, output);
        CHECK_HAS(output, "x true\n");
        CHECK_HAS(output, "y true\n");
    }
    end();
}

/* The same words to both programs; "bad.wtns" is a witness with another value in its sixth place. */
static void claim_same_commands(void) {
    begin();
    int code =
        run("set -e; cd %s; B=%s/bellows; S=%s/tests/interop/snarkjs/node_modules/.bin/snarkjs; "
            "D=%s/base; cp $D/witness.wtns bad.wtns; "
            "printf '\\007\\001' | dd of=bad.wtns bs=1 seek=236 conv=notrunc 2>dd.log; "
            "$S zkey export soliditycalldata $D/public.json $D/proof.json >theirs; "
            "$B calldata $D/verification_key.json $D/public.json $D/proof.json "
            "--allow-insecure-keys >ours; cmp ours theirs; "
            "$S wtns export json $D/witness.wtns theirs; "
            "$B wtns export json $D/witness.wtns ours; cmp ours theirs; "
            "$S wtns check $D/circuit.r1cs $D/witness.wtns >log; "
            "$B wtns check $D/circuit.r1cs $D/witness.wtns; "
            "for P in $S $B; do E=0; $P wtns check $D/circuit.r1cs bad.wtns >log 2>&1 || E=$?; "
            "test $E = 1; done; echo same",
            scratch, from_env("BELLOWS_BUILD"), from_env("BELLOWS_BUILD"), check_vectors("bn128"));
    CHECK_MSG(code == 0, "ended with %d: %.800s", code, output);
    CHECK_HAS(output, "same\n");
    end();
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"snarkjs verifies our proof of every case, under the stored and the exported key",
         claim_our_proofs},
        {"snarkjs refuses a proof under another key", claim_wrong_pairs},
        {"we verify a fresh proof by snarkjs of every case", claim_its_proofs},
        {"snarkjs takes a synthetic key, and each verifies the other's proof under it",
         claim_synthetic_keys},
        {"calldata, wtns export and wtns check answer as snarkjs does", claim_same_commands},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
