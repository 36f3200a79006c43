/* bellows wtns check, wtns export: a witness beside its constraints, and as text. Argument orders and files are snarkjs's.
 *
 * Both print values of the witness: whoever asks holds it. Nothing of it enters an error.
 */
#include "node/base/json.h"
#include "node/base/mem.h"
#include "node/cli/backend_args.h"
#include "node/cli/commands.h"
#include "node/cli/wire_names.h"
#include "node/curve/encode.h"
#include "node/witness/r1cs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TERMS_SHOWN_MAX = 12, EXPORT_BLOCK = 16384 };

/* --- check --- */

/* Negative numbers as such: half of the coefficients that circom writes are r - 1. */
static void signed_decimal(char out[FP_DECIMAL_MAX], const struct curve *c,
                           const struct scalar *s) {
    struct scalar zero = {{0}}, negated;
    char digits[FP_DECIMAL_MAX];
    c->scalar_sub(&negated, &zero, s);
    bool is_negative = (negated.w[2] | negated.w[3]) == 0 && (s->w[2] | s->w[3]) != 0;
    scalar_to_decimal(digits, is_negative ? &negated : s);
    snprintf(out, FP_DECIMAL_MAX, "%s%.110s", is_negative ? "-" : "", digits);
}

/* Where a broken constraint is shown from. */
struct view {
    const struct r1cs *r1cs;
    const struct witness *witness;
    const struct wire_names *names;
};

static void print_list(const struct view *v, char name, const struct r1cs_list *list) {
    struct scalar sum = r1cs_list_sum(list, v->r1cs->curve, v->witness);
    char digits[FP_DECIMAL_MAX];
    signed_decimal(digits, v->r1cs->curve, &sum);
    printf("  %c = %s%s", name, digits, list->count ? "  from\n" : "\n");
    for (uint32_t i = 0; i < list->count && i < TERMS_SHOWN_MAX; i++) {
        struct r1cs_term term = r1cs_term_at(list, i);
        struct scalar value;
        char factor[FP_DECIMAL_MAX];
        witness_get(&value, v->witness, term.wire);
        signed_decimal(factor, v->r1cs->curve, &term.coefficient);
        signed_decimal(digits, v->r1cs->curve, &value);
        printf("      %s · wire %" PRIu32 " = %s", factor, term.wire, digits);
        const char *wire_name = wire_names_get(v->names, term.wire);
        printf(wire_name ? "  %s\n" : "\n", wire_name);
    }
    if (list->count > TERMS_SHOWN_MAX) {
        printf("      and %" PRIu32 " more\n", list->count - TERMS_SHOWN_MAX);
    }
}

static void print_broken(const struct view *v, uint32_t idx) {
    struct r1cs_constraint constraint = r1cs_constraint_at(v->r1cs, idx);
    printf("constraint %" PRIu32 ": A · B = C is not satisfied\n", idx);
    for (int i = 0; i < 3; i++) {
        print_list(v, "ABC"[i], &constraint.lists[i]);
    }
}

static void print_broken_json(uint32_t idx, const char *detail) {
    AUTO(text_free) struct text t = {0};
    text_addf(&t,
              "{\"ok\": false, \"constraint\": %" PRIu32
              ", \"error\": {\"code\": \"E_UNSAT\", \"class\": \"reject\", \"detail\": ",
              idx);
    text_add_json_string(&t, detail);
    text_add(&t, "}}");
    if (text_done(&t) == OK) {
        puts(t.ptr);
    }
}

static enum err run_check(struct args *args) {
    AUTO(r1cs_close) struct r1cs r1cs = {0};
    AUTO(witness_close) struct witness witness = {0};
    AUTO(wire_names_close) struct wire_names names = {0};
    uint32_t bad_idx = 0;
    bool json = args_switch(args, "json");
    TRY(r1cs_open(&r1cs, args_positional(args, "R1CS")));
    TRY(witness_open(&witness, args_positional(args, "WITNESS")));
    if (args_text(args, "sym")) {
        TRY(wire_names_open(&names, args_text(args, "sym"), r1cs.wires_count));
    }
    enum err code = r1cs_satisfied(&bad_idx, &r1cs, &witness);
    if (code == OK) {
        printf(json ? "{\"ok\": true, \"constraints\": %" PRIu32 "}\n"
                    : "OK: all %" PRIu32 " constraints are satisfied\n",
               r1cs.constraints_count);
        return OK;
    }
    code =
        err_prefix(code, "%s, %s", args_positional(args, "WITNESS"), args_positional(args, "R1CS"));
    if (code == E_UNSAT && json) {
        print_broken_json(bad_idx, err_detail());
        fprintf(stderr, "bellows wtns check: %s\n", err_detail());
        args_reported(args);
    } else if (code == E_UNSAT) {
        print_broken(&(struct view){&r1cs, &witness, &names}, bad_idx);
    }
    return code;
}

/* --- export --- */

static enum err write_values(struct file_out *file, const struct witness *w) {
    AUTO(text_free) struct text t = {0};
    text_add(&t, "[");
    for (uint64_t i = 0; i < w->count; i++) {
        struct scalar value;
        char digits[FP_DECIMAL_MAX];
        witness_get(&value, w, i);
        scalar_to_decimal(digits, &value);
        text_addf(&t, "%s\n \"%s\"", i ? "," : "", digits);
        if (t.len >= EXPORT_BLOCK) {
            TRY(text_done(&t));
            TRY(file_out_write(file, text_bytes(&t)));
            text_free(&t);
        }
    }
    text_add(&t, "\n]");
    TRY(text_done(&t));
    return file_out_write(file, text_bytes(&t));
}

static enum err run_export(struct args *args) {
    AUTO(file_out_close) struct file_out *file = NULL;
    AUTO(witness_close) struct witness witness = {0};
    const char *format = args_positional(args, "FORMAT");
    REQUIRE(!strcmp(format, "json"), E_USAGE,
            "FORMAT is \"%.64s\"; it takes json: bellows wtns export json witness.wtns "
            "witness.json",
            format);
    TRY(args_spares(args_positional(args, "JSON"), args_positional(args, "WITNESS"),
                    "json WITNESS JSON"));
    TRY(witness_open(&witness, args_positional(args, "WITNESS")));
    TRY(file_out_open(&file, args_positional(args, "JSON")));
    TRY(write_values(file, &witness));
    TRY(witness_intact(&witness));
    if (!strcmp(args_positional(args, "JSON"), "-")) {
        TRY(file_out_write(file, bytes_of("\n", 1)));
    }
    return file_out_commit(file);
}

static const struct positional check_positionals[] = {
    {.name = "R1CS",
     .fallback = "circuit.r1cs",
     .text = "the circuit's constraints, from circom --r1cs"},
    {.name = "WITNESS", .fallback = "witness.wtns", .text = "the witness to check"},
    {0},
};
static const struct option check_options[] = {
    {.kind = OPTION_TEXT,
     .name = "sym",
     .value = "FILE",
     .text = "Names of the wires, from circom --sym."},
    OPTION_JSON,
    OPTIONS_END,
};
static const struct positional export_positionals[] = {
    {.name = "FORMAT", .text = "json: a list of decimal numbers in quotes, as snarkjs writes it"},
    {.name = "WITNESS", .fallback = "witness.wtns", .text = "the witness"},
    {.name = "JSON", .fallback = "witness.json", .text = "where the text goes"},
    {0},
};
static const struct option export_options[] = {OPTIONS_END};

const struct command cmd_wtns_check = {
    .name = "wtns check",
    .sentence = "does a witness satisfy its circuit, and if not, where",
    .positionals = check_positionals,
    .options = check_options,
    .notes = "Shows the first constraint that fails, with the values in it. Constraints count from "
             "0, in the file's order.\nExit codes: 0 satisfied; 1 not; 2 could not tell.",
    .run = run_check,
};
const struct command cmd_wtns_export = {
    .name = "wtns export",
    .sentence = "writes a witness as text",
    .positionals = export_positionals,
    .options = export_options,
    .notes = "  bellows wtns export json witness.wtns witness.json",
    .run = run_export,
};
