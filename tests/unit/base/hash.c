/* Published vectors: FIPS 180-4 examples for SHA-256, the xxHash specification for xxh64. */
#include "node/base/hash.h"
#include "tests/check/check.h"

static const char abc_digest[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
static const char empty_digest[] =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

static void claim_sha256(void) {
    struct sha256 d;
    char hex[SHA256_HEX_BYTES];
    CHECK_OK(sha256_of(&d, bytes_of("abc", 3)));
    sha256_hex(hex, &d);
    CHECK_STR(abc_digest, hex);
    CHECK_OK(sha256_of(&d, bytes_of(NULL, 0)));
    sha256_hex(hex, &d);
    CHECK_STR(empty_digest, hex);
    CHECK_OK(sha256_from_hex(&d, abc_digest));
    CHECK_EQ(0xba, d.b[0]);
    CHECK_ERR(E_FORMAT, sha256_from_hex(&d, "ba78"));
}

static void claim_pieces(void) {
    uint8_t data[1000];
    rng_fill(check_rng(), data, sizeof data);
    struct sha256 whole, pieces;
    CHECK_OK(sha256_of(&whole, bytes_of(data, sizeof data)));
    AUTO(sha256_free) struct sha256_run *run = NULL;
    CHECK_OK(sha256_new(&run));
    for (size_t at = 0; at < sizeof data;) {
        size_t len = 1 + rng_below(check_rng(), sizeof data - at);
        CHECK_OK(sha256_add(run, bytes_of(data + at, len)));
        at += len;
    }
    CHECK_OK(sha256_end(&pieces, run));
    CHECK_MEM(whole.b, pieces.b, SHA256_BYTES);
}

static enum err hash_something(void *ctx) {
    struct sha256 d;
    (void)ctx;
    return sha256_of(&d, bytes_of("abc", 3));
}

static void claim_allocation(void) {
    CHECK(check_allocations(hash_something, NULL) > 0);
}

static void claim_xxh64(void) {
    CHECK(hash_xxh64(bytes_of(NULL, 0)) == UINT64_C(0xef46db3751d8e999));
    CHECK(hash_xxh64(bytes_of("abc", 3)) == UINT64_C(0x44bc2cf5ad770999));
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"SHA-256 gives the published digests", claim_sha256},
        {"a digest in pieces is the digest of the whole", claim_pieces},
        {"a failed allocation is E_LIMIT", claim_allocation},
        {"xxh64 gives the published values", claim_xxh64},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
