/* The container of iden3's files: a magic word, a version, and sections that carry their own length.
 *
 *     offset 0      4       8              12
 *            magic  u32     u32            then, `count` times:
 *            "zkey" version section count  u32 id, u64 length, that many bytes
 *
 * All little-endian, no padding, sections in any order. The table is read whole before anything else is believed:
 * every section must end inside the file, no id may come twice, nothing may follow the last one. Offsets and lengths
 * are 64-bit throughout; one section of a large key passes 4 GiB.
 *
 * Threads  a table belongs to one thread; it lends from the file's bytes.
 * Errors   E_FORMAT with the file's name, the section, what was found, what was expected, and the cure.
 * Source   iden3 binary file format, as snarkjs 0.7.6 and circom 2.2.3 write it.
 */
#pragma once
#include "node/base/bytes.h"

enum {
    SECTIONS_MAX = 64,          /* a zkey has ten, the largest kind known (fflonk) eighteen */
    SECTION_ID_USUAL_MAX = 255, /* more is taken, but no kind known has them */
    SECTION_HEADER_BYTES = 12,
    CONTAINER_HEADER_BYTES = 12
};

struct section {
    uint32_t id;
    uint64_t offset, bytes; /* of the contents, without the section's own header */
};

struct section_table {
    struct bytes file; /* lent */
    const char *name;  /* lent: the file's name in errors */
    unsigned count;
    struct section at[SECTIONS_MAX];
};

/* What the first bytes of a file say about it; for "this is a witness, the key comes first". */
enum file_kind {
    FILE_UNKNOWN,
    FILE_ZKEY,
    FILE_WTNS,
    FILE_R1CS,
    FILE_PTAU,
    FILE_NATIVE,      /* a key in our own layout */
    FILE_EVALUATIONS, /* a, b and an assignment */
    FILE_JSON,
    FILE_HTML,        /* an error page saved in place of a download */
    FILE_LFS_POINTER, /* a git-lfs pointer: the file itself was never fetched */
    FILE_COMPRESSED,  /* gzip, zip, xz, zstd */
    FILE_RAW_SCALARS, /* field elements without a header, the first one equal to one */
    FILE_KINDS_COUNT
};
enum file_kind file_kind_of(struct bytes file);
const char *file_kind_title(enum file_kind kind); /* "a witness (.wtns)" */

/* Reads the table of a file that must be of `kind` (FILE_ZKEY, FILE_WTNS or FILE_R1CS). */
FALLIBLE section_table_read(struct section_table *out, struct bytes file, const char *name,
                            enum file_kind kind);
/* false: there is none. *out lent from the file. */
bool section_find(struct bytes *out, const struct section_table *t, uint32_t id);
/* The same, but a missing one is E_FORMAT; `title` says what it holds: "A points". */
FALLIBLE section_need(struct bytes *out, const struct section_table *t, uint32_t id,
                      const char *title);
/* count · item_bytes + head_bytes must be exactly what the section has. `unit` names what is counted: "wires". */
struct section_size {
    uint64_t count;
    size_t item_bytes;
    size_t head_bytes;
    const char *unit;
};
FALLIBLE section_need_sized(struct bytes *out, const struct section_table *t, uint32_t id,
                            const char *title, struct section_size size);
