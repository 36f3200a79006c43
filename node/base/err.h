/* Errors: one enum, one sentence of detail, one switch from code to class.
 *
 * A function that can fail is declared FALLIBLE; ignoring its answer does not compile. The place that knows
 * what went wrong says so once, with FAIL or REQUIRE; everybody above passes the code on with TRY. The detail
 * lives in a slot of the calling thread and does not travel: what crosses a thread carries a struct fault.
 *
 * Threads  every function; the slot is per thread.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum err {
    OK = 0,
    /* reject: the job is at fault, never retried */
    E_FORMAT, /* bytes that are not what they claim to be */
    E_RANGE,  /* a number outside what is allowed */
    E_CURVE,  /* a point off its curve or subgroup, or two curves that differ */
    E_UNSAT, /* the witness does not satisfy the circuit; a proof or signature that does not verify */
    /* busy: load */
    E_LIMIT, /* a budget or a named limit would be exceeded; what no machine takes is E_FORMAT or E_RANGE */
    E_QUEUE, /* a bounded queue is full */
    /* device: this machine */
    E_DEVICE,      /* a device call failed or no usable device is there */
    E_DEVICE_LOST, /* the device context is gone; the process must be restarted */
    /* check: job or machine, decided by computing again elsewhere */
    E_SELFCHECK,
    /* world: surroundings, retried with backoff */
    E_IO,
    E_NET,
    E_TIMEOUT,
    /* stop: the asker */
    E_CANCELLED,
    E_DEADLINE,
    /* usage: the command line or the configuration */
    E_USAGE,
    /* bug: us */
    E_INTERNAL,
    ERR_COUNT
};

/* What the node does about a code follows from its class alone; err_class() is the one switch. */
enum err_class {
    CLASS_OK,
    CLASS_REJECT,
    CLASS_BUSY,
    CLASS_DEVICE,
    CLASS_CHECK,
    CLASS_WORLD,
    CLASS_STOP,
    CLASS_USAGE,
    CLASS_BUG
};

enum { ERR_DETAIL_BYTES = 512 };

/* An error by value, for queues and results. */
struct fault {
    enum err code;
    char detail[ERR_DETAIL_BYTES];
};

#define FALLIBLE __attribute__((warn_unused_result)) enum err

enum err_class err_class(enum err code);
const char *err_name(enum err code);            /* "E_FORMAT" */
const char *err_class_name(enum err_class cls); /* "reject" */
int err_exit_code(
    enum err code); /* process exit code: 0 ok, 1 invalid, 2 usage or input, 3 device or memory,
                                                    4 network or stopped, 5 internal */
bool err_from_name(enum err *out, const char *name);

/* Writes the sentence into this thread's slot and returns `code`. The detail says what was found, what was
 * allowed and where; no newline, no "error:". Longer than the slot: cut. */
enum err err_set(enum err code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Puts "prefix: " before the detail already in the slot: how a caller adds the file's name. Returns `code`. */
enum err err_prefix(enum err code, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *err_detail(void); /* lent: valid until this thread's next failure */

struct fault fault_of(enum err code);        /* code with this thread's detail */
enum err fault_raise(const struct fault *f); /* the other way, on the receiving thread */

#define TRY(call)                                                                                  \
    do {                                                                                           \
        enum err try_err_ = (call);                                                                \
        if (__builtin_expect(try_err_ != OK, 0)) {                                                 \
            return try_err_;                                                                       \
        }                                                                                          \
    } while (0)
/* `code` is evaluated twice: the compiler then sees a constant that is not OK, and does not warn about outputs that are
 * only set on OK. */
#define FAIL(code, ...)                                                                            \
    do {                                                                                           \
        (void)err_set((code), __VA_ARGS__);                                                        \
        return (code);                                                                             \
    } while (0)
#define REQUIRE(cond, code, ...)                                                                   \
    do {                                                                                           \
        if (__builtin_expect(!(cond), 0)) {                                                        \
            (void)err_set((code), __VA_ARGS__);                                                    \
            return (code);                                                                         \
        }                                                                                          \
    } while (0)
/* A later error in cleanup, when the first one is the one reported. */
#define IGNORE(call)                                                                               \
    do {                                                                                           \
        enum err ignored_err_ = (call);                                                            \
        (void)ignored_err_;                                                                        \
    } while (0)

/* Our own mistakes. ASSERT stays on in release builds; DASSERT is for hot loops and debug builds. */
_Noreturn void assert_fail(const char *condition, const char *file, int line);
#define ASSERT(cond)                                                                               \
    (__builtin_expect(!!(cond), 1) ? (void)0 : assert_fail(#cond, __FILE__, __LINE__))
#define UNREACHABLE(why) assert_fail("never here: " why, __FILE__, __LINE__)
#ifdef BELLOWS_DEBUG
#define DASSERT(cond) ASSERT(cond)
#else
#define DASSERT(cond) ((void)0)
#endif

/* Scope-end cleanup: AUTO(key_unref) struct key *k = NULL; runs key_unref(&k). TAKE(k) hands over and disarms. */
#define AUTO(destructor) __attribute__((cleanup(destructor)))
#define TAKE(pointer)                                                                              \
    __extension__({                                                                                \
        __typeof__(pointer) take_value_ = (pointer);                                               \
        (pointer) = NULL;                                                                          \
        take_value_;                                                                               \
    })
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
