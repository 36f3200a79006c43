/* bellows calldata: what to call a verifier contract with.
 *
 * The text is read back as the contract will read it, with the coordinates in its order, and what it then says is verified: a swapped pair
 * is noticed here and not on a chain.
 */
#include "node/base/mem.h"
#include "node/cli/backend_args.h"
#include "node/cli/commands.h"
#include "node/cli/statement.h"
#include "node/groth16/calldata.h"
#include "node/groth16/verify.h"

#include <stdio.h>
#include <string.h>

static enum err check_text(const char *text, const struct vkey *vk, size_t publics_count) {
    AUTO(mem_free_ptr) struct scalar *publics = NULL;
    struct proof proof;
    TRY(mem_new(&publics, publics_count + 1, sizeof *publics)); /* never of no bytes */
    TRY(calldata_read(&proof, publics, publics_count, text));
    return groth16_verify(vk, publics, publics_count, &proof);
}

static enum err run_calldata(struct args *args) {
    AUTO(vkey_done) struct vkey vk = {0};
    AUTO(statement_done)
    struct statement s = {.public_path = args_positional(args, "PUBLIC"),
                          .proof_path = args_positional(args, "PROOF")};
    AUTO(text_free) struct text text = {0};
    TRY(statement_vkey(&vk, args_positional(args, "VKEY"),
                       args_switch(args, "allow-insecure-keys")));
    TRY(statement_read(&s, vk.curve, false));
    enum err code = groth16_verify(&vk, s.publics, s.publics_count, &s.proof);
    if (code != OK) {
        return err_prefix(verify_says_no(code) ? E_UNSAT : code, "%s is not valid", s.proof_path);
    }
    TRY(calldata_write(&text, &s.proof, s.publics, s.publics_count));
    code = check_text(text.ptr, &vk, s.publics_count);
    REQUIRE(code == OK, E_INTERNAL, "the calldata does not say what %s says: %.300s", s.proof_path,
            fault_of(code).detail);
    if (args_switch(args, "json")) {
        printf("{\"ok\": true, \"arguments\": [%s]}\n", text.ptr);
    } else {
        puts(text.ptr);
    }
    return OK;
}

static const struct positional positionals[] = {
    {.name = "VKEY",
     .fallback = "verification_key.json",
     .text = "verification key in JSON, or the proving key"},
    {.name = "PUBLIC", .fallback = "public.json", .text = "public signals"},
    {.name = "PROOF", .fallback = "proof.json", .text = "the proof"},
    {0},
};
static const struct option options[] = {OPTION_INSECURE, OPTION_JSON, OPTIONS_END};
const struct command cmd_calldata = {
    .name = "calldata",
    .sentence = "prints a proof as arguments for the contract that snarkjs exports",
    .positionals = positionals,
    .options = options,
    .notes =
        "The same text as `snarkjs zkey export soliditycalldata`: in G2 the imaginary part stands\n"
        "first, other than in proof.json. Nothing is printed for a proof that is not valid "
        "(exit 1).\nFor bn128; other curves have no settled form (exit 2).",
    .run = run_calldata,
};
