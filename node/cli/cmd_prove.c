/* bellows prove: one proof, no network. The order of work:
 *
 *   look at the arguments ─ open key and witness ─ prove that both outputs can be written ─ open the backend
 *   ─ load the key ─ prove and verify ─ write both files, or neither
 *
 * so that everything that can be refused is refused before anything takes long. When the new proof does not verify, the
 * suspects are tried in the order of what they cost: the key's points, then the same sums once more.
 */
#include "node/base/cgroup.h"
#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/base/rng.h"
#include "node/base/version.h"
#include "node/cli/backend_args.h"
#include "node/cli/commands.h"
#include "node/cli/screen.h"
#include "node/cli/stop.h"
#include "node/groth16/prove.h"
#include "node/witness/r1cs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Everything one run owns; closed in reverse by run_done. */
struct run {
    const char *key_path, *witness_path, *proof_path, *public_path; /* lent from args */
    bool bellman, json;
    struct backend_options options;
    struct key *key;             /* owned (ref) */
    struct witness witness;      /* owned */
    struct file_out *proof_file; /* owned */
    struct file_out *public_file;
    struct backend *backend; /* owned */
    struct backend_choice choice;
    struct backend_key *backend_key; /* owned */
    struct backend_slot *slot;       /* owned */
    struct screen *screen;           /* owned */
    struct prove_result result;      /* owned */
    struct blinding blinding;
    struct job_watch watch;
    uint64_t open_ns, load_ns; /* reading and checking files; bringing the key to the backend */
};

static void run_done(struct run *run) {
    screen_close(&run->screen);
    prove_result_done(&run->result);
    mem_wipe(&run->blinding, sizeof run->blinding);
    if (run->slot) {
        run->backend->ops->slot_close(&run->slot);
    }
    if (run->backend_key) {
        run->backend->ops->key_drop(&run->backend_key);
    }
    backend_close(&run->backend);
    file_out_close(&run->public_file);
    file_out_close(&run->proof_file);
    witness_close(&run->witness);
    key_unref(&run->key);
}

static bool is_stream(const char *path) {
    return !strcmp(path, "-");
}

static enum err check_paths(const struct run *run) {
    REQUIRE(!is_stream(run->key_path) || !is_stream(run->witness_path), E_USAGE,
            "KEY and WITNESS are both \"-\"; standard input holds one file");
    REQUIRE(!is_stream(run->proof_path) || !is_stream(run->public_path), E_USAGE,
            "PROOF and PUBLIC are both \"-\"; standard output takes one file");
    REQUIRE(!run->json || (!is_stream(run->proof_path) && !is_stream(run->public_path)), E_USAGE,
            "--json and an output \"-\" both want standard output");
    const char *const inputs[] = {run->key_path, run->witness_path};
    const char *const outputs[] = {run->proof_path, run->public_path};
    for (size_t i = 0; i < 4; i++) {
        const char *input = inputs[i / 2], *output = outputs[i % 2];
        TRY(args_spares(output, input, "KEY WITNESS PROOF PUBLIC"));
    }
    REQUIRE(!file_same(run->proof_path, run->public_path) ||
                !strcmp(run->proof_path, "/dev/null"), /* who only times it wants neither */
            E_USAGE, "PROOF and PUBLIC are the same file, %s", run->proof_path);
    return OK;
}

static enum err read_args(struct run *run, const struct args *args) {
    run->key_path = args_positional(args, "KEY");
    run->witness_path = args_positional(args, "WITNESS");
    run->proof_path = args_positional(args, "PROOF");
    run->public_path = args_positional(args, "PUBLIC");
    run->bellman = !strcmp(args_text(args, "format"), "bellman");
    run->json = args_switch(args, "json");
    TRY(backend_args_read(&run->options, args));
    return check_paths(run);
}

static enum err check_constraints(struct run *run, const char *r1cs_path) {
    AUTO(r1cs_close) struct r1cs r1cs = {0};
    uint32_t first_bad_idx = 0;
    TRY(r1cs_open(&r1cs, r1cs_path));
    enum err code = r1cs_satisfied(&first_bad_idx, &r1cs, &run->witness);
    return code == OK ? OK : err_prefix(code, "%s, %s", run->witness_path, r1cs_path);
}

static enum err open_files(struct run *run, const struct args *args) {
    uint64_t start_ns = clock_ns();
    struct key_options key_options = {.allow_insecure = args_switch(args, "allow-insecure-keys")};
    TRY(key_open(&run->key, run->key_path, key_options));
    if (key_shape(run->key)->format == KEY_FORMAT_ZKEY && !key_contributions(run->key).present) {
        fprintf(stderr,
                "bellows prove: warning: %s is unfinished: section 10 (contributions) is missing; "
                "proving does not need it\n",
                run->key_path);
    }
    TRY(witness_open(&run->witness, run->witness_path));
    TRY(witness_fits(&run->witness, key_shape(run->key), run->key_path));
    if (args_text(args, "r1cs")) {
        TRY(check_constraints(run, args_text(args, "r1cs")));
    }
    stop_sets(&run->watch.cancel); /* from here on there may be something to clean up */
    TRY(file_out_open(&run->proof_file, run->proof_path));
    TRY(file_out_open(&run->public_file, run->public_path));
    run->open_ns = clock_ns() - start_ns;
    return OK;
}

static enum err open_backend(struct run *run) {
    TRY(backends_open(&run->backend, &run->choice, &run->options));
    if (run->options.kind == BACKEND_AUTO) {
        fprintf(stderr, "bellows prove: backend %s\n", run->choice.why);
    }
    struct plan plan;
    enum err code = run->backend->ops->plan(&plan, run->backend, key_shape(run->key));
    if (code != OK) {
        return err_prefix(code, "%s", run->key_path);
    }
    REQUIRE(plan.host_bytes <= cgroup_memory_bytes(), E_LIMIT,
            "%s: proving takes %" PRIu64 " MiB of memory; this machine allows %" PRIu64
            " MiB (`bellows plan` has the details)",
            run->key_path, plan.host_bytes >> 20, cgroup_memory_bytes() >> 20);
    uint64_t start_ns = clock_ns();
    TRY(run->backend->ops->key_load(&run->backend_key, run->backend, run->key));
    TRY(run->backend->ops->slot_open(&run->slot, run->backend_key));
    run->load_ns = clock_ns() - start_ns;
    return OK;
}

/* Blinding that a seed gives: 252 bits, which is below r on both curves. */
static void blinding_seeded(struct blinding *out, uint64_t seed) {
    struct rng rng = rng_seeded(seed);
    rng_fill(&rng, out, sizeof *out);
    out->r.w[3] &= UINT64_MAX >> 4;
    out->s.w[3] &= UINT64_MAX >> 4;
}

static enum err choose_blinding(struct run *run, const struct args *args) {
    if (!args_text(args, "seed")) {
        return blinding_random(&run->blinding, key_curve(run->key));
    }
    uint64_t seed = args_number(args, "seed", 0);
    fprintf(stderr,
            "bellows prove: warning: --seed %" PRIu64
            " makes the blinding known, so the proof is not zero-knowledge: tests only\n",
            seed);
    blinding_seeded(&run->blinding, seed);
    return OK;
}

static enum err settle(struct run *run) {
    struct key_report report;
    screen_follow(run->screen, NULL);
    AUTO(pool_close) struct pool *pool = NULL;
    TRY(pool_open(&pool, run->options.threads_count));
    TRY(key_check(&report, run->key, pool, screen_progress, run->screen));
    screen_follow(run->screen, &run->watch);
    enum err code = prove_settle(&run->result.sums, run->backend, run->slot, run->key,
                                 &run->witness, &run->watch);
    return code == E_UNSAT ? err_prefix(code, "%s", run->witness_path) : code;
}

static enum err compute(struct run *run) {
    screen_open(&run->screen, "prove");
    screen_follow(run->screen, &run->watch);
    enum err code = groth16_prove(&run->result, run->backend, run->slot, run->key, &run->witness,
                                  &run->blinding, &run->watch);
    if (code == E_SELFCHECK) {
        code = settle(run);
    }
    screen_close(&run->screen);
    return code;
}

static enum err write_file(struct file_out *file, const char *path, struct bytes data) {
    TRY(file_out_write(file, data));
    return is_stream(path) ? file_out_write(file, bytes_of("\n", 1)) : OK;
}

static enum err fill_files(struct run *run) {
    AUTO(text_free) struct text proof = {0};
    AUTO(text_free) struct text publics = {0};
    uint8_t bellman[PROOF_BELLMAN_BYTES_MAX];
    TRY(public_write_json(&publics, run->result.publics, run->result.publics_count));
    if (run->bellman) {
        proof_write_bellman(bellman, &run->result.proof);
        size_t len = proof_bellman_bytes(run->result.proof.curve);
        TRY(file_out_write(run->proof_file, bytes_of(bellman, len)));
    } else {
        TRY(proof_write_json(&proof, &run->result.proof));
        TRY(write_file(run->proof_file, run->proof_path, text_bytes(&proof)));
    }
    return write_file(run->public_file, run->public_path, text_bytes(&publics));
}

/* Both names appear, or neither: what is already there when the second fails is taken back. */
static enum err write_outputs(struct run *run) {
    TRY(fill_files(run));
    REQUIRE(!stop_signal(), E_CANCELLED, "stopped by a signal; nothing is written");
    TRY(file_out_commit(run->proof_file));
    enum err code = file_out_commit(run->public_file);
    if (code != OK && !is_stream(run->proof_path)) {
        unlink(run->proof_path);
    }
    return code;
}

static uint64_t peak_memory_bytes(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss * 1024;
}

static enum err print_json(const struct run *run) {
    AUTO(text_free) struct text t = {0};
    const struct key_shape *shape = key_shape(run->key);
    text_addf(&t, "{\"ok\": true, \"version\": \"%s\", \"commit\": \"%s\", \"backend\": \"%s\"",
              BELLOWS_VERSION, BELLOWS_COMMIT, run->backend->ops->name);
    text_add(&t, ", \"device\": ");
    text_add_json_string(&t, run->backend->device_name);
    text_add(&t, ", \"backend_choice\": ");
    text_add_json_string(&t, run->choice.why);
    text_addf(
        &t, ", \"curve\": \"%s\", \"wires\": %u, \"public_signals\": %u, \"domain_size\": %" PRIu64,
        key_curve(run->key)->snarkjs_name, shape->wires_count, shape->public_count,
        shape->domain_size);
    text_add(&t, ", \"proof\": ");
    text_add_json_string(&t, run->proof_path);
    text_add(&t, ", \"public\": ");
    text_add_json_string(&t, run->public_path);
    text_addf(&t,
              ", \"open_ns\": %" PRIu64 ", \"load_ns\": %" PRIu64 ", \"prove_ns\": %" PRIu64
              ", \"steps_ns\": {",
              run->open_ns, run->load_ns, run->result.total_ns);
    for (int step = 0; step < STEP_COUNT; step++) {
        text_addf(&t, "%s\"%s\": %" PRIu64, step ? ", " : "",
                  prove_step_name((enum prove_step)step), run->result.times.ns[step]);
    }
    text_addf(&t, "}, \"peak_memory_bytes\": %" PRIu64 "}\n", peak_memory_bytes());
    TRY(text_done(&t));
    fwrite(t.ptr, 1, t.len, stdout);
    return OK;
}

static enum err run_prove(struct args *args) {
    AUTO(run_done) struct run run = {0};
    TRY(read_args(&run, args));
    TRY(open_files(&run, args));
    TRY(open_backend(&run));
    TRY(choose_blinding(&run, args));
    TRY(compute(&run));
    TRY(write_outputs(&run));
    return run.json ? print_json(&run) : OK;
}

static const struct positional positionals[] = {
    POSITIONAL_KEY,
    {.name = "WITNESS", .fallback = "witness.wtns", .text = "witness of the key's circuit"},
    {.name = "PROOF", .fallback = "proof.json", .text = "where the proof goes"},
    {.name = "PUBLIC", .fallback = "public.json", .text = "where the public signals go"},
    {0},
};
static const struct option options[] = {
    OPTION_BACKEND,
    OPTION_THREADS,
    OPTION_CPU_TIER,
    OPTION_DEVICE,
    OPTION_DEVICE_MEMORY,
    {.kind = OPTION_CHOICE,
     .name = "format",
     .value = "snarkjs|bellman",
     .fallback = "snarkjs",
     .text = "Form of PROOF: JSON, or three compressed points (PUBLIC stays JSON)."},
    {.kind = OPTION_TEXT,
     .name = "r1cs",
     .value = "FILE",
     .text = "The circuit's constraints: checks the witness first, and names the constraint it "
             "breaks."},
    OPTION_INSECURE,
    {.kind = OPTION_NUMBER,
     .name = "seed",
     .value = "N",
     .most = UINT64_MAX,
     .text = "Blinding from this number instead of the system's randomness: tests only."},
    OPTION_JSON,
    OPTIONS_END,
};
const struct command cmd_prove = {
    .name = "prove",
    .sentence = "proves one witness on this machine, verifies the proof and writes it",
    .positionals = positionals,
    .options = options,
    .notes =
        "\"-\" is standard input or output. The outputs appear under their names whole, both or "
        "neither.\n"
        "Exit codes: 0 proved; 1 the witness does not satisfy the circuit; 2 a bad argument or "
        "file;\n3 device or memory; 5 internal. Stopped by a signal it writes nothing and ends by "
        "that signal.",
    .run = run_prove,
};
