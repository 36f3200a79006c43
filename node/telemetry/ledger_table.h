/* Every account of the ledger, once: name on the wire, and what the device did or waited for.
 *
 * The order is that of reports and of stacked bars. Those that begin with `compute.` are the device's work; proto/telemetry.proto
 * explains the names to readers.
 */
#pragma once

/* clang-format off */
#define LEDGER_TABLE(ROW)                    \
    ROW(COMPUTE_WITNESS,  "compute.witness")  \
    ROW(COMPUTE_EVALUATE, "compute.evaluate") \
    ROW(COMPUTE_QUOTIENT, "compute.quotient") \
    ROW(COMPUTE_MSM_A,    "compute.msm_a")    \
    ROW(COMPUTE_MSM_B1,   "compute.msm_b1")   \
    ROW(COMPUTE_MSM_B2,   "compute.msm_b2")   \
    ROW(COMPUTE_MSM_L,    "compute.msm_l")    \
    ROW(COMPUTE_MSM_H,    "compute.msm_h")    \
    ROW(COMPUTE_OTHER,    "compute.other")    \
    ROW(UPLOAD,           "upload")           \
    ROW(WAIT_NO_WORK,     "wait.no_work")     \
    ROW(WAIT_FETCH,       "wait.fetch")       \
    ROW(WAIT_DECODE,      "wait.decode")      \
    ROW(WAIT_PINNED,      "wait.pinned")      \
    ROW(WAIT_KEY,         "wait.key")         \
    ROW(WAIT_RECORD,      "wait.record")      \
    ROW(WAIT_FINISH,      "wait.finish")      \
    ROW(WAIT_LOCK,        "wait.lock")        \
    ROW(FENCED,           "fenced")
/* clang-format on */
