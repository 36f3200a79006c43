/* Fuzz targets: one function per parser that eats bytes from outside.
 *
 * A target gives its input to the parser as a heap block of exactly that size (so that the sanitizer sees one byte too
 * many), closes what was opened, and asserts what must hold whatever the bytes were. Each has a line in the table of
 * replay.c and a name in meson.build; its stored inputs are in corpus/<name>/, where a crash that was found goes too,
 * together with its fix.
 */
#pragma once
#include "node/base/bytes.h"

typedef void fuzz_target(struct bytes input);

fuzz_target fuzz_zkey, fuzz_params, fuzz_wtns, fuzz_evaluations, fuzz_r1cs, fuzz_pce, fuzz_vkey,
    fuzz_vk;
fuzz_target fuzz_proof, fuzz_proof_bytes, fuzz_public;
fuzz_target fuzz_job, fuzz_result, fuzz_frames, fuzz_subject, fuzz_packed, fuzz_telemetry;
fuzz_target fuzz_native;
