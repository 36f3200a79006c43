/* Damaged siblings of good files: copies in memory that are patched, cut and then given to a reader.
 *
 * Places are found by walking the section table, never by number. A claim names what the reader must say; every
 * refusal must also carry the file's name, take less than REFUSAL_NS_MAX and leave no block behind.
 */
#pragma once
#include "tests/check/check.h"

#include "node/key/key.h"
#include "node/witness/r1cs.h"

#define REFUSAL_NS_MAX 2000000000ull
enum { CURVES_COUNT = 2 };
extern const char *const curve_dirs[CURVES_COUNT]; /* "bn128", "bls12381" */

/* A whole file in heap memory of exactly its size, so that reading past its end is seen under ASan. */
struct damaged {
    uint8_t *ptr; /* owned */
    size_t len;
    const char *name; /* lent: in errors */
};
struct damaged damaged_load(const char *path, const char *name);
struct damaged damaged_case(const char *curve, const char *tail); /* "base/circuit.zkey" */
void damaged_free(struct damaged *d);
void damaged_u32(struct damaged *d, size_t at, uint32_t value);
void damaged_u32be(struct damaged *d, size_t at, uint32_t value);
void damaged_u64(struct damaged *d, size_t at, uint64_t value);
void damaged_cut(struct damaged *d, size_t len);                   /* keeps the first len bytes */
void damaged_remove(struct damaged *d, size_t from, size_t count); /* closes the gap */
void damaged_append(struct damaged *d, const void *bytes, size_t count);
/* Where the contents of a section start; its length field is 8 bytes before, its id 12. */
size_t section_place(const struct damaged *d, uint32_t id);
uint64_t section_length(const struct damaged *d, uint32_t id);
/* Drops whole points or values from a section's end and writes the length that follows. */
void section_shorten(struct damaged *d, uint32_t id, size_t bytes);
/* Header fields of a zkey, by name. */
size_t zkey_wires_place(const struct damaged *d);
size_t zkey_public_place(const struct damaged *d);
size_t zkey_domain_place(const struct damaged *d);
size_t zkey_q_bytes(const struct damaged *d);

enum reads {
    READS_KEY,
    READS_WITNESS,
    READS_EVALUATIONS,
    READS_R1CS,
    READS_VKEY_JSON,
    READS_VKEY_BELLMAN
};
/* What the reader says: OK (and whatever was opened is closed again) or the code. */
enum err reader_says(const struct damaged *d, enum reads reads);
/* It says `code` with all of the texts (NULL ends the list), names the file, is quick and leaks nothing. */
void refused(const char *file, int line, const struct damaged *d, enum reads reads, enum err code,
             const char *const *texts);
void taken(const char *file, int line, const struct damaged *d, enum reads reads);
#define REFUSED(d, reads, code, ...)                                                               \
    refused(__FILE__, __LINE__, (d), (reads), (code), (const char *const[]){__VA_ARGS__, NULL})
#define TAKEN(d, reads) taken(__FILE__, __LINE__, (d), (reads))
