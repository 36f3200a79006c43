/* Test harness: a program is a list of claims; each claim passes, fails or is skipped.
 *
 *     static void claim_size_mul_refuses_overflow(void) {
 *         size_t out;
 *         CHECK_ERR(E_RANGE, size_mul(&out, SIZE_MAX, 2));
 *     }
 *     int main(int argc, char **argv) {
 *         static const struct check_claim claims[] = {
 *             {"size_mul refuses overflow", claim_size_mul_refuses_overflow},
 *         };
 *         return check_main(argc, argv, claims, COUNT_OF(claims));
 *     }
 *
 * A failed CHECK ends its claim (longjmp: claims hold no locks across CHECKs). Options: --seed N replays random
 * claims (the seed is printed on failure), --only TEXT runs claims containing TEXT, --list, --bench where a program
 * has benches. The last line is `N passed, N failed, N skipped`; exit 1 on failure, 77 when everything was skipped.
 */
#pragma once
#include "node/base/bytes.h"
#include "node/base/rng.h"

/* Defined under a sanitizer, whose own memory and time count. gcc and clang say so in two ways. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CHECK_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CHECK_SANITIZED 1
#endif
#endif

struct check_claim {
    const char *name; /* a sentence: "key_open refuses a section past the end" */
    void (*run)(void);
};

int check_main(int argc, char **argv, const struct check_claim *claims, size_t claims_count);
/* The same with *dir a new folder while the claims run, empty at first. */
int check_main_in(char **dir, int argc, char **argv, const struct check_claim *claims,
                  size_t claims_count);
struct rng *
check_rng(void); /* seeded per claim from --seed or the OS; printed when the claim fails */
const char *
check_vectors(const char *tail); /* path below tests/vectors; a static buffer, eight in rotation */
/* The first out_bytes - 1 bytes of a file and a NUL; how many they are, 0 when there is no such file. */
size_t check_file(void *out, size_t out_bytes, const char *path);
/* Runs `run` again and again, failing its first allocation, then its second, … until it gets through. Each failure must
 * come back as E_LIMIT and leave no block behind; `run` frees what it made. Returns how many allocations there were. */
long check_allocations(enum err (*run)(void *ctx), void *ctx);
_Noreturn void check_skip(const char *why, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void check_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void check_mem(const char *file, int line, const void *want, const void *got, size_t len,
               const char *what);
void check_err(const char *file, int line, enum err want, enum err got, const char *what);
void check_text(const char *file, int line, const char *haystack, const char *needle);

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            check_fail(__FILE__, __LINE__, "%s", #cond);                                           \
        }                                                                                          \
    } while (0)
#define CHECK_MSG(cond, ...)                                                                       \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            check_fail(__FILE__, __LINE__, __VA_ARGS__);                                           \
        }                                                                                          \
    } while (0)
#define CHECK_OK(call)              check_err(__FILE__, __LINE__, OK, (call), #call)
#define CHECK_ERR(code, call)       check_err(__FILE__, __LINE__, (code), (call), #call)
#define CHECK_MEM(want, got, len)   check_mem(__FILE__, __LINE__, (want), (got), (len), #got)
#define CHECK_HAS(haystack, needle) check_text(__FILE__, __LINE__, (haystack), (needle))
#define CHECK_EQ(want, got)                                                                        \
    do {                                                                                           \
        long long want_ = (long long)(want), got_ = (long long)(got);                              \
        if (want_ != got_) {                                                                       \
            check_fail(__FILE__, __LINE__, "%s is %lld, want %lld", #got, got_, want_);            \
        }                                                                                          \
    } while (0)
#define CHECK_STR(want, got)                                                                       \
    do {                                                                                           \
        const char *want_ = (want), *got_ = (got);                                                 \
        if (__builtin_strcmp(want_, got_) != 0) {                                                  \
            check_fail(__FILE__, __LINE__, "%s is \"%s\", want \"%s\"", #got, got_, want_);        \
        }                                                                                          \
    } while (0)
