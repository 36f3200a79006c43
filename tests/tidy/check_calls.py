"""Calls that have one home, or none: memory, time, logs, and C functions without bounds."""

import re

from tree import C_LIKE, code_only, line_of

NAME = "memory, time, threads and logs are asked for through their one door"


def names(*words):
    return re.compile(r"(?<![\w.>])(" + "|".join(words) + r")\s*\(")


ANY = ("node", "proto", "cuda")
EVERYWHERE = ANY + ("tests",)
# (calls, folders searched, homes, what to do instead)
RULES = [
    (
        names("malloc", "calloc", "realloc", "reallocarray", "free", "strdup", "strndup",
              "asprintf", "vasprintf", "posix_memalign", "aligned_alloc"),
        ANY, ("node/base/mem.c",), "use node/base/mem.h",
    ),
    (names(r"mi_\w+"), ANY, ("node/base/mem.c",), "use node/base/mem.h"),
    (names(r"cudaMalloc\w*", r"cudaFree\w*"), EVERYWHERE, ("cuda/mem.cu", "cuda/mem.c", "tests/kernel/emulator/cuda_runtime.h", "tests/kernel/emulator/emulator.cc"), "use gpu_mem_*"),
    (
        names("cudaHostAlloc", "cudaMallocHost", "cudaHostRegister", "cudaFreeHost", "cudaHostUnregister"),
        EVERYWHERE, ("cuda/mem.cu", "cuda/mem.c", "cuda/gpu.cu", "cuda/backend.cu", "node/staging/pinned.c", "tests/kernel/emulator/cuda_runtime.h", "tests/kernel/emulator/emulator.cc"),
        "use pinned_*",
    ),
    (names("cudaMallocManaged", "cudaDeviceReset"), ANY, (), "order by events"),
    (names("cudaDeviceSynchronize"), ANY, ("cuda/mem.cu",), "order by events"),
    (
        names("strcpy", "strcat", "strncat", "sprintf", "vsprintf", "gets", "atoi", "atol", "atoll", "atof",
              "tmpnam", "mktemp", "strtok", "alloca", "gmtime", "localtime", "ctime", "asctime"),
        EVERYWHERE, (), "it knows no bound, or no error",
    ),
    (names("system", "popen"), ANY, (), "a shell reads its text"),
    (
        names("time", "clock_gettime", "gettimeofday", "nanosleep", "clock_nanosleep", "usleep", "sleep",
              "ftime"),
        EVERYWHERE, ("node/base/clock.c",), "use node/base/clock.h",
    ),
    (names("pthread_mutex_lock", "pthread_mutex_trylock", "pthread_cond_wait", "pthread_cond_timedwait"),
     ANY, ("node/base/lock.c",), "use node/base/lock.h"),
    (
        names("log_line", "log_debug", "log_info", "log_warn", "log_error"),
        ANY,
        ("node/base/log.c", "node/base/log.h", "node/daemon/", "node/coordinator/", "node/cli/"),
        "libraries return faults; daemon, coordinator and cli log",
    ),
    (names("rand", "srand", "random", "drand48"), EVERYWHERE, (), "use node/base/rng.h"),
    (names("assert"), EVERYWHERE, (), "ASSERT stays on in release builds"),
]


def check(tree):
    found = []
    for path in tree.select(*C_LIKE, under=EVERYWHERE):
        code = code_only(tree.text(path))
        for calls, folders, homes, advice in RULES:
            if path.startswith(homes) or not path.startswith(tuple(f + "/" for f in folders)):
                continue
            for match in calls.finditer(code):
                found.append((path, line_of(code, match.start()), f"{match.group(1)}(): {advice}"))
    return found


BAD = [
    {"node/key/key.c": "void f(void) {\n    char *p = malloc(3);\n}\n"},
    {"node/key/key.c": "void f(char *p) {\n    free(p);\n}\n"},
    {"cuda/msm.cu": "void f() { cudaMalloc(&p, 3); }\n"},
    {"tests/unit/key/key.c": "void f(char *p) { strcpy(p, q); }\n"},
    {"node/key/key.c": "long t = time(NULL);\n"},
    {"node/key/key.c": "int r = system(\"ls\");\n"},
    {"node/key/key.c": "void f(void) { log_info(\"x\", \"y\"); }\n"},
    {"node/key/key.c": "void f(void) { usleep (3); }\n"},
    {"node/lane/x.c": "", "node/key/key.c": "void f(void) { pthread_mutex_lock(&m); }\n"},
]
GOOD = [
    {"node/base/mem.c": "void *f(void) { return malloc(3); }\n"},
    {"node/key/key.c": "/* malloc(3) is not called here */ void f(struct x *x) { x->free(x); mem_free(x); }\n"},
    {"node/key/key.c": "const char *s = \"strcpy(a, b)\"; void key_free(void); int x = lead_time(3);\n"},
    {"node/daemon/lane.c": "void f(void) { log_info(\"x\", \"y\"); }\n"},
]
