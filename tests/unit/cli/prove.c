/* `bellows prove` from outside: outputs, exit codes, texts, and that nothing is left behind. */
#include "node/base/clock.h"
#include "node/base/file.h"
#include "node/base/json.h"
#include "node/base/mem.h"
#include "tests/check/check.h"
#include "tests/unit/cli/program.h"
#include "tests/unit/groth16/setup.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const curves[] = {"bn128", "bls12381"};

static void expect(const struct run *r, int exit_code, const char *needle) {
    CHECK_MSG(r->exit_code == exit_code, "exit code %d (signal %d), want %d: %s%s", r->exit_code,
              r->signal, exit_code, r->out, r->err);
    if (needle) {
        CHECK_HAS(r->err, needle);
    }
}

static void write_text(const char *path, const char *text) {
    CHECK_OK(file_write_all(path, bytes_of(text, strlen(text))));
}

/* Files of tests/vectors end with a newline, which snarkjs does not write, and neither do we. */
static void same_text(const char *want_path, const char *got_path) {
    char *want = file_text(want_path), *got = file_text(got_path);
    size_t len = strlen(want);
    if (len > 0 && want[len - 1] == '\n') {
        want[len - 1] = '\0';
    }
    CHECK_STR(want, got);
    mem_free(want);
    mem_free(got);
}

static void claim_all_cases(void) {
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        DIR *dir = opendir(check_vectors(curves[i]));
        CHECK(dir);
        size_t cases = 0;
        for (struct dirent *e; (e = readdir(dir));) {
            const char *folder = curve_file(curves[i], e->d_name);
            char zkey[600];
            snprintf(zkey, sizeof zkey, "%s/circuit.zkey", folder);
            if (e->d_name[0] == '.' || !file_exists(zkey)) {
                continue;
            }
            AUTO(scratch_close) struct scratch s = {0};
            struct run r;
            scratch_open(&s);
            run_program(&r, &s, NULL,
                        "prove --backend cpu --allow-insecure-keys %s %s/witness.wtns", zkey,
                        folder);
            expect(&r, 0, NULL);
            CHECK_STR("", r.out);
            CHECK_STR("", r.err);
            run_free(&r);
            CHECK_EQ(2, scratch_files(&s));
            char want[600];
            snprintf(want, sizeof want, "%s/public.json", folder);
            same_text(want, scratch_path(&s, "public.json"));
            run_program(&r, &s, NULL, "verify --allow-insecure-keys %s/verification_key.json",
                        folder);
            expect(&r, 0, NULL);
            CHECK_STR("OK\n", r.out);
            run_free(&r);
            cases++;
        }
        closedir(dir);
        CHECK(cases >= 20);
    }
}

static void claim_scripts(void) {
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        AUTO(scratch_close) struct scratch s = {0};
        struct run r;
        scratch_open(&s);
        run_script(&r, &s,
                   "set -e; cp %s circuit_final.zkey; cp %s .; cp %s .\n"
                   "PROVE=\"$BELLOWS prove --backend cpu\"; VERIFY=\"$BELLOWS verify\"\n"
                   /* snarkjs's habit: every name by default */
                   "$PROVE && $VERIFY && rm proof.json public.json\n"
                   /* rapidsnark's habit: exactly four names, then three */
                   "$PROVE circuit_final.zkey witness.wtns p.json i.json\n"
                   "$VERIFY verification_key.json i.json p.json\n"
                   "$BELLOWS verify circuit_final.zkey i.json p.json",
                   curve_file(curves[i], "base/circuit.zkey"),
                   curve_file(curves[i], "base/witness.wtns"),
                   curve_file(curves[i], "base/verification_key.json"));
        expect(&r, 0, NULL);
        CHECK_STR("OK\nOK\nOK\n", r.out);
        CHECK_STR("", r.err);
        run_free(&r);
        CHECK_EQ(5, scratch_files(&s));
    }
}

static void claim_blinding(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    const char *zkey = curve_file("bn128", "base/circuit.zkey");
    const char *wtns = curve_file("bn128", "base/witness.wtns");
    static const char *const seeds[] = {"", "", "--seed 7", "--seed 7", "--seed 8"};
    for (size_t i = 0; i < COUNT_OF(seeds); i++) {
        run_program(&r, &s, NULL, "prove --backend cpu %s %s p%zu.json i.json %s", zkey, wtns, i,
                    seeds[i]);
        expect(&r, 0, seeds[i][0] ? "tests only" : NULL);
        run_free(&r);
    }
    for (size_t i = 0; i < COUNT_OF(seeds); i++) {
        for (size_t k = 0; k < i; k++) {
            char name[2][16];
            snprintf(name[0], sizeof name[0], "p%zu.json", i);
            snprintf(name[1], sizeof name[1], "p%zu.json", k);
            char *a = file_text(scratch_path(&s, name[0])),
                 *b = file_text(scratch_path(&s, name[1]));
            CHECK_EQ(i == 3 && k == 2, !strcmp(a, b));
            mem_free(a);
            mem_free(b);
        }
    }
}

static void claim_json(void) {
    static const char *const steps[] = {"witness", "evaluate", "quotient", "msm_a",    "msm_b1",
                                        "msm_b2",  "msm_l",    "msm_h",    "assemble", "verify"};
    static const char *const numbers[] = {
        "wires",   "public_signals", "domain_size",      "open_ns",
        "load_ns", "prove_ns",       "peak_memory_bytes"};
    static const char *const texts[] = {"version",        "commit", "backend", "device",
                                        "backend_choice", "curve",  "proof",   "public"};
    AUTO(scratch_close) struct scratch s = {0};
    AUTO(json_free) cJSON *json = NULL;
    const cJSON *times = NULL;
    const char *text = NULL;
    uint64_t number = 0;
    struct run r;
    scratch_open(&s);
    run_program(&r, &s, NULL, "prove --json --backend auto --threads 1 %s %s",
                curve_file("bls12381", "base/circuit.zkey"),
                curve_file("bls12381", "base/witness.wtns"));
    expect(&r, 0, NULL);
    CHECK_OK(json_parse(&json, bytes_of(r.out, strlen(r.out)), "prove --json"));
    CHECK_OK(json_member(&times, json, "steps_ns"));
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        CHECK_OK(json_number_member(&number, times, 0, 60000000000u, steps[i]));
    }
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        CHECK_OK(json_number_member(&number, json, 1, (uint64_t)1 << 50, numbers[i]));
    }
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        CHECK_OK(json_text_member(&text, json, texts[i]));
        CHECK(text[0]);
    }
    /* auto says what it took, once, on standard error too */
    CHECK_OK(json_text_member(&text, json, "backend_choice"));
    CHECK_HAS(r.err, text);
    CHECK(strchr(r.err, '\n') == r.err + strlen(r.err) - 1);
    run_free(&r);
}

static void claim_json_error(void) {
    AUTO(scratch_close) struct scratch s = {0};
    AUTO(json_free) cJSON *json = NULL;
    const cJSON *error = NULL;
    const char *text = NULL;
    struct run r;
    scratch_open(&s);
    run_program(&r, &s, NULL, "prove --json --backend cpu %s %s",
                curve_file("bn128", "mul-contrib/circuit.zkey"),
                curve_file("bn128", "bad/unsatisfied.wtns"));
    expect(&r, 1, "does not satisfy");
    CHECK_OK(json_parse(&json, bytes_of(r.out, strlen(r.out)), "prove --json"));
    CHECK_OK(json_member(&error, json, "error"));
    CHECK_OK(json_text_member(&text, error, "code"));
    CHECK_STR("E_UNSAT", text);
    CHECK_OK(json_text_member(&text, error, "detail"));
    CHECK_HAS(text, "does not satisfy");
    run_free(&r);
    CHECK_EQ(0, scratch_files(&s));
}

static void claim_unsatisfied(void) {
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        AUTO(scratch_close) struct scratch s = {0};
        struct run r;
        scratch_open(&s);
        const char *zkey = curve_file(curves[i], "mul-contrib/circuit.zkey");
        const char *wtns = curve_file(curves[i], "bad/unsatisfied.wtns");
        run_program(&r, &s, NULL, "prove --backend cpu %s %s", zkey, wtns);
        expect(&r, 1, "does not satisfy");
        CHECK_HAS(r.err, "unsatisfied.wtns");
        run_free(&r);
        run_program(&r, &s, NULL, "prove --backend cpu %s %s --r1cs %s", zkey, wtns,
                    curve_file(curves[i], "mul-contrib/circuit.r1cs"));
        expect(&r, 1, "constraint 0");
        run_free(&r);
        run_program(&r, &s, NULL, "prove --backend cpu %s %s --r1cs %s", zkey,
                    curve_file(curves[i], "mul-contrib/witness.wtns"),
                    curve_file(curves[i], "bad/truncated.r1cs"));
        expect(&r, 2, "truncated.r1cs");
        run_free(&r);
        CHECK_EQ(0, scratch_files(&s));
    }
}

static bool ends_with(const char *text, const char *tail) {
    size_t len = strlen(text), tail_len = strlen(tail);
    return len >= tail_len && !strcmp(text + len - tail_len, tail);
}

static void claim_bad_files(void) {
    size_t seen = 0;
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        DIR *dir = opendir(curve_file(curves[i], "bad"));
        CHECK(dir);
        for (struct dirent *e; (e = readdir(dir));) {
            bool is_key = ends_with(e->d_name, ".zkey");
            if (!is_key && !ends_with(e->d_name, ".wtns")) {
                continue;
            }
            AUTO(scratch_close) struct scratch s = {0};
            struct run r;
            char bad[600];
            snprintf(bad, sizeof bad, "%s/%s", curve_file(curves[i], "bad"), e->d_name);
            scratch_open(&s);
            run_program(&r, &s, NULL, "prove --backend cpu --allow-insecure-keys %s %s",
                        is_key ? bad : curve_file(curves[i], "mul/circuit.zkey"),
                        is_key ? curve_file(curves[i], "mul/witness.wtns") : bad);
            expect(&r, !strcmp(e->d_name, "unsatisfied.wtns") ? 1 : 2, e->d_name);
            CHECK_MSG(r.elapsed_ns < 2000000000u, "%s took %llu ms", e->d_name,
                      (unsigned long long)(r.elapsed_ns / 1000000));
            CHECK_STR("", r.out);
            CHECK(strchr(r.err, '\n') == r.err + strlen(r.err) - 1); /* one sentence */
            run_free(&r);
            CHECK_EQ(0, scratch_files(&s));
            seen++;
        }
        closedir(dir);
    }
    CHECK(seen >= 30);
}

static void claim_bad_names_section(void) {
    static const struct {
        const char *file, *needle;
    } rows[] = {
        {"truncated.zkey", "section"},
        {"off-curve-a.zkey", "section 5"},
        {"coef-out-of-range.zkey", "section 4"},
        {"signal-out-of-range.zkey", "section 4"},
        {"section-too-long.zkey", "section"},
        {"plonk.zkey", "PLONK"},
        {"domain-not-power-of-two.zkey", "3"},
        {"future-version.zkey", "9"},
        {"bad-magic.zkey", "zkey"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        AUTO(scratch_close) struct scratch s = {0};
        struct run r;
        char bad[600];
        snprintf(bad, sizeof bad, "%s/%s", curve_file("bn128", "bad"), rows[i].file);
        scratch_open(&s);
        run_program(&r, &s, NULL, "prove --backend cpu --allow-insecure-keys %s %s", bad,
                    curve_file("bn128", "mul/witness.wtns"));
        expect(&r, 2, rows[i].needle);
        run_free(&r);
    }
}

/* A key whose section 10, the last one, was never written: usable, and said to be unfinished. */
static void claim_unfinished_key(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    struct bytes_mut key;
    scratch_open(&s);
    CHECK_OK(file_read_all(&key, curve_file("bn128", "base/circuit.zkey"), 1 << 20));
    size_t at = 12;
    while (load_u32le(key.ptr + at) != 10) {
        at += 12 + load_u64le(key.ptr + at + 4);
        CHECK(at < key.len);
    }
    store_u32le(key.ptr + 8, 9);
    const char *path = scratch_path(&s, "unfinished.zkey");
    CHECK_OK(file_write_all(path, bytes_of(key.ptr, at)));
    mem_free(key.ptr);
    run_program(&r, &s, NULL, "prove --backend cpu %s %s proof.json public.json", path,
                curve_file("bn128", "base/witness.wtns"));
    CHECK_EQ(0, r.exit_code);
    CHECK_HAS(r.err, "section 10 (contributions) is missing");
    run_free(&r);
    run_program(&r, &s, NULL, "verify %s public.json proof.json",
                curve_file("bn128", "base/verification_key.json"));
    CHECK_EQ(0, r.exit_code);
    run_free(&r);
}

static void claim_misfits(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    run_program(&r, &s, NULL, "prove --backend cpu %s %s", curve_file("bn128", "base/circuit.zkey"),
                curve_file("bls12381", "base/witness.wtns"));
    expect(&r, 2, "curve mismatch");
    run_free(&r);
    run_program(&r, &s, NULL, "prove --backend cpu %s %s",
                curve_file("bls12381", "base/circuit.zkey"),
                curve_file("bn128", "base/witness.wtns"));
    expect(&r, 2, "curve mismatch");
    run_free(&r);
    run_program(&r, &s, NULL, "prove --backend cpu %s %s", curve_file("bn128", "base/circuit.zkey"),
                curve_file("bn128", "bits/witness.wtns"));
    expect(&r, 2, "132");
    CHECK_HAS(r.err, "8 wires");
    run_free(&r);
    run_program(&r, &s, NULL, "prove --backend cpu %s %s", curve_file("bn128", "base/witness.wtns"),
                curve_file("bn128", "base/circuit.zkey"));
    expect(&r, 2, "witness");
    run_free(&r);
    run_program(&r, &s, NULL, "prove --backend cpu no-such.zkey %s",
                curve_file("bn128", "base/witness.wtns"));
    expect(&r, 2, "no-such.zkey: No such file");
    run_free(&r);
    CHECK_EQ(0, scratch_files(&s));
}

static void claim_insecure(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    const char *zkey = curve_file("bn128", "base-uncontributed/circuit.zkey");
    const char *wtns = curve_file("bn128", "base-uncontributed/witness.wtns");
    run_program(&r, &s, NULL, "prove --backend cpu %s %s", zkey, wtns);
    expect(&r, 2, "--allow-insecure-keys");
    run_free(&r);
    CHECK_EQ(0, scratch_files(&s));
    run_program(&r, &s, NULL, "prove --backend cpu %s %s --allow-insecure-keys", zkey, wtns);
    expect(&r, 0, NULL);
    run_free(&r);
    run_program(&r, &s, NULL, "verify %s", zkey);
    expect(&r, 2, "forge");
    CHECK_STR("", r.out);
    run_free(&r);
    run_program(&r, &s, NULL, "verify %s --allow-insecure-keys", zkey);
    expect(&r, 0, NULL);
    run_free(&r);
}

/* The backend's line comes after the outputs were tried: it must not be there. */
static void claim_unwritable(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    CHECK_OK(dir_make(scratch_path(&s, "folder")));
    static const char *const outputs[] = {"no/such/folder/p.json i.json",
                                          "p.json no/such/folder/i.json",
                                          "folder i.json",
                                          "p.json folder",
                                          "/proc/p.json i.json",
                                          "p.json /proc/i.json"};
    for (size_t i = 0; i < COUNT_OF(outputs); i++) {
        run_program(&r, &s, NULL, "prove %s %s %s", curve_file("bn128", "base/circuit.zkey"),
                    curve_file("bn128", "base/witness.wtns"), outputs[i]);
        expect(&r, 2, NULL);
        CHECK_MSG(!strstr(r.err, "backend"), "%s: the work began: %s", outputs[i], r.err);
        CHECK_STR("", r.out);
        run_free(&r);
        CHECK_EQ(1, scratch_files(&s));
    }
}

static void claim_read_only_folder(void) {
    if (geteuid() == 0) {
        check_skip("root may write everywhere");
    }
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    run_script(
        &r, &s,
        "mkdir ro && chmod 555 ro && \"$BELLOWS\" prove --backend cpu %s %s ro/p.json i.json",
        curve_file("bn128", "base/circuit.zkey"), curve_file("bn128", "base/witness.wtns"));
    expect(&r, 2, "ro/p.json");
    run_free(&r);
    run_script(&r, &s, "chmod 755 ro && rmdir ro");
    run_free(&r);
    CHECK_EQ(0, scratch_files(&s));
}

static void claim_old_outputs_stay(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    write_text(scratch_path(&s, "p.json"), "old proof");
    write_text(scratch_path(&s, "i.json"), "old public");
    run_program(&r, &s, NULL, "prove --backend cpu %s %s p.json i.json",
                curve_file("bn128", "mul-contrib/circuit.zkey"),
                curve_file("bn128", "bad/unsatisfied.wtns"));
    expect(&r, 1, NULL);
    run_free(&r);
    CHECK_EQ(2, scratch_files(&s));
    char *old = file_text(scratch_path(&s, "p.json"));
    CHECK_STR("old proof", old);
    mem_free(old);
    run_program(&r, &s, NULL, "prove --backend cpu %s %s p.json i.json",
                curve_file("bn128", "base/circuit.zkey"), curve_file("bn128", "base/witness.wtns"));
    expect(&r, 0, NULL);
    run_free(&r);
    same_text(curve_file("bn128", "base/public.json"), scratch_path(&s, "i.json"));
}

static void claim_paths(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    run_script(&r, &s, "cp %s k.zkey; cp %s w.wtns; ln -s k.zkey link",
               curve_file("bn128", "base/circuit.zkey"), curve_file("bn128", "base/witness.wtns"));
    run_free(&r);
    static const struct {
        const char *line, *needle;
    } rows[] = {
        {"- - p.json i.json", "standard input"},
        {"- w.wtns p.json i.json", "standard input is empty"},
        {"k.zkey w.wtns - -", "standard output"},
        {"k.zkey w.wtns - i.json --json", "--json"},
        {"k.zkey w.wtns p.json p.json", "same file"},
        {"k.zkey w.wtns k.zkey i.json", "k.zkey"},
        {"k.zkey w.wtns p.json w.wtns", "w.wtns"},
        {"k.zkey w.wtns link i.json", "link"},
        {"k.zkey w.wtns ./k.zkey i.json", "k.zkey"},
        {"k.zkey w.wtns p.json i.json x.json", "x.json"},
        {"k.zkey '' p.json i.json", "WITNESS"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        run_program(&r, &s, NULL, "prove --backend cpu %s", rows[i].line);
        expect(&r, 2, rows[i].needle);
        run_free(&r);
        CHECK_EQ(3, scratch_files(&s));
    }
    run_script(&r, &s, "cmp k.zkey %s && cmp w.wtns %s", curve_file("bn128", "base/circuit.zkey"),
               curve_file("bn128", "base/witness.wtns"));
    expect(&r, 0, NULL);
    run_free(&r);
}

static void claim_streams(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    run_program(&r, &s, curve_file("bn128", "base/witness.wtns"),
                "prove --backend cpu %s - - public.json", curve_file("bn128", "base/circuit.zkey"));
    expect(&r, 0, NULL);
    CHECK_HAS(r.out, "{\n \"pi_a\": [");
    CHECK(ends_with(r.out, " \"curve\": \"bn128\"\n}\n"));
    write_text(scratch_path(&s, "proof.json"), r.out);
    run_free(&r);
    run_program(&r, &s, scratch_path(&s, "proof.json"), "verify %s public.json -",
                curve_file("bn128", "base/verification_key.json"));
    expect(&r, 0, NULL);
    run_free(&r);
    run_program(&r, &s, curve_file("bn128", "base/circuit.zkey"),
                "prove --backend cpu - %s proof.json -", curve_file("bn128", "base/witness.wtns"));
    expect(&r, 0, NULL);
    CHECK_STR("[\n \"55132\",\n \"3\"\n]\n", r.out);
    run_free(&r);
    run_script(&r, &s, "\"$BELLOWS\" prove --backend cpu %s %s - i.json > /dev/full",
               curve_file("bn128", "base/circuit.zkey"), curve_file("bn128", "base/witness.wtns"));
    expect(&r, 2, "No space");
    run_free(&r);
    CHECK(!file_exists(scratch_path(&s, "i.json")));
}

/* Who only wants the time, or to know whether it works, names one sink for both; nothing else may be named twice. */
static void claim_null_outputs(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    run_program(&r, &s, NULL, "prove --backend cpu %s %s /dev/null /dev/null",
                curve_file("bn128", "base/circuit.zkey"), curve_file("bn128", "base/witness.wtns"));
    expect(&r, 0, NULL);
    run_free(&r);
    run_program(&r, &s, NULL, "prove --backend cpu %s %s /dev/stdout /dev/stdout",
                curve_file("bn128", "base/circuit.zkey"), curve_file("bn128", "base/witness.wtns"));
    expect(&r, 2, "same file");
    run_free(&r);
    CHECK_EQ(0, scratch_files(&s));
}

/* What refused the memory is named, so that nobody looks for it in the machine. */
static void claim_address_space(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    run_script(&r, &s,
               "ulimit -v 90000; \"$BELLOWS\" --version || exit 77; "
               "\"$BELLOWS\" prove --backend cpu --threads 64 %s %s p.json i.json",
               curve_file("bn128", "base/circuit.zkey"), curve_file("bn128", "base/witness.wtns"));
    if (r.exit_code == 77 || r.exit_code < 0) {
        run_free(&r);
        scratch_close(&s); /* a skip does not come back */
        check_skip("this build cannot even start in so little address space");
    }
    expect(&r, 3, "ulimit -v): 87 MiB");
    run_free(&r);
    CHECK_EQ(0, scratch_files(&s));
}

/* A bellman key alone cannot prove: which file, and what to do. */
static void claim_bare_params(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    run_program(&r, &s, NULL, "prove --backend cpu %s %s",
                curve_file("bls12381", "base/circuit.params"),
                curve_file("bls12381", "base/witness.wtns"));
    expect(&r, 2, "base/circuit.params: a bellman key");
    CHECK_HAS(r.err, "bellows key import KEY");
    run_free(&r);
    CHECK_EQ(0, scratch_files(&s));
}

/* The next file to be opened must not get the number of a closed stream, and with it what was meant for that stream. */
static void claim_closed_streams(void) {
    static const struct {
        const char *outputs, *how;
        int exit_code;
    } rows[] = {{"p.json -", ">&-", 2},
                {"- i.json", ">&-", 2},
                {"--seed 7 p.json i.json", "2>&-", 0},
                {"--seed 7 p.json i.json", "<&- >&- 2>&-", 0}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        AUTO(scratch_close) struct scratch s = {0};
        struct run r;
        scratch_open(&s);
        run_script(&r, &s, "\"$BELLOWS\" prove --backend cpu %s %s %s %s",
                   curve_file("bn128", "base/circuit.zkey"),
                   curve_file("bn128", "base/witness.wtns"), rows[i].outputs, rows[i].how);
        expect(&r, rows[i].exit_code, rows[i].exit_code ? "standard output" : NULL);
        run_free(&r);
        CHECK_EQ(rows[i].exit_code ? 0 : 2, scratch_files(&s));
        if (!rows[i].exit_code) {
            run_program(&r, &s, NULL, "verify %s i.json p.json",
                        curve_file("bn128", "base/verification_key.json"));
            expect(&r, 0, NULL);
            run_free(&r);
        }
    }
}

/* `ulimit -f`: the signal that comes with it would end the process without a word. */
static void claim_file_size_limit(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    run_script(&r, &s,
               "ulimit -f 1; \"$BELLOWS\" key import %s big.key; code=$?; "
               "\"$BELLOWS\" key export-vkey %s vkey.json && exit 9; exit $code",
               curve_file("bn128", "base/circuit.zkey"), curve_file("bn128", "base/circuit.zkey"));
    expect(&r, 2, "big.key: no room");
    CHECK_HAS(r.err, "vkey.json: File too large");
    run_free(&r);
    CHECK_EQ(0, scratch_files(&s));
}

static void claim_bellman(void) {
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        AUTO(scratch_close) struct scratch s = {0};
        struct run r;
        scratch_open(&s);
        run_program(&r, &s, NULL, "prove --backend cpu --format bellman %s %s p.bin public.json",
                    curve_file(curves[i], "base/circuit.zkey"),
                    curve_file(curves[i], "base/witness.wtns"));
        expect(&r, 0, NULL);
        run_free(&r);
        struct bytes_mut proof = {0};
        CHECK_OK(file_read_all(&proof, scratch_path(&s, "p.bin"), 1000));
        CHECK_EQ(i == 0 ? 128 : 192, proof.len);
        mem_free(proof.ptr);
        run_program(&r, &s, NULL, "verify --format bellman %s public.json p.bin",
                    curve_file(curves[i], "base/verification_key.json"));
        expect(&r, 0, NULL);
        run_free(&r);
        run_program(&r, &s, NULL, "verify %s public.json p.bin",
                    curve_file(curves[i], "base/verification_key.json"));
        expect(&r, 2, "p.bin");
        run_free(&r);
        if (i == 0) {
            continue;
        }
        /* bellman's own verifying key, by path and by stream, and the parameters that begin with it; cut */
        run_script(&r, &s,
                   "set -e; v=%s/base; verify=\"$BELLOWS verify --format bellman\"; "
                   "$BELLOWS key import $v/circuit.params k --circuit $v/circuit.r1cs; "
                   "$BELLOWS prove --backend cpu --format bellman k $v/witness.wtns p i; "
                   "$verify $v/circuit.vk i p; $verify $v/circuit.params i p; "
                   "$verify - i p <$v/circuit.vk; head -c -1 $v/circuit.vk >cut; ! $verify cut i p",
                   curve_file(curves[i], ""));
        expect(&r, 0, "cut");
        run_free(&r);
    }
}

/* Evaluations stand where a witness may: with one seed the same proof; a wrong row is exit code 1, and --r1cs names it. */
static void claim_evaluations(void) {
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        AUTO(scratch_close) struct scratch s = {0};
        struct run r;
        struct bytes_mut file = {0};
        char zkey[600];
        scratch_open(&s);
        snprintf(zkey, sizeof zkey, "%s", curve_file(curves[i], "bits/circuit.zkey"));
        run_script(
            &r, &s,
            "set -e; $BELLOWS prove --backend cpu --seed 5 %s %s p1 i1; "
            "$BELLOWS prove --backend cpu --seed 5 %s %s --r1cs %s p2 i2; cmp p1 p2; cmp i1 i2",
            zkey, curve_file(curves[i], "bits/witness.wtns"), zkey,
            curve_file(curves[i], "bits/witness.evaluations"),
            curve_file(curves[i], "bits/circuit.r1cs"));
        expect(&r, 0, NULL);
        run_free(&r);
        CHECK_OK(file_read_all(&file, curve_file(curves[i], "bits/witness.evaluations"), 1 << 20));
        file.ptr[64 + 32 * 3] ^= 1; /* a of row 3 */
        CHECK_OK(file_write_all(scratch_path(&s, "wrong"), bytes_of(file.ptr, file.len)));
        mem_free(file.ptr);
        run_program(&r, &s, NULL, "prove --backend cpu %s wrong p3 i3", zkey);
        expect(&r, 1, "witness with its a and b does not satisfy");
        run_free(&r);
        run_program(&r, &s, NULL, "prove --backend cpu %s wrong p3 i3 --r1cs %s", zkey,
                    curve_file(curves[i], "bits/circuit.r1cs"));
        expect(&r, 1, "a or b of constraint 3");
        run_free(&r);
        run_program(&r, &s, NULL, "prove --backend cpu %s %s p3 i3", zkey,
                    curve_file(curves[i], "base/witness.evaluations"));
        expect(&r, 2, "wires");
        run_free(&r);
        CHECK_EQ(5, scratch_files(&s));
    }
}

static void claim_tiers(void) {
    static const char *const tiers[] = {"portable", "adx", "ifma"};
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    size_t worked = 0;
    scratch_open(&s);
    for (size_t i = 0; i < COUNT_OF(tiers); i++) {
        run_program(&r, &s, NULL,
                    "prove --backend cpu --cpu-tier %s --seed 1 %s %s p%zu.json i.json", tiers[i],
                    curve_file("bn128", "chain200/circuit.zkey"),
                    curve_file("bn128", "chain200/witness.wtns"), i);
        if (r.exit_code != 0) {
            expect(&r, 2, tiers[i]); /* this processor has not got it */
        } else {
            char name[16];
            snprintf(name, sizeof name, "p%zu.json", i);
            same_text(scratch_path(&s, "p0.json"), scratch_path(&s, name));
            worked++;
        }
        run_free(&r);
    }
    CHECK(worked >= 1);
}

static void claim_cuda(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    CHECK(!setenv("CUDA_VISIBLE_DEVICES", "", 1)); /* no device, whatever this machine has */
    run_program(&r, &s, NULL, "--version");
    bool cpu_only = strstr(r.out, "cpu only") != NULL;
    run_free(&r);
    run_program(&r, &s, NULL, "prove --backend cuda %s %s",
                curve_file("bn128", "base/circuit.zkey"), curve_file("bn128", "base/witness.wtns"));
    expect(&r, 3, "never falls back");
    run_free(&r);
    CHECK_EQ(0, scratch_files(&s));
    run_program(&r, &s, NULL, "prove --device-memory-max much %s %s",
                curve_file("bn128", "base/circuit.zkey"), curve_file("bn128", "base/witness.wtns"));
    expect(&r, 2, "much");
    run_free(&r);
    run_program(&r, &s, NULL, "prove %s %s", curve_file("bn128", "base/circuit.zkey"),
                curve_file("bn128", "base/witness.wtns"));
    expect(&r, 0, cpu_only ? "auto: CUDA is not compiled into this build" : "(auto: GPU: ");
    run_free(&r);
}

/* ── Ctrl-C ── */

static void big_case(const struct scratch *s, uint32_t constraints) {
    struct circuit k;
    struct file_bytes zkey, wtns;
    circuit_chain(&k, curve_by_id(CURVE_BN254), constraints, 1, 3);
    circuit_setup(&zkey, &k, check_rng());
    circuit_wtns(&wtns, &k);
    CHECK_OK(file_write_all(scratch_path(s, "k.zkey"), bytes_of(zkey.ptr, zkey.len)));
    CHECK_OK(file_write_all(scratch_path(s, "w.wtns"), bytes_of(wtns.ptr, wtns.len)));
    mem_free(zkey.ptr);
    mem_free(wtns.ptr);
    circuit_done(&k);
}

static void claim_signals(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    big_case(&s, 2000);
    run_program(&r, &s, NULL, "prove --backend cpu --threads 1 --cpu-tier portable k.zkey w.wtns");
    expect(&r, 0, NULL);
    uint64_t whole_ns = r.elapsed_ns;
    run_free(&r);
    CHECK(!unlink(scratch_path(&s, "proof.json")) && !unlink(scratch_path(&s, "public.json")));
    size_t stopped = 0;
    enum { TRIES = 24 };
    for (size_t i = 0; i < TRIES; i++) {
        struct program p;
        program_start(&p, &s, "prove --backend cpu --threads 1 --cpu-tier portable k.zkey w.wtns");
        clock_sleep_ns(whole_ns * i / TRIES);
        kill(p.pid, signals[i % COUNT_OF(signals)]);
        program_wait(&r, &p);
        if (r.exit_code == 0) {
            CHECK_EQ(4, scratch_files(&s));
        } else {
            CHECK_EQ(signals[i % COUNT_OF(signals)], r.signal);
            stopped++;
        }
        size_t files =
            scratch_files(&s); /* the signal may come when both names are there already */
        CHECK(files == 2 || files == 4);
        if (files == 4) {
            CHECK(!unlink(scratch_path(&s, "proof.json")));
            CHECK(!unlink(scratch_path(&s, "public.json")));
        }
        run_free(&r);
    }
    CHECK(stopped > 0);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"every case is proved and verifies, silently, with snarkjs's public.json",
         claim_all_cases},
        {"scripts written for snarkjs and rapidsnark run", claim_scripts},
        {"blinding is fresh each time, and --seed is only for tests", claim_blinding},
        {"--json tells the whole story in one object", claim_json},
        {"--json carries errors with their code", claim_json_error},
        {"an unsatisfied witness is exit code 1, a sentence and no file", claim_unsatisfied},
        {"every bad file is refused at once, by name, leaving nothing", claim_bad_files},
        {"a bad key's message names the section", claim_bad_names_section},
        {"a key without section 10 proves, with a warning (A01)", claim_unfinished_key},
        {"files that do not fit each other are refused with both counts", claim_misfits},
        {"a forgeable key needs --allow-insecure-keys", claim_insecure},
        {"outputs that cannot be written are refused before the work", claim_unwritable},
        {"a read-only folder is refused before the work", claim_read_only_folder},
        {"old outputs stay until both new ones are there", claim_old_outputs_stay},
        {"paths that would destroy an input are refused", claim_paths},
        {"\"-\" reads standard input and writes standard output", claim_streams},
        {"/dev/null takes both outputs, other names only one", claim_null_outputs},
        {"memory that a limit refused is said with the limit (D07)", claim_address_space},
        {"a bellman key without its circuit is refused by name", claim_bare_params},
        {"a closed standard stream gets nothing into another file", claim_closed_streams},
        {"a file size limit is a sentence, not the end by a signal", claim_file_size_limit},
        {"--format bellman writes three compressed points that verify", claim_bellman},
        {"evaluations are taken where a witness is, and a wrong row is found", claim_evaluations},
        {"every tier gives the same proof or says that it is missing", claim_tiers},
        {"--backend cuda never falls back; auto says why it did", claim_cuda},
        {"a signal at any moment leaves both outputs or none", claim_signals},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
