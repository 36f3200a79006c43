/* bellows: finds the command, parses its line, runs it, and turns its error into one sentence and an exit code.
 *
 * A command is one file cmd_*.c and one line in the list below. Names of two words ("key inspect") are
 * tried before names of one.
 */
#include "node/base/nearest.h"
#include "node/base/text.h"
#include "node/base/version.h"
#include "node/cli/args.h"
#include "node/cli/commands.h"
#include "node/cli/stop.h"
#include "node/daemon/backends.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* clang-format off */
static const struct command *const commands[] = {
    /* One proof on this machine. */
    &cmd_prove,
    &cmd_verify,
    &cmd_calldata,
    &cmd_wtns_check,
    &cmd_wtns_export,
    &cmd_key_inspect,
    &cmd_key_check,
    &cmd_key_export_vkey,
    &cmd_key_import,
    &cmd_key_synth,
    &cmd_plan,
    &cmd_bench_load,
    &cmd_bench_prove,
    &cmd_bench_field,
    &cmd_bench_msm,
    &cmd_bench_ntt,
    &cmd_bench_h,
    &cmd_bench_codec,
    &cmd_bench_feed,
    /* The fleet. */
    &cmd_dev,
    &cmd_node,
    &cmd_coordinator,
    &cmd_key_push,
    &cmd_submit,
    &cmd_status,
    &cmd_wait,
    &cmd_fetch,
    &cmd_list,
    &cmd_cancel,
    &cmd_jobs,
    &cmd_nodes,
    &cmd_drain,
    &cmd_resume,
    &cmd_tenant,
    &cmd_top,
    &cmd_config,
    &cmd_doctor,
    /* Who may do what. */
    &cmd_certs_ca,
    &cmd_certs_server,
    &cmd_certs_issue,
    &cmd_certs_accounts,
    &cmd_certs_list,
};
/* clang-format on */

enum { COMMAND_NAME_MAX = 64 };

static const struct command *find_command(int *words_used, int argc, char **argv) {
    char two_words[COMMAND_NAME_MAX];
    snprintf(two_words, sizeof two_words, "%s %s", argv[0], argc > 1 ? argv[1] : "");
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        if (!strcmp(commands[i]->name, two_words)) {
            *words_used = 2;
            return commands[i];
        }
    }
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        if (!strcmp(commands[i]->name, argv[0])) {
            *words_used = 1;
            return commands[i];
        }
    }
    return NULL;
}

/* Commands whose first word is `word` ("key"): printed, counted. */
static size_t print_family(const char *word) {
    size_t len = strlen(word), count = 0;
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        if (!strncmp(commands[i]->name, word, len) && commands[i]->name[len] == ' ') {
            printf("  bellows %-20s %s\n", commands[i]->name, commands[i]->sentence);
            count++;
        }
    }
    return count;
}

static void print_commands(void) {
    puts("bellows: a fleet of Groth16 provers\n\nusage: bellows COMMAND [arguments] [options]\n");
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        printf("  %-20s %s\n", commands[i]->name, commands[i]->sentence);
    }
    puts("\n`bellows COMMAND --help` explains one; `bellows --version` says what was built.\n"
         "Exit codes: 0 ok, 1 invalid, 2 usage or input, 3 device or memory, 4 network or "
         "stopped, 5 internal.");
}

/* `bellows help --json`: every table there is. */
static int describe(void) {
    AUTO(text_free) struct text t = {0};
    text_addf(&t, "{\"program\": \"bellows\", \"version\": \"%s\",\n\"commands\": [\n",
              BELLOWS_VERSION);
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        text_add(&t, i ? ",\n" : "");
        args_describe_json(&t, commands[i]);
    }
    text_add(&t, "],\n\"settings\": ");
    config_describe_json(&t);
    text_add(&t, "}");
    if (text_done(&t) != OK) {
        return err_exit_code(E_LIMIT);
    }
    puts(t.ptr);
    return 0;
}

/* What users of other provers type first. */
static const char *peer_hint(const char *word) {
    static const char calculate[] =
        "bellows does not run circuits: calculate the witness with the circuit's own generator or "
        "`snarkjs wtns calculate`, then `bellows prove KEY WITNESS`";
    static const char ceremony[] =
        "keys are made and contributed to with snarkjs; `bellows key synth` makes one for tests";
    static const char export[] =
        "`zkey export verificationkey` is `bellows key export-vkey`, `zkey "
        "export soliditycalldata` is `bellows calldata`";
    static const char other[] = "bellows proves with Groth16 keys only: `snarkjs groth16 setup`";
    static const struct {
        const char *word, *hint;
    } peers[] = {
        {"groth16",
         "snarkjs's `groth16 prove` and `groth16 verify` are `bellows prove` and "
         "`bellows verify`, with the same arguments; witnesses are calculated elsewhere"},
        {"g16p", "`bellows prove` takes the same arguments"},
        {"prover", "`bellows prove` takes the same arguments"},
        {"g16v", "`bellows verify` takes the same arguments"},
        {"verifier", "`bellows verify` takes the same arguments"},
        {"wchk", "it is `bellows wtns check`, with the same arguments"},
        {"wej", "it is `bellows wtns export json`, with the same arguments"},
        {"r1cs",
         "`bellows wtns check CIRCUIT.r1cs WITNESS` checks a witness; `bellows key inspect` "
         "shows a key"},
        {"fullprove", calculate},
        {"g16f", calculate},
        {"wc", calculate},
        {"calculate", calculate},
        {"setup", ceremony},
        {"contribute", ceremony},
        {"powersoftau", ceremony},
        {"zkey", export},
        {"zkev", export},
        {"zkesc", export},
        {"generatecall", export},
        {"plonk", other},
        {"fflonk", other},
    };
    for (size_t i = 0; i < COUNT_OF(peers); i++) {
        if (!strcmp(peers[i].word, word)) {
            return peers[i].hint;
        }
    }
    return NULL;
}

static int unknown_command(int argc, char **argv) {
    if (print_family(argv[0]) > 0) {
        bool help = argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"));
        if (!help) {
            const char *hint = argc > 1 ? peer_hint(argv[1]) : NULL;
            fprintf(stderr, "bellows %s: %s%s%s\n", argv[0],
                    argc > 1 ? "unknown second word; see the list above"
                             : "needs a second word; see the list above",
                    hint ? "; " : "", hint ? hint : "");
        }
        return help ? 0 : 2;
    }
    const char *names[COUNT_OF(commands)];
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        names[i] = commands[i]->name;
    }
    const char *near = nearest_name(argv[0], names, COUNT_OF(names));
    const char *hint = peer_hint(argv[0]);
    fprintf(stderr, "bellows: unknown command \"%s\"; ", argv[0]);
    if (hint) {
        fprintf(stderr, "%s\n", hint);
    } else if (near) {
        fprintf(stderr, "did you mean `bellows %s`?\n", near);
    } else {
        fputs("`bellows --help` lists them\n", stderr);
    }
    return 2;
}

/* The sentence for people on standard error; for scripts that asked, the same as JSON on standard output. A file's name may
 * hold anything: what would break the line or steer a terminal is shown as '?'. */
static void report(const struct command *command, const struct args *args, enum err code) {
    char line[ERR_DETAIL_BYTES];
    snprintf(line, sizeof line, "%s", err_detail());
    for (char *c = line; *c; c++) {
        *c = (unsigned char)*c < ' ' || *c == 127 ? '?' : *c;
    }
    fprintf(stderr, "bellows %s: %s\n", command->name, line);
    if (args && args_has(args, "json") && args_switch(args, "json")) {
        AUTO(text_free) struct text t = {0};
        text_addf(&t,
                  "{\"ok\": false, \"error\": {\"code\": \"%s\", \"class\": \"%s\", \"detail\": ",
                  err_name(code), err_class_name(err_class(code)));
        text_add_json_string(&t, err_detail());
        text_add(&t, "}}");
        if (text_done(&t) == OK) {
            puts(t.ptr);
        }
    }
}

static int run_command(const struct command *command, int argc, char **argv) {
    AUTO(args_free) struct args *args = NULL;
    bool help_wanted = false;
    enum err code = args_parse(&args, &help_wanted, command, argc, argv);
    if (help_wanted) {
        args_print_help(command);
        return 0;
    }
    if (code == OK) {
        code = command->run(args);
    }
    if (code != OK && !(args && args_is_reported(args))) {
        report(command, args, code);
    }
    return err_exit_code(code);
}

/* A closed pipe and a file at its size limit are errors of the write, not the end of the process. A standard stream that
 * was closed gets a place where its use fails: else the next file opened would get its number, and what is meant for one
 * would land in the other. */
static void settle_streams(void) {
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            (void)open("/dev/null",
                       fd == STDIN_FILENO ? O_WRONLY : O_RDONLY); /* takes the lowest */
        }
    }
}

static int print_version(void) {
    printf("bellows %s (commit %s, %s)\n", BELLOWS_VERSION, BELLOWS_COMMIT,
           backends_cuda_compiled() ? "cpu and cuda" : "cpu only");
    return 0;
}

/* `bellows help prove`: what `bellows prove --help` says. */
static int help_of(int argc, char **argv) {
    int words_used = 0;
    const struct command *command = find_command(&words_used, argc, argv);
    if (command) {
        args_print_help(command);
        return 0;
    }
    char *const family[] = {argv[0], (char *)"--help"};
    return unknown_command(2, (char **)family);
}

static int run_line(int argc, char **argv) {
    if (argc < 2) {
        print_commands();
        return 2;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        if (argc > 2 && !strcmp(argv[2], "--json")) {
            return describe();
        }
        if (argc > 2) {
            return help_of(argc - 2, argv + 2);
        }
        print_commands();
        return 0;
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "version") || !strcmp(argv[1], "-V")) {
        return print_version();
    }
    int words_used = 0;
    const struct command *command = find_command(&words_used, argc - 1, argv + 1);
    return command ? run_command(command, argc - 1 - words_used, argv + 1 + words_used)
                   : unknown_command(argc - 1, argv + 1);
}

int main(int argc, char **argv) {
    settle_streams();
    int exit_code = run_line(argc, argv);
    stop_as_signalled(); /* the shell sees that Ctrl-C ended it */
    bool failed_before = ferror(stdout);
    if ((fflush(stdout) != 0 || failed_before) && exit_code == 0) {
        fputs("bellows: standard output could not be written\n", stderr);
        return err_exit_code(E_IO);
    }
    return exit_code;
}
