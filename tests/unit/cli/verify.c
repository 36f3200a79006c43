/* `bellows verify` from outside: one answer in the exit code, and why. */
#include "node/base/file.h"
#include "node/base/json.h"
#include "node/base/mem.h"
#include "tests/check/check.h"
#include "tests/unit/cli/program.h"

#include <stdio.h>
#include <string.h>

static const char *const curves[] = {"bn128", "bls12381"};

static void expect(const struct run *r, int exit_code, const char *out, const char *err) {
    run_expect(r, exit_code, out, err);
    if (exit_code == 2) {
        CHECK_STR("", r->out); /* no answer */
    } else {
        CHECK_STR("", r->err);
    }
}

static void claim_valid(void) {
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        AUTO(scratch_close) struct scratch s = {0};
        struct run r;
        scratch_open(&s);
        static const char *const keys[] = {"base/verification_key.json", "base/circuit.zkey"};
        for (size_t k = 0; k < COUNT_OF(keys); k++) {
            run_program(&r, &s, NULL, "verify %s %s %s", curve_file(curves[i], keys[k]),
                        curve_file(curves[i], "base/public.json"),
                        curve_file(curves[i], "base/proof.json"));
            expect(&r, 0, "OK", "");
            CHECK_STR("OK\n", r.out);
            run_free(&r);
        }
        CHECK_EQ(0, scratch_files(&s));
    }
}

/* Each row replaces the public signals of a proof of the base circuit for input x = 3. */
static void claim_publics(void) {
    static const struct {
        const char *json;
        int exit_code;
        const char *text;
    } rows[] = {
        {"[\"55132\",\"3\"]", 0, "OK"},
        {"[ \"55132\" , \"3\" ]\n", 0, "OK"},
        {"[\"55132\",\"4\"]", 1, "INVALID"},
        {"[\"3\",\"55132\"]", 1, "INVALID"},
        {"[\"55132\"]", 1, "1 public signals are given; the key has 2"},
        {"[\"55132\",\"3\",\"0\"]", 1, "3 public signals are given; the key has 2"},
        {"[]", 1, "0 public signals"},
        {"[\"55132\","
         "\"21888242871839275222246405745257275088548364400416034343698204186575808495620\"]",
         1, "public signal 1"},
        {"[\"55132\","
         "\"21888242871839275222246405745257275088548364400416034343698204186575808495617\"]",
         1, "public signal 1"},
        {"{\"0\":\"55132\",\"1\":\"3\",\"length\":2}", 2, "list"},
        {"[55132,3]", 2, "public signal 0"},
        {"[\"55132\",\"0x3\"]", 2, "public signal 1"},
        {"[\"55132\",\"03\"]", 2, "public signal 1"},
        {"[\"55132\",\"-1\"]", 2, "public signal 1"},
        {"[\"55132\",\" 3\"]", 2, "public signal 1"},
        {"[\"55132\",\"3n\"]", 2, "public signal 1"},
        {"[\"55132\",\"3e0\"]", 2, "public signal 1"},
        {"[\"55132\",\"\"]", 2, "public signal 1"},
        {"[\"55132\",null]", 2, "public signal 1"},
        {"[[\"55132\",\"3\"]]", 2, "public signal 0"},
        {"{\"0\":\"55132\",\"0\":\"3\"}", 2, "twice"},
        {"\xef\xbb\xbf[\"55132\",\"3\"]", 2, "byte-order mark"},
        {"[\"55132\",\"3\",]", 2, "makes no sense"},
        {"[\"55132\",\"3\"] x", 2, "public.json"},
        {"", 2, "empty"},
        {"null", 2, "list"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        AUTO(scratch_close) struct scratch s = {0};
        struct run r;
        scratch_open(&s);
        CHECK_OK(file_write_all(scratch_path(&s, "public.json"),
                                bytes_of(rows[i].json, strlen(rows[i].json))));
        run_program(&r, &s, NULL, "verify %s public.json %s",
                    curve_file("bn128", "base/verification_key.json"),
                    curve_file("bn128", "base/proof.json"));
        expect(&r, rows[i].exit_code, rows[i].exit_code < 2 ? rows[i].text : "",
               rows[i].exit_code == 2 ? rows[i].text : "");
        run_free(&r);
    }
}

static void claim_shortened(void) {
    for (size_t i = 0; i < COUNT_OF(curves); i++) {
        AUTO(scratch_close) struct scratch s = {0};
        struct run r;
        scratch_open(&s);
        static const char *const lists[] = {"[\"7\"]", "[\"7\",\"0\",\"0\"]", "[\"7\",\"0\"]"};
        for (size_t k = 0; k < COUNT_OF(lists); k++) {
            CHECK_OK(
                file_write_all(scratch_path(&s, "p.json"), bytes_of(lists[k], strlen(lists[k]))));
            run_program(&r, &s, NULL, "verify %s p.json %s",
                        curve_file(curves[i], "base-zero/verification_key.json"),
                        curve_file(curves[i], "base-zero/proof.json"));
            expect(&r, k == 2 ? 0 : 1, k == 2 ? "OK" : "public signals are given", "");
            run_free(&r);
        }
    }
}

static void claim_wrong_files(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    static const struct {
        const char *vkey, *publics, *proof;
        int exit_code;
        const char *text;
    } rows[] = {
        {"bn128/base-other/verification_key.json", "bn128/base/public.json",
         "bn128/base/proof.json", 1, "INVALID"},
        {"bls12381/base/verification_key.json", "bn128/base/public.json", "bn128/base/proof.json",
         1, "curve"},
        {"bn128/base/verification_key.json", "bn128/base/proof.json", "bn128/base/public.json", 2,
         "proof.json: this is a proof, not a list of public signals; the key comes first"},
        {"bn128/base/public.json", "bn128/base/public.json", "bn128/base/proof.json", 2,
         "public.json: this is a list of public signals, not a verification key"},
        {"bn128/base/proof.json", "bn128/base/public.json", "bn128/base/proof.json", 2,
         "proof.json: this is a proof, not a verification key"},
        {"bn128/base/verification_key.json", "bn128/base/public.json", "bn128/base/public.json", 2,
         "public.json: this is a list of public signals, not a proof"},
        {"bn128/base/verification_key.json", "bn128/base/verification_key.json",
         "bn128/base/proof.json", 2,
         "verification_key.json: this is a verification key, not a list"},
        {"bn128/base/witness.wtns", "bn128/base/public.json", "bn128/base/proof.json", 2,
         "witness.wtns"},
        {"bn128/bad/truncated.zkey", "bn128/base/public.json", "bn128/base/proof.json", 2,
         "truncated.zkey"},
        {"bn128/none.json", "bn128/base/public.json", "bn128/base/proof.json", 2, "No such file"},
        {"bn128/base/verification_key.json", "bn128/none.json", "bn128/base/proof.json", 2,
         "No such file"},
        {"bn128/base/verification_key.json", "bn128/base/public.json", "bn128/none.json", 2,
         "No such file"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        run_program(&r, &s, NULL, "verify %s %s %s", check_vectors(rows[i].vkey),
                    check_vectors(rows[i].publics), check_vectors(rows[i].proof));
        expect(&r, rows[i].exit_code, rows[i].exit_code == 1 ? rows[i].text : "",
               rows[i].exit_code == 2 ? rows[i].text : "");
        run_free(&r);
    }
}

/* Changes of a valid proof, by sed: what it is then, and that its file is named once. */
static void claim_changed_proofs(void) {
    static const struct {
        const char *change;
        int exit_code;
        const char *text;
    } rows[] = {
        {"s/$//", 0, "OK"},
        {"/protocol/d", 0, "OK"}, /* rapidsnark's older files have none */
        {"s/\"bn128\"/\"bls12381\"/", 1, "the proof is on curve bls12381, the key on curve bn128"},
        {"s/groth16/plonk/", 2, "\"plonk\"; only groth16"},
        {"5s/1/0/", 2, "pi_a: the third coordinate is \"0\""},
        {"5s/1/2/", 2, "pi_a: the third coordinate is \"2\""},
        {"5d;4s/,//", 2, "pi_a has 2 entries"},
        {"3,4s/\".*\"/\"0\"/", 1, "pi_a is not a point of the curve"},
        {"3s/\".*\"/\"0\"/;4s/\".*\"/\"1\"/;5s/1/0/", 1, "pi_a is the point at infinity"},
        {"3s/\"./\"99/", 1, "not below the field modulus"},
        {"9{h;d};10{s/$/,/;G;s/,$//}", 1, "pi_b is not a point of the curve"},
        {"3s/\"\\(.*\\)\"/\\1/", 2, "pi_a[0] is not a text in quotes"},
    };
    AUTO(scratch_close) struct scratch s = {0};
    scratch_open(&s);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct run r;
        run_script(&r, &s, "sed '%s' %s > p.json; exec \"$BELLOWS\" verify %s %s p.json",
                   rows[i].change, curve_file("bn128", "base/proof.json"),
                   curve_file("bn128", "base/verification_key.json"),
                   curve_file("bn128", "base/public.json"));
        CHECK_MSG(r.exit_code == rows[i].exit_code, "%s: exit code %d: %s%s", rows[i].change,
                  r.exit_code, r.out, r.err);
        const char *said = rows[i].exit_code == 2 ? r.err : r.out;
        CHECK_HAS(said, rows[i].text);
        const char *named = strstr(said, "p.json");
        CHECK_EQ(rows[i].exit_code != 0, named != NULL);
        CHECK(!named || !strstr(named + 1, "p.json"));
        run_free(&r);
    }
}

static void claim_batch(void) {
    AUTO(scratch_close) struct scratch s = {0};
    struct run r;
    scratch_open(&s);
    for (int i = 0; i < 3; i++) {
        run_program(&r, &s, NULL, "prove --backend cpu %s %s p%d.json i%d.json",
                    curve_file("bn128", "base/circuit.zkey"),
                    curve_file("bn128", "base/witness.wtns"), i, i);
        CHECK_EQ(0, r.exit_code);
        run_free(&r);
    }
    const char *vkey = curve_file("bn128", "base/verification_key.json");
    run_program(&r, &s, NULL, "verify %s i0.json p0.json i1.json p1.json i2.json p2.json --json",
                vkey);
    expect(&r, 0, "\"valid\": true, \"proofs\": 3", "");
    run_free(&r);
    run_script(&r, &s,
               "sed 's/\"3\"/\"4\"/' i1.json > x.json && \"$BELLOWS\" verify %s "
               "i0.json p0.json x.json p1.json i2.json p2.json",
               vkey);
    expect(&r, 1, "INVALID: p1.json", "");
    run_free(&r);
    run_program(&r, &s, NULL, "verify %s i0.json p0.json i1.json", vkey);
    expect(&r, 2, "", "pairs");
    run_free(&r);
}

static void claim_json(void) {
    AUTO(scratch_close) struct scratch s = {0};
    AUTO(json_free) cJSON *json = NULL;
    const cJSON *member = NULL;
    const char *text = NULL;
    bool valid = true;
    struct run r;
    scratch_open(&s);
    run_program(&r, &s, NULL, "verify --json %s %s %s",
                curve_file("bn128", "base-other/circuit.zkey"),
                curve_file("bn128", "base/public.json"), curve_file("bn128", "base/proof.json"));
    expect(&r, 1, "", "");
    CHECK_OK(json_parse(&json, bytes_of(r.out, strlen(r.out)), "verify --json"));
    CHECK_OK(json_member(&member, json, "valid"));
    CHECK_OK(json_bool(&valid, member, "valid"));
    CHECK(!valid);
    CHECK_OK(json_member(&member, json, "error"));
    CHECK_OK(json_text_member(&text, member, "code"));
    CHECK_STR("E_UNSAT", text);
    run_free(&r);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a valid proof is OK under the verifying and the proving key", claim_valid},
        {"public signals have one spelling and one length", claim_publics},
        {"a list cut or padded with zeros is another statement", claim_shortened},
        {"wrong files are told apart from wrong proofs", claim_wrong_files},
        {"a changed proof is invalid or unreadable, and named once (B11)", claim_changed_proofs},
        {"several proofs are one batch, and the bad one is named", claim_batch},
        {"--json says valid or not, with the code", claim_json},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
