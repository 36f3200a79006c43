/* Every step of a partition's way through a lane, once: what spans, metrics and the log line call it.
 *
 * In the order of the way. The steps of the proof itself have the names that node/groth16 gives them; a test compares the two.
 */
#pragma once

/* clang-format off */
#define SPAN_TABLE(ROW)                     \
    ROW(RECORD,    "record",    "network")  \
    ROW(KEY_FETCH, "key_fetch", "network")  \
    ROW(KEY_OPEN,  "key_open",  "disk")     \
    ROW(MEMORY,    "memory",    "host")     \
    ROW(FETCH,     "fetch",     "network")  \
    ROW(DECODE,    "decode",    "host")     \
    ROW(UNPACK,    "unpack",    "host")     \
    ROW(UPLOAD,    "upload",    "")         \
    ROW(QUEUE,     "queue",     "host")     \
    ROW(KEY_LOAD,  "key_load",  "")         \
    ROW(WITNESS,   "witness",   "")         \
    ROW(EVALUATE,  "evaluate",  "")         \
    ROW(QUOTIENT,  "quotient",  "")         \
    ROW(MSM_A,     "msm_a",     "")         \
    ROW(MSM_B1,    "msm_b1",    "")         \
    ROW(MSM_B2,    "msm_b2",    "")         \
    ROW(MSM_L,     "msm_l",     "")         \
    ROW(MSM_H,     "msm_h",     "")         \
    ROW(ASSEMBLE,  "assemble",  "host")     \
    ROW(VERIFY,    "verify",    "host")     \
    ROW(SETTLE,    "settle",    "host")     \
    ROW(STORE,     "store",     "network")
/* clang-format on */
