/* Digests: SHA-256 (OpenSSL) names things, xxh64 guards frames.
 *
 * Owner    a run is the caller's, to sha256_free.
 * Threads  any; a running hash belongs to one thread.
 * Errors   E_LIMIT without memory, E_INTERNAL when OpenSSL refuses; E_FORMAT for a text that is not 64 hex digits.
 */
#pragma once
#include "node/base/bytes.h"

enum { SHA256_BYTES = 32, SHA256_HEX_BYTES = 65 };

struct sha256 {
    uint8_t b[SHA256_BYTES];
};
struct sha256_run; /* opaque */

FALLIBLE sha256_of(struct sha256 *out, struct bytes data);
FALLIBLE sha256_new(struct sha256_run **out);
FALLIBLE sha256_add(struct sha256_run *run, struct bytes data);
FALLIBLE sha256_end(struct sha256 *out,
                    struct sha256_run *run); /* the run may not be used after it, only freed */
void sha256_free(struct sha256_run **run);
void sha256_hex(char out[SHA256_HEX_BYTES], const struct sha256 *digest);
FALLIBLE sha256_from_hex(struct sha256 *out, const char *hex);

uint64_t hash_xxh64(struct bytes data); /* seed 0 */
