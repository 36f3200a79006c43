/* bellows verify: one answer in the exit code. 0: the statement is proved. 1: it is not, whatever the reason lies in
 * (pairing, a point outside the subgroup, a public signal that is no canonical number, too many or few of them). 2: no
 * answer, because a file cannot be read as what it should be or because the key itself must not be trusted.
 */
#include "node/base/clock.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/cli/backend_args.h"
#include "node/cli/commands.h"
#include "node/cli/statement.h"
#include "node/groth16/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct verification {
    struct vkey vkey; /* owned */
    struct statement *statements;
    size_t count;
    bool bellman;
};

static void verification_done(struct verification *v) {
    for (size_t i = 0; v->statements && i < v->count; i++) {
        statement_done(&v->statements[i]);
    }
    mem_free(v->statements);
    vkey_done(&v->vkey);
}

static enum err verify_all(size_t *bad_idx, const struct verification *v) {
    if (v->count == 1) {
        const struct statement *s = &v->statements[0];
        return groth16_verify(&v->vkey, s->publics, s->publics_count, &s->proof);
    }
    AUTO(mem_free_ptr) struct verify_item *items = NULL;
    TRY(mem_new(&items, v->count, sizeof *items));
    for (size_t i = 0; i < v->count; i++) {
        const struct statement *s = &v->statements[i];
        *bad_idx = i;
        REQUIRE(s->publics_count == v->vkey.public_count, E_RANGE,
                "%zu public signals are given; the key has %u", s->publics_count,
                v->vkey.public_count);
        items[i] = (struct verify_item){&s->proof, s->publics};
    }
    return groth16_verify_batch(bad_idx, &v->vkey, items, v->count);
}

static void print_invalid(const struct statement *s, enum err code, bool json) {
    if (!json) {
        const char *title = file_title(s->proof_path);
        bool named = !strncmp(err_detail(), title, strlen(title)); /* by the reader already */
        printf("INVALID: %s%s%s\n", named ? "" : title, named ? "" : ": ", err_detail());
        return;
    }
    AUTO(text_free) struct text t = {0};
    text_add(&t, "{\"valid\": false, \"proof\": ");
    text_add_json_string(&t, s->proof_path);
    text_add(&t, ", \"public\": ");
    text_add_json_string(&t, s->public_path);
    text_addf(&t, ", \"error\": {\"code\": \"%s\", \"detail\": ", err_name(code));
    text_add_json_string(&t, err_detail());
    text_add(&t, "}}");
    if (text_done(&t) == OK) {
        puts(t.ptr);
    }
}

/* Says "invalid" for what is a definite no; anything else is passed on as "could not tell". */
static enum err answer(struct args *args, const struct statement *s, enum err code) {
    if (!verify_says_no(code)) {
        return code;
    }
    print_invalid(s, code, args_switch(args, "json"));
    args_reported(args);
    return E_UNSAT;
}

static enum err read_args(struct verification *v, const struct args *args) {
    size_t files = args_rest_count(args);
    REQUIRE(files % 2 == 0, E_USAGE,
            "PUBLIC and PROOF come in pairs, in this order; %zu files are given", files);
    v->bellman = !strcmp(args_text(args, "format"), "bellman");
    size_t count = files ? files / 2 : 1;
    TRY(mem_new(&v->statements, count, sizeof *v->statements));
    v->count = count;
    for (size_t i = 0; i < count; i++) {
        v->statements[i].public_path = files ? args_rest(args, 2 * i) : "public.json";
        v->statements[i].proof_path = files ? args_rest(args, 2 * i + 1) : "proof.json";
    }
    return OK;
}

static enum err run_verify(struct args *args) {
    AUTO(verification_done) struct verification v = {0};
    TRY(read_args(&v, args));
    TRY(statement_vkey(&v.vkey, args_positional(args, "VKEY"),
                       args_switch(args, "allow-insecure-keys")));
    uint64_t start_ns = clock_ns();
    for (size_t i = 0; i < v.count; i++) {
        enum err code = statement_read(&v.statements[i], v.vkey.curve, v.bellman);
        if (code != OK) {
            return answer(args, &v.statements[i], code);
        }
    }
    size_t bad_idx = 0;
    enum err code = verify_all(&bad_idx, &v);
    if (code != OK) {
        return answer(args, &v.statements[bad_idx], code);
    }
    if (args_switch(args, "json")) {
        printf("{\"valid\": true, \"proofs\": %zu, \"curve\": \"%s\", \"elapsed_ns\": %" PRIu64
               "}\n",
               v.count, v.vkey.curve->snarkjs_name, clock_ns() - start_ns);
    } else {
        puts("OK");
    }
    return OK;
}

static const struct positional positionals[] = {
    {.name = "VKEY",
     .fallback = "verification_key.json",
     .text = "verification key in JSON or as bellman writes it, or the proving key"},
    {.name = "PUBLIC PROOF",
     .fallback = "public.json proof.json",
     .text = "public signals and proof; further pairs are verified as one batch",
     .repeats = true},
    {0},
};
static const struct option options[] = {
    {.kind = OPTION_CHOICE,
     .name = "format",
     .value = "snarkjs|bellman",
     .fallback = "snarkjs",
     .text = "Form of PROOF: JSON, or three compressed points."},
    OPTION_INSECURE,
    OPTION_JSON,
    OPTIONS_END,
};
const struct command cmd_verify = {
    .name = "verify",
    .sentence = "verifies proofs",
    .positionals = positionals,
    .options = options,
    .notes =
        "Exit codes: 0 valid (prints OK); 1 invalid (prints INVALID and why); 2 could not tell.\n"
        "A proof is not unique: anybody can turn a valid one into another. Do not use it as an "
        "identifier.",
    .run = run_verify,
};
