/* `bellows wtns` from outside: what a broken constraint looks like, a witness as text, and the names of wires here and in `key inspect`. */
#include "node/base/file.h"
#include "node/base/mem.h"
#include "tests/check/check.h"
#include "tests/unit/cli/program.h"

#include <stdio.h>
#include <string.h>

/* The base circuit: wires 1, out, x, a, b, m = a·b, n, k; m lies at wire 5. */
static const char sym[] = "1,1,0,main.out\n2,2,0,main.x\n3,3,0,main.a\n4,4,0,main.b\n5,5,0,main.m\n"
                          "6,6,0,main.n\n7,7,0,main.k\n8,-1,0,main.gone\n9,5,1,main.part.m\n";

static const char *base(const char *name) {
    char tail[128];
    snprintf(tail, sizeof tail, "bn128/base/%s", name);
    return check_vectors(tail);
}

/* The base witness with another value of m, in the scratch folder. */
static void write_broken(const struct scratch *s) {
    struct bytes_mut wtns;
    CHECK_OK(file_read_all(&wtns, base("witness.wtns"), 1 << 20));
    wtns.ptr[76 + 32 * 5] = 34;
    CHECK_OK(file_write_all(scratch_path(s, "broken.wtns"), bytes_of(wtns.ptr, wtns.len)));
    mem_free(wtns.ptr);
}

static void claim_check(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    write_broken(&s);
    run_program(&r, &s, NULL, "wtns check %s %s", base("circuit.r1cs"), base("witness.wtns"));
    CHECK_EQ(0, r.exit_code);
    CHECK_STR("OK: all 4 constraints are satisfied\n", r.out);
    run_free(&r);
    run_program(&r, &s, NULL, "wtns check %s %s --json", base("circuit.r1cs"),
                base("witness.wtns"));
    CHECK_STR("{\"ok\": true, \"constraints\": 4}\n", r.out);
    run_free(&r);
    run_program(&r, &s, NULL, "wtns check %s broken.wtns", base("circuit.r1cs"));
    CHECK_EQ(1, r.exit_code);
    CHECK_HAS(r.out, "constraint 0: A · B = C is not satisfied\n");
    CHECK_HAS(r.out, "  C = -34  from\n      -1 · wire 5 = 34\n");
    CHECK_HAS(r.err, "constraint 0 is not satisfied; 2 of 4 constraints fail");
    run_free(&r);
    run_program(&r, &s, NULL, "wtns check %s broken.wtns --json", base("circuit.r1cs"));
    CHECK_EQ(1, r.exit_code);
    CHECK_HAS(r.out, "{\"ok\": false, \"constraint\": 0, \"error\": {\"code\": \"E_UNSAT\"");
    CHECK(!strstr(r.out, "34") && !strstr(r.err, "34")); /* no value enters an error */
    run_free(&r);
    run_program(&r, &s, NULL, "wtns check %s %s", check_vectors("bn128/mul/circuit.r1cs"),
                base("witness.wtns"));
    CHECK_EQ(2, r.exit_code);
    CHECK_HAS(r.err, "the witness has 8 values, the constraint system 4 wires");
    run_free(&r);
}

static void claim_names(void) {
    static const struct {
        const char *text, *error;
    } bad[] = {
        {"1,1,0\n", "line 1 is not"},
        {"1,1,0,main.a\nx\n", "line 2 is not"},
        {"1,a,0,main.a\n", "no number of a wire"},
        {"1,8,0,main.a\n", "names wire 8; the circuit has 8"},
    };
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    write_broken(&s);
    CHECK_OK(file_write_all(scratch_path(&s, "sym"), bytes_of(sym, sizeof sym - 1)));
    run_program(&r, &s, NULL, "wtns check %s broken.wtns --sym sym", base("circuit.r1cs"));
    CHECK_EQ(1, r.exit_code);
    CHECK_HAS(r.out, "-1 · wire 5 = 34  main.m\n");
    CHECK_HAS(r.out, "-1 · wire 3 = 5  main.a\n");
    run_free(&r);
    run_program(&r, &s, NULL, "key inspect %s --sym sym", base("circuit.zkey"));
    CHECK_HAS(r.out, "public 0       main.out\npublic 1       main.x\n");
    run_free(&r);
    run_program(&r, &s, NULL, "key inspect %s --sym sym --json", base("circuit.zkey"));
    CHECK_HAS(r.out, "\"public_names\": [\"main.out\", \"main.x\"]");
    run_free(&r);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        CHECK_OK(
            file_write_all(scratch_path(&s, "sym"), bytes_of(bad[i].text, strlen(bad[i].text))));
        run_program(&r, &s, NULL, "wtns check %s broken.wtns --sym sym", base("circuit.r1cs"));
        CHECK_EQ(2, r.exit_code);
        CHECK_HAS(r.err, bad[i].error);
        run_free(&r);
    }
}

static void claim_export(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    run_program(&r, &s, NULL, "wtns export json %s", base("witness.wtns"));
    CHECK_EQ(0, r.exit_code);
    CHECK_STR("", r.out);
    run_free(&r);
    char *text = file_text(scratch_path(&s, "witness.json"));
    CHECK_STR("[\n \"1\",\n \"55132\",\n \"3\",\n \"5\",\n \"7\",\n \"35\",\n \"105\",\n"
              " \"11025\"\n]",
              text);
    mem_free(text);
    run_script(&r, &s, "$BELLOWS wtns export json - - < %s", base("witness.wtns"));
    CHECK_EQ(0, r.exit_code);
    CHECK_HAS(r.out, "\"11025\"\n]\n");
    run_free(&r);
    run_program(&r, &s, NULL, "wtns export %s", base("witness.wtns"));
    CHECK_EQ(2, r.exit_code);
    CHECK_HAS(r.err, "it takes json");
    run_free(&r);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"wtns check names the first broken constraint and shows what is in it", claim_check},
        {"names from a .sym file stand beside the wires; a wrong file is refused", claim_names},
        {"wtns export writes decimal numbers, to a file or a stream", claim_export},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
