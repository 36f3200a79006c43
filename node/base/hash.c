/* OpenSSL's SHA-256 uses the CPU's SHA instructions; xxHash's one-shot form needs no state. */
#include "node/base/hash.h"

#include <openssl/evp.h>
#include <xxhash.h>

#include "node/base/mem.h"

struct sha256_run {
    EVP_MD_CTX *md; /* owned */
};

enum err sha256_new(struct sha256_run **out) {
    AUTO(sha256_free) struct sha256_run *run = NULL;
    TRY(mem_new(&run, 1, sizeof *run));
    run->md = EVP_MD_CTX_new();
    REQUIRE(run->md && EVP_DigestInit_ex(run->md, EVP_sha256(), NULL), E_LIMIT,
            "SHA-256 could not be set up");
    *out = TAKE(run);
    return OK;
}

enum err sha256_add(struct sha256_run *run, struct bytes data) {
    REQUIRE(EVP_DigestUpdate(run->md, data.ptr, data.len), E_INTERNAL, "SHA-256 refused %zu bytes",
            data.len);
    return OK;
}

enum err sha256_end(struct sha256 *out, struct sha256_run *run) {
    struct sha256 digest;
    REQUIRE(EVP_DigestFinal_ex(run->md, digest.b, NULL), E_INTERNAL, "SHA-256 did not end");
    *out = digest;
    return OK;
}

void sha256_free(struct sha256_run **run) {
    if (*run) {
        EVP_MD_CTX_free((*run)->md);
        mem_free_ptr(run);
    }
}

enum err sha256_of(struct sha256 *out, struct bytes data) {
    AUTO(sha256_free) struct sha256_run *run = NULL;
    TRY(sha256_new(&run));
    TRY(sha256_add(run, data));
    return sha256_end(out, run);
}

void sha256_hex(char out[SHA256_HEX_BYTES], const struct sha256 *digest) {
    hex_encode(out, digest->b, SHA256_BYTES);
}

enum err sha256_from_hex(struct sha256 *out, const char *hex) {
    return hex_decode(out->b, SHA256_BYTES, hex);
}

uint64_t hash_xxh64(struct bytes data) {
    return XXH64(data.ptr, data.len, 0);
}
