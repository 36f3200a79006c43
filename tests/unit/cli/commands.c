/* The program's front door, and the commands that look at keys, plan and bench. */
#include "node/base/file.h"
#include "node/base/json.h"
#include "node/base/mem.h"
#include "tests/check/check.h"
#include "tests/unit/cli/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void claim_front_door(void) {
    static const struct {
        const char *line;
        int exit_code;
        const char *out, *err;
    } rows[] = {
        {"", 2, "usage: bellows COMMAND", ""},
        {"--help", 0, "prove", ""},
        {"-h", 0, "prove", ""},
        {"help", 0, "prove", ""},
        {"help --json", 0, "\"flag\": \"tls-ca\"", ""},
        {"help key check", 0, "bellows key check: ", ""},
        {"help prove", 0, "usage: bellows prove", ""},
        {"help key", 0, "key inspect", ""},
        {"help provee", 2, "", "did you mean `bellows prove`?"},
        {"--version", 0, "bellows ", ""},
        {"version", 0, "bellows ", ""},
        {"-V", 0, "bellows ", ""},
        {"prov", 2, "", "did you mean `bellows prove`?"},
        {"verfiy", 2, "", "did you mean `bellows verify`?"},
        {"plonk prove", 2, "", "unknown command \"plonk\"; bellows proves with Groth16 keys only"},
        {"fullprove input.json c.wasm k.zkey", 2, "", "calculate the witness"},
        {"wtns calculate c.wasm input.json", 2, "wtns check", "calculate the witness"},
        {"wchk c.r1cs w.wtns", 2, "", "`bellows wtns check`"},
        {"prover k.zkey w.wtns p.json i.json", 2, "", "`bellows prove` takes the same"},
        {"zkey contribute 0.zkey 1.zkey", 2, "", "`bellows key export-vkey`"},
        {"prove a\033[2Jb\nc.zkey", 2, "", "bellows prove: a?[2Jb?c.zkey: No such file"},
        {"groth16 prove a b c d", 2, "", "are `bellows prove` and `bellows verify`"},
        {"zkey export verificationkey", 2, "", "is `bellows key export-vkey`"},
        {"key", 2, "key inspect", "needs a second word"},
        {"key --help", 0, "key inspect", ""},
        {"key inspcet", 2, "key inspect", "second word"},
        {"prove --thread 2", 2, "", "did you mean --threads?"},
        {"prove --backen cpu", 2, "", "did you mean --backend?"},
        {"prove --frobnicate", 2, "", "unknown option --frobnicate"},
        {"prove -j", 2, "", "unknown option -j"},
        {"prove --threads", 2, "", "--threads needs a value"},
        {"prove --threads zero", 2, "", "whole number from 1"},
        {"prove --threads 0", 2, "", "whole number from 1"},
        {"prove --threads 5000", 2, "", "to 1024"},
        {"prove --threads 1 --threads 2", 2, "", "given twice"},
        {"prove --backend gpu", 2, "", "auto|cuda|cpu"},
        {"prove --json=maybe", 2, "", "neither yes nor no"},
        {"prove a b c d e", 2, "", "one argument too many"},
        {"key synth --log2 5 a a", 2, "", "KEY and WITNESS are the same file, a"},
        {"prove --device 0 --backend cpu", 2, "", "--device names a GPU"},
    };
    AUTO(scratch_close) struct scratch s = {0};
    scratch_open(&s);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct run r;
        run_program(&r, &s, NULL, "%s", rows[i].line);
        CHECK_MSG(r.exit_code == rows[i].exit_code, "`bellows %s`: exit code %d, want %d: %s%s",
                  rows[i].line, r.exit_code, rows[i].exit_code, r.out, r.err);
        run_expect(&r, rows[i].exit_code, rows[i].out, rows[i].err);
        run_free(&r);
    }
    CHECK_EQ(0, scratch_files(&s));
}

/* The one list of exit codes, where people look for it. */
static void claim_exit_codes(void) {
    static const char *const meanings[] = {
        "0 ok",      "1 invalid", "2 usage or input", "3 device or memory", "4 network or stopped",
        "5 internal"};
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    char path[512];
    const char *root = getenv("BELLOWS_ROOT");
    CHECK_MSG(root, "BELLOWS_ROOT is not set: run through meson test");
    scratch_open(&s);
    snprintf(path, sizeof path, "%s/README.md", root);
    char *readme = file_text(path);
    run_program(&r, &s, NULL, "help");
    for (size_t i = 0; i < COUNT_OF(meanings); i++) {
        CHECK_HAS(r.out, meanings[i]);
        CHECK_HAS(readme, meanings[i]);
    }
    mem_free(readme);
    run_free(&r);
    for (int code = 0; code < ERR_COUNT; code++) {
        CHECK((size_t)err_exit_code((enum err)code) < COUNT_OF(meanings));
    }
}

/* An output that is an input, under whatever name: refused, and the input stays. */
static void claim_inputs_stay(void) {
    static const struct {
        const char *line, *input;
    } rows[] = {
        {"key import k.zkey k.zkey", "k.zkey"},
        {"key import k.zkey ./k.zkey", "k.zkey"},
        {"key import k.zkey link", "k.zkey"},
        {"key import x.params c.r1cs --circuit c.r1cs", "c.r1cs"},
        {"key export-vkey k.zkey k.zkey", "k.zkey"},
        {"key export-vkey k.zkey link", "k.zkey"},
        {"wtns export json w.wtns w.wtns", "w.wtns"},
    };
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    run_script(
        &r, &s, "cp %s k.zkey; cp %s c.r1cs; cp %s w.wtns; cp %s x.params; ln -s k.zkey link",
        curve_file("bls12381", "base/circuit.zkey"), curve_file("bls12381", "base/circuit.r1cs"),
        curve_file("bls12381", "base/witness.wtns"), curve_file("bls12381", "base/circuit.params"));
    run_free(&r);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        run_program(&r, &s, NULL, "%s", rows[i].line);
        CHECK_MSG(r.exit_code == 2, "%s: exit code %d", rows[i].line, r.exit_code);
        run_expect(&r, 2, "", "is also an input; the order is");
        run_free(&r);
    }
    run_script(&r, &s, "cmp k.zkey %s && cmp c.r1cs %s && cmp w.wtns %s && test -L link",
               curve_file("bls12381", "base/circuit.zkey"),
               curve_file("bls12381", "base/circuit.r1cs"),
               curve_file("bls12381", "base/witness.wtns"));
    run_expect(&r, 0, "", "");
    run_free(&r);
    CHECK_EQ(5, scratch_files(&s));
}

/* Streams without an end and texts that are too large are bad input, wherever they are given: exit code 2, in bounded memory. */
static void claim_endless_inputs(void) {
    static const char *const lines[] = {
        "verify /dev/zero i.json p.json", "verify v.json /dev/zero p.json",
        "verify v.json i.json /dev/zero", "verify v.json huge.json p.json",
        "verify huge.json i.json p.json", "calldata v.json huge.json p.json",
        "config --config /dev/zero",      "verify v.json deep.json p.json",
    };
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    run_script(&r, &s,
               "cp %s v.json; cp %s i.json; cp %s p.json; echo [ > huge.json; "
               "truncate -s 70M huge.json; head -c 100 /dev/zero | tr '\\0' '[' > deep.json",
               curve_file("bn128", "base/verification_key.json"),
               curve_file("bn128", "base/public.json"), curve_file("bn128", "base/proof.json"));
    run_free(&r);
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        run_script(
            &r, &s,
            "(ulimit -v 400000; \"$BELLOWS\" --version) >/dev/null 2>&1 && ulimit -v 400000; "
            "\"$BELLOWS\" %s",
            lines[i]);
        CHECK_MSG(r.exit_code == 2, "%s: exit code %d: %s%s", lines[i], r.exit_code, r.out, r.err);
        CHECK_MSG(r.elapsed_ns < 5000000000u, "%s: %llu ms", lines[i],
                  (unsigned long long)(r.elapsed_ns / 1000000));
        run_free(&r);
    }
}

/* Every command of the list has a page that names the command and --help itself. */
static void claim_help_pages(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r, page;
    size_t count = 0;
    scratch_open(&s);
    run_program(&r, &s, NULL, "--help");
    for (char *save = NULL, *line = strtok_r(r.out, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char *end = line;
        if (strncmp(line, "  ", 2) != 0 || line[2] < 'a' || line[2] > 'z') {
            continue;
        }
        end = strstr(line + 2, "  ");
        CHECK(end);
        *end = '\0';
        run_program(&page, &s, NULL, "%s --help", line + 2);
        char title[80];
        snprintf(title, sizeof title, "bellows %s: ", line + 2);
        run_expect(&page, 0, title, "");
        CHECK_HAS(page.out, "--help");
        CHECK_HAS(page.out, "usage: bellows");
        run_free(&page);
        count++;
    }
    run_free(&r);
    CHECK(count >= 7);
}

/* Whatever is printed, little or much: on a full disk or a closed stream the exit code says that it did not arrive. */
static void claim_closed_output(void) {
    static const char *const lines[] = {"--help",          "--version",    "help --json",
                                        "config --sample", "prove --help", "key --help"};
    static const char *const streams[] = {"> /dev/full", ">&-"};
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    for (size_t i = 0; i < COUNT_OF(streams); i++) {
        for (size_t k = 0; k < COUNT_OF(lines); k++) {
            run_script(&r, &s, "\"$BELLOWS\" %s %s", lines[k], streams[i]);
            CHECK_MSG(r.exit_code == 2, "%s %s: exit code %d", lines[k], streams[i], r.exit_code);
            run_expect(&r, 2, "", "standard output");
            run_free(&r);
        }
        run_script(&r, &s, "\"$BELLOWS\" verify %s %s %s %s",
                   curve_file("bn128", "base/circuit.zkey"),
                   curve_file("bn128", "base/public.json"), curve_file("bn128", "base/proof.json"),
                   streams[i]);
        run_expect(&r, 2, "", "standard output");
        run_free(&r);
    }
}

static void claim_export(void) {
    static const char *const cases[] = {"bn128/base",    "bls12381/base", "bn128/manypub",
                                        "bn128/nopub",   "bls12381/min",  "bls12381/unused-O0",
                                        "bn128/chain200"};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(scratch_close) struct scratch s = {0};
        struct run r;
        scratch_open(&s);
        run_script(&r, &s,
                   "\"$BELLOWS\" key export-vkey --allow-insecure-keys %s/circuit.zkey && "
                   "{ cat verification_key.json; echo; } | cmp - %s/verification_key.json",
                   check_vectors(cases[i]), check_vectors(cases[i]));
        run_expect(&r, 0, "", "");
        CHECK_STR("", r.err);
        run_free(&r);
    }
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    run_program(&r, &s, NULL, "key export-vkey %s",
                curve_file("bn128", "base-uncontributed/circuit.zkey"));
    run_expect(&r, 2, "", "--allow-insecure-keys");
    run_free(&r);
    CHECK_EQ(0, scratch_files(&s));
}

static void claim_inspect(void) {
    AUTO(scratch_close) struct scratch s = {0};
    AUTO(json_free) cJSON *json = NULL;
    const cJSON *member = NULL;
    uint64_t number = 0;
    size_t sections = 0;
    struct run r;
    scratch_open(&s);
    run_program(&r, &s, NULL, "key inspect %s", curve_file("bls12381", "mul-beacon/circuit.zkey"));
    run_expect(&r, 0, "bls12381", "");
    CHECK_HAS(r.out, "contributions  3");
    CHECK_HAS(r.out, "4 = 2^2 rows");
    CHECK_HAS(r.out, "sha256");
    CHECK(!strstr(r.out, "WARNING"));
    run_free(&r);
    run_program(&r, &s, NULL, "key inspect %s",
                curve_file("bn128", "base-uncontributed/circuit.zkey"));
    run_expect(&r, 0, "forge", "");
    run_free(&r);
    run_program(&r, &s, NULL, "key inspect --json %s", curve_file("bn128", "base/circuit.zkey"));
    run_expect(&r, 0, "", "");
    CHECK_OK(json_parse(&json, bytes_of(r.out, strlen(r.out)), "inspect"));
    CHECK_OK(json_number_member(&number, json, 8, 8, "wires"));
    CHECK_OK(json_number_member(&number, json, 2, 2, "public_signals"));
    CHECK_OK(json_number_member(&number, json, 8, 8, "domain_size"));
    CHECK_OK(json_number_member(&number, json, 1, 1, "contributions"));
    CHECK_OK(json_list_member(&member, &sections, json, "sections"));
    CHECK_EQ(10, sections);
    run_free(&r);
    run_program(&r, &s, NULL, "key inspect %s", curve_file("bls12381", "base/circuit.params"));
    run_expect(&r, 0, "bellman", "");
    CHECK_HAS(r.out, "powers");
    run_free(&r);
    run_program(&r, &s, NULL, "key inspect --json %s", curve_file("bn128", "bad/plonk.zkey"));
    run_expect(&r, 2, "\"code\": \"E_FORMAT\"", "PLONK");
    run_free(&r);
}

static void claim_check(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    run_program(&r, &s, NULL, "key check %s", curve_file("bls12381", "bits/circuit.zkey"));
    run_expect(&r, 0, "OK", "");
    CHECK_STR("", r.err);
    run_free(&r);
    run_program(&r, &s, NULL, "key check --json %s", curve_file("bn128", "base/circuit.zkey"));
    run_expect(&r, 0, "\"remembered\": false", "");
    run_free(&r);
    run_program(&r, &s, NULL, "key check --allow-insecure-keys %s",
                curve_file("bn128", "bad/off-curve-a.zkey"));
    run_expect(&r, 2, "", "section 5");
    run_free(&r);
}

static void claim_plan(void) {
    AUTO(scratch_close) struct scratch s = {0};
    AUTO(json_free) cJSON *json = NULL;
    uint64_t number = 0;
    struct run r;
    scratch_open(&s);
    run_program(&r, &s, NULL, "plan --backend cpu --threads 2 %s",
                curve_file("bn128", "chain200/circuit.zkey"));
    run_expect(&r, 0, "fits           yes", "");
    CHECK_HAS(r.out, "MiB");
    run_free(&r);
    run_program(&r, &s, NULL, "plan --backend cpu --json %s",
                curve_file("bn128", "chain200/circuit.zkey"));
    run_expect(&r, 0, "\"fits\": true", "");
    CHECK_OK(json_parse(&json, bytes_of(r.out, strlen(r.out)), "plan"));
    CHECK_OK(json_number_member(&number, json, 1, (uint64_t)1 << 40, "host_bytes"));
    CHECK_OK(json_number_member(&number, json, 256, 256, "domain_size"));
    run_free(&r);
    run_program(&r, &s, NULL, "plan --backend cpu --memory 64KiB --json %s",
                curve_file("bn128", "chain200/circuit.zkey"));
    run_expect(&r, 3, "\"fits\": false", "");
    run_free(&r);
    run_program(&r, &s, NULL, "plan --backend cpu --memory 64KiB %s",
                curve_file("bn128", "chain200/circuit.zkey"));
    run_expect(&r, 3, "by --memory", "0.1 MiB are allowed; raise");
    run_free(&r);
}

static void claim_bench(void) {
    AUTO(scratch_close) struct scratch s = {0};
    AUTO(json_free) cJSON *json = NULL;
    const cJSON *row = NULL;
    uint64_t least = 0, median = 0, most = 0;
    const char *commit = NULL;
    struct run r;
    scratch_open(&s);
    run_program(&r, &s, NULL, "bench prove --backend cpu --runs 5 --warmups 1 %s %s",
                curve_file("bn128", "mul/circuit.zkey"), curve_file("bn128", "mul/witness.wtns"));
    run_expect(&r, 0, "\"runs\": 5", "");
    CHECK_OK(json_parse(&json, bytes_of(r.out, strlen(r.out)), "bench"));
    CHECK_OK(json_text_member(&commit, json, "commit"));
    CHECK_OK(json_member(&row, json, "prove_ns"));
    CHECK_OK(json_number_member(&least, row, 1, 60000000000u, "least"));
    CHECK_OK(json_number_member(&median, row, 1, 60000000000u, "median"));
    CHECK_OK(json_number_member(&most, row, 1, 60000000000u, "most"));
    CHECK(least <= median && median <= most);
    run_free(&r);
    CHECK_EQ(0, scratch_files(&s));
}

static void claim_doctor(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    run_program(&r, &s, NULL, "doctor --part host --cache %s --json", scratch_path(&s, "cache"));
    run_expect(&r, 0, "\"check\": \"hugepages\"", "");
    run_free(&r);
    run_program(&r, &s, NULL, "doctor --part host --cache /proc/nowhere");
    run_expect(&r, 2, "--cache", "the host failed"); /* cannot be written */
    run_free(&r);
    run_program(&r, &s, NULL, "doctor --part network --server nats://127.0.0.1:1");
    run_expect(&r, 4, "no server at nats://127.0.0.1:1", "the network failed");
    run_free(&r);
    run_program(&r, &s, NULL, "list --server nats://192.0.2.1:4222");
    run_expect(&r, 2, "", "plaintext = yes"); /* another machine, without TLS */
    run_free(&r);
}

/* A number of the line, or of one of its objects ("run_ns.median"). */
static double number_of(const cJSON *json, const char *path) {
    char name[64];
    snprintf(name, sizeof name, "%s", path);
    char *dot = strchr(name, '.');
    if (dot) {
        *dot = '\0';
        json = cJSON_GetObjectItem(json, name);
        path = dot + 1;
    }
    const cJSON *item = cJSON_GetObjectItem(json, path);
    CHECK_MSG(cJSON_IsNumber(item), "no number %s", path);
    return item->valuedouble;
}

static void claim_bench_ops(void) {
    static const char *const lines[] = {
        "bench msm --log2 8 --runs 3",
        "bench msm --log2 8 --runs 3 --curve bls12381 --group g2 --scalars bits",
        "bench msm --log2 8 --runs 3 --scalars equal --threads 1 --cpu-tier portable",
        "bench msm --log2 8 --runs 3 --scalars skewed --backend cpu",
        "bench ntt --log2 10 --runs 3",
        "bench ntt --log2 1 --runs 1 --warmups 0 --curve bls12381 --cpu-tier portable",
        "bench h --log2 8 --runs 3 --backend cpu",
        "bench h --log2 5 --runs 1 --curve bls12381 --threads 1 --cpu-tier portable",
    };
    AUTO(scratch_close) struct scratch s = {0};
    scratch_open(&s);
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        AUTO(json_free) cJSON *json = NULL;
        struct run r;
        run_program(&r, &s, NULL, "%s", lines[i]);
        run_expect(&r, 0, "\"device\": \"cpu: ", "");
        CHECK_OK(json_parse(&json, bytes_of(r.out, strlen(r.out)), "bench"));
        CHECK(number_of(json, "run_ns.median") >= 1);
        CHECK(number_of(json, "run_ns.least") <= number_of(json, "run_ns.most"));
        double seconds = number_of(json, "run_ns.median") / 1e9,
               share = number_of(json, "share_of_ceiling"),
               again = number_of(json, "products") / seconds /
                       number_of(json,
                                 strstr(lines[i], "msm") ? "ceiling_fp_per_s" : "ceiling_fr_per_s");
        CHECK_MSG(share > again - 0.01 && share < again * 1.01 + 0.01, "%s: share %g, not %g",
                  lines[i], share, again);
        run_free(&r);
    }
}

/* Wider fields are slower, a better tier is not slower than a plain one by much, two lines a run. */
static void claim_bench_field(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    double fp[2];
    static const char *const curves[] = {"bn128", "bls12381"};
    scratch_open(&s);
    for (int i = 0; i < 2; i++) {
        AUTO(json_free) cJSON *json = NULL;
        run_program(&r, &s, NULL, "bench field --threads 1 --cpu-tier portable --runs 3 --curve %s",
                    curves[i]);
        run_expect(&r, 0, "\"field\": \"fr\"", "");
        char *end = strchr(r.out, '\n');
        CHECK(end);
        CHECK_OK(json_parse(&json, bytes_of(r.out, (size_t)(end - r.out)), "bench"));
        fp[i] = number_of(json, "products_per_s.most");
        run_free(&r);
    }
    CHECK_MSG(fp[0] > fp[1] && fp[1] > 1e5, "%g products a second of 4 words, %g of 6", fp[0],
              fp[1]);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"the front door knows its commands, options and their nearest names", claim_front_door},
        {"exit codes mean the same in help, README and table", claim_exit_codes},
        {"no output takes the place of an input", claim_inputs_stay},
        {"endless and oversized inputs are exit code 2", claim_endless_inputs},
        {"every listed command has a help page", claim_help_pages},
        {"an answer that cannot be written is no success", claim_closed_output},
        {"key export-vkey writes snarkjs's bytes", claim_export},
        {"key inspect shows shape, sections, contributions and danger", claim_inspect},
        {"key check passes sound keys and names the section of a bad point", claim_check},
        {"plan answers as a table and as JSON", claim_plan},
        {"bench prove prints median and spread of each step", claim_bench},
        {"doctor says what is wrong with cause and cure, by exit code", claim_doctor},
        {"bench msm, ntt and h time the operations and hold them against the ceiling",
         claim_bench_ops},
        {"bench field counts products", claim_bench_field},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
