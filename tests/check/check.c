/* Runs claims one after the other; a failed check jumps back here. */
#include "tests/check/check.h"
#include "node/base/file.h"
#include "node/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum outcome { PASSED, FAILED, SKIPPED };

/* LeakSanitizer asks before it reports: a claim that failed jumped over its cleanup, and says so itself. */
int __lsan_is_turned_off(void);
static bool jumped_out;
int __lsan_is_turned_off(void) {
    return jumped_out;
}

static jmp_buf back;
static struct rng claim_rng;
static char reason[1024];

struct rng *check_rng(void) {
    return &claim_rng;
}

const char *check_vectors(const char *tail) {
    static char paths[8][512];
    static unsigned turn;
    char *path = paths[turn++ % 8];
    const char *root = getenv("BELLOWS_VECTORS");
    snprintf(path, sizeof paths[0], "%s/%s", root ? root : "tests/vectors", tail);
    return path;
}

size_t check_file(void *out, size_t out_bytes, const char *path) {
    FILE *file = fopen(path, "re");
    size_t len = file ? fread(out, 1, out_bytes - 1, file) : 0;
    if (file) {
        fclose(file);
    }
    ((char *)out)[len] = '\0';
    return len;
}

void check_skip(const char *why, ...) {
    va_list args;
    va_start(args, why);
    vsnprintf(reason, sizeof reason, why, args);
    va_end(args);
    longjmp(back, 1 + SKIPPED);
}

void check_fail(const char *file, int line, const char *format, ...) {
    int at = snprintf(reason, sizeof reason, "%s:%d: ", file, line);
    va_list args;
    va_start(args, format);
    vsnprintf(reason + at, sizeof reason - (size_t)at, format, args);
    va_end(args);
    longjmp(back, 1 + FAILED);
}

void check_err(const char *file, int line, enum err want, enum err got, const char *what) {
    if (want != got) {
        check_fail(file, line, "%s gave %s (%s), want %s", what, err_name(got),
                   got ? err_detail() : "", err_name(want));
    }
}

long check_allocations(enum err (*run)(void *ctx), void *ctx) {
    enum { ALLOCATIONS_MAX = 100000 };
    for (long n = 0; n < ALLOCATIONS_MAX; n++) {
        long live = mem_live_blocks();
        mem_fail_after(n);
        enum err code = run(ctx);
        bool got_through = mem_fail_pending();
        mem_fail_after(-1);
        if (mem_live_blocks() != live) {
            check_fail(__FILE__, __LINE__, "allocation %ld fails: %ld blocks are left behind", n,
                       mem_live_blocks() - live);
        }
        if (code == OK && got_through) {
            return n;
        }
        if (code != E_LIMIT && code != OK) { /* OK: it could do without */
            check_fail(__FILE__, __LINE__, "allocation %ld fails: %s (%s), want E_LIMIT", n,
                       err_name(code), err_detail());
        }
    }
    check_fail(__FILE__, __LINE__, "more than %d allocations", ALLOCATIONS_MAX);
}

void check_mem(const char *file, int line, const void *want, const void *got, size_t len,
               const char *what) {
    const uint8_t *a = want, *b = got;
    for (size_t i = 0; i < len; i++) {
        if (a[i] != b[i]) {
            check_fail(file, line, "%s differs at byte %zu of %zu: 0x%02x, want 0x%02x", what, i,
                       len, b[i], a[i]);
        }
    }
}

void check_text(const char *file, int line, const char *haystack, const char *needle) {
    if (!strstr(haystack, needle)) {
        check_fail(file, line, "\"%s\" does not contain \"%s\"", haystack, needle);
    }
}

static enum outcome run_claim(const struct check_claim *claim, uint64_t seed) {
    claim_rng = rng_seeded(seed);
    int jumped = setjmp(back);
    if (jumped) {
        jumped_out = jumped_out || jumped - 1 == FAILED;
        return (enum outcome)(jumped - 1);
    }
    claim->run();
    return PASSED;
}

int check_main(int argc, char **argv, const struct check_claim *claims, size_t claims_count) {
    const char *only = NULL;
    uint64_t seed = 0;
    bool seed_given = false;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--only") && i + 1 < argc) {
            only = argv[++i];
        } else if (!strcmp(argv[i], "--seed") && i + 1 < argc) {
            seed = strtoull(argv[++i], NULL, 0);
            seed_given = true;
        } else if (!strcmp(argv[i], "--list")) {
            for (size_t k = 0; k < claims_count; k++) {
                puts(claims[k].name);
            }
            return 0;
        } else {
            fprintf(stderr, "usage: %s [--only TEXT] [--seed N] [--list]\n", argv[0]);
            return 2;
        }
    }
    if (!seed_given && rng_os(&seed, sizeof seed) != OK) {
        seed = 1;
    }
    size_t counts[3] = {0, 0, 0};
    for (size_t k = 0; k < claims_count; k++) {
        if (only && !strstr(claims[k].name, only)) {
            continue;
        }
        enum outcome outcome = run_claim(&claims[k], seed);
        counts[outcome]++;
        if (outcome == FAILED) {
            printf("FAILED   %s\n         %s\n         replay: --only \"%s\" --seed %llu\n",
                   claims[k].name, reason, claims[k].name, (unsigned long long)seed);
        } else if (outcome == SKIPPED) {
            printf("skipped  %s: %s\n", claims[k].name, reason);
        } else {
            printf("passed   %s\n", claims[k].name);
        }
        fflush(stdout);
    }
    printf("%zu passed, %zu failed, %zu skipped\n", counts[PASSED], counts[FAILED],
           counts[SKIPPED]);
    if (counts[FAILED]) {
        return 1;
    }
    return counts[PASSED] == 0 && counts[SKIPPED] > 0 ? 77 : 0;
}

int check_main_in(char **dir, int argc, char **argv, const struct check_claim *claims,
                  size_t claims_count) {
    if (dir_make_temp(dir, "bellows-check") != OK) {
        fprintf(stderr, "%s\n", err_detail());
        return 1;
    }
    int rc = check_main(argc, argv, claims, claims_count);
    IGNORE(dir_remove_tree(*dir));
    mem_free(*dir);
    return rc;
}
