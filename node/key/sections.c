/* One walk over the table, then look-ups.
 *
 * The walk costs one step per section and never trusts a length: `bytes` is compared with what is left of the file
 * before the cursor moves, so no addition can wrap. The number of sections is bounded by a constant, which makes the
 * table a plain array without allocation. What a file is not supposed to be is named as well, since most wrong files
 * are right files in the wrong place.
 */
#include "node/key/sections.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

static const struct {
    const char *magic; /* NULL: not a container */
    uint32_t version;  /* the one that is read; 0: by a reader of its own */
    const char *title;
} kinds[FILE_KINDS_COUNT] = {
    [FILE_UNKNOWN] = {NULL, 0, "a file of unknown kind"},
    [FILE_ZKEY] = {"zkey", 1, "a proving key (.zkey)"},
    [FILE_WTNS] = {"wtns", 2, "a witness (.wtns)"},
    [FILE_R1CS] = {"r1cs", 1, "a constraint system (.r1cs)"},
    [FILE_PTAU] = {"ptau", 1, "a powers-of-tau file (.ptau)"},
    [FILE_NATIVE] = {"BELLOWSK", 0, "a proving key (native)"},
    [FILE_EVALUATIONS] = {"BELLOWSE", 0, "evaluations of a circuit"},
    [FILE_JSON] = {NULL, 0, "JSON text"},
    [FILE_HTML] = {NULL, 0, "a web page, probably an error page saved in place of the download"},
    [FILE_LFS_POINTER] = {NULL, 0, "a git-lfs pointer; `git lfs pull` fetches the file itself"},
    [FILE_COMPRESSED] = {NULL, 0, "a compressed archive; unpack it first"},
    [FILE_RAW_SCALARS] = {NULL, 0, "raw field elements without a header"},
};

static bool starts_with(struct bytes file, const void *prefix, size_t len) {
    return file.len >= len && memcmp(file.ptr, prefix, len) == 0;
}

static enum file_kind text_kind_of(struct bytes file) {
    size_t at = starts_with(file, "\xEF\xBB\xBF", 3) ? 3 : 0;
    while (at < file.len && isspace(file.ptr[at])) {
        at++;
    }
    if (at == file.len) {
        return FILE_UNKNOWN;
    }
    if (file.ptr[at] == '{' || file.ptr[at] == '[') {
        return FILE_JSON;
    }
    struct bytes rest = bytes_of(file.ptr + at, file.len - at);
    if (rest.len >= 5 && (strncasecmp((const char *)rest.ptr, "<html", 5) == 0 ||
                          strncasecmp((const char *)rest.ptr, "<!doc", 5) == 0)) {
        return FILE_HTML;
    }
    if (starts_with(rest, "version https://git-lfs", 23)) {
        return FILE_LFS_POINTER;
    }
    return FILE_UNKNOWN;
}

static bool looks_like_raw_scalars(struct bytes file) {
    static const uint8_t one[32] = {1};
    return file.len % 32 == 0 && starts_with(file, one, sizeof one);
}

enum file_kind file_kind_of(struct bytes file) {
    for (unsigned kind = 0; kind < FILE_KINDS_COUNT; kind++) {
        if (kinds[kind].magic && starts_with(file, kinds[kind].magic, strlen(kinds[kind].magic))) {
            return (enum file_kind)kind;
        }
    }
    if (starts_with(file, "\x1F\x8B", 2) || starts_with(file, "PK\x03\x04", 4) ||
        starts_with(file,
                    "\xFD"
                    "7zXZ",
                    5) ||
        starts_with(file, "\x28\xB5\x2F\xFD", 4)) {
        return FILE_COMPRESSED;
    }
    if (looks_like_raw_scalars(file)) {
        return FILE_RAW_SCALARS;
    }
    return text_kind_of(file);
}

const char *file_kind_title(enum file_kind kind) {
    ASSERT(kind < FILE_KINDS_COUNT);
    return kinds[kind].title;
}

static FALLIBLE magic_check(struct bytes file, const char *name, enum file_kind kind) {
    enum file_kind found = file_kind_of(file);
    if (found == kind) {
        return OK;
    }
    const char *magic = kinds[kind].magic, *title = kinds[kind].title;
    if (found == FILE_RAW_SCALARS && kind == FILE_WTNS) {
        FAIL(E_FORMAT,
             "%s: no wtns header; looks like raw field elements (%zu values of 32 bytes): save the "
             "witness in its container form (.wtns)",
             name, file.len / 32);
    }
    REQUIRE(found == FILE_UNKNOWN, E_FORMAT, "%s: this is %s, not %s", name, file_kind_title(found),
            title);
    REQUIRE(file.len >= CONTAINER_HEADER_BYTES, E_FORMAT,
            "%s: the file has %zu bytes, too few for %s: fetch or make it again", name, file.len,
            title);
    const uint8_t *p = file.ptr;
    FAIL(E_FORMAT,
         "%s: not %s: it starts with %02x %02x %02x %02x where \"%s\" should stand; the file is "
         "damaged or of another kind",
         name, title, p[0], p[1], p[2], p[3], magic);
}

static bool id_is_usual(uint32_t id) {
    return id >= 1 && id <= SECTION_ID_USUAL_MAX;
}

/* Where a section's length is wrong, what follows it is read as headers until one of them makes no sense: the section to name is the
 * last one before. */
static FALLIBLE in_step(const struct section_table *t, uint32_t id) {
    for (unsigned i = t->count; i-- > 0 && !id_is_usual(id);) {
        const struct section *before = &t->at[i];
        REQUIRE(!id_is_usual(before->id), E_FORMAT,
                "%s: section %" PRIu32 " starts at %" PRIu64 " and claims %" PRIu64
                " bytes, but at %" PRIu64 " follows no other: its length is wrong; the file is "
                "damaged: fetch it again",
                t->name, before->id, before->offset, before->bytes, before->offset + before->bytes);
    }
    return OK;
}

static FALLIBLE section_add(struct section_table *t, struct section section, unsigned nth,
                            uint32_t declared) {
    for (unsigned i = 0; i < t->count; i++) {
        TRY(t->at[i].id == section.id ? in_step(t, section.id) : OK);
        REQUIRE(t->at[i].id != section.id, E_FORMAT,
                "%s: section %" PRIu32 " comes twice, as the %uth and the %uth of %" PRIu32
                "; the file is damaged: fetch it again",
                t->name, section.id, i + 1, nth, declared);
    }
    t->at[t->count++] = section;
    return OK;
}

/* The sections one after the other, from byte 12 to exactly the end of the file. */
static FALLIBLE sections_walk(struct section_table *t, uint32_t declared) {
    const size_t file_bytes = t->file.len;
    size_t at = CONTAINER_HEADER_BYTES;
    for (unsigned nth = 1; nth <= declared; nth++) {
        REQUIRE(file_bytes - at >= SECTION_HEADER_BYTES, E_FORMAT,
                "%s: the file ends before section %u of %" PRIu32
                ": it has %zu bytes and that section's header starts at %zu; the file is cut "
                "short: fetch it again",
                t->name, nth, declared, file_bytes, at);
        struct section section = {
            .id = load_u32le(t->file.ptr + at),
            .bytes = load_u64le(t->file.ptr + at + 4),
            .offset = at + SECTION_HEADER_BYTES,
        };
        uint64_t left = file_bytes - section.offset;
        TRY(section.bytes > left ? in_step(t, section.id) : OK);
        REQUIRE(section.bytes <= left, E_FORMAT,
                "%s: section %" PRIu32 " starts at %" PRIu64 " and claims %" PRIu64
                " bytes, but the file has only %" PRIu64
                " left; the file is cut short or damaged: fetch it again",
                t->name, section.id, section.offset, section.bytes, left);
        TRY(section_add(t, section, nth, declared));
        at = section.offset + section.bytes;
    }
    REQUIRE(at == file_bytes, E_FORMAT,
            "%s: %zu bytes follow the last of %" PRIu32
            " sections, which ends at %zu; the file is damaged: fetch it again",
            t->name, file_bytes - at, declared, at);
    return OK;
}

FALLIBLE section_table_read(struct section_table *out, struct bytes file, const char *name,
                            enum file_kind kind) {
    ASSERT(kinds[kind].magic);
    TRY(magic_check(file, name, kind));
    REQUIRE(file.len >= CONTAINER_HEADER_BYTES, E_FORMAT,
            "%s: the file ends inside its header, after %zu of 12 bytes; it is cut short: fetch it "
            "again",
            name, file.len);
    uint32_t version = load_u32le(file.ptr + 4);
    REQUIRE(version == kinds[kind].version, E_FORMAT,
            "%s: version %" PRIu32 " of the %s format; this program reads version %" PRIu32, name,
            version, kinds[kind].magic, kinds[kind].version);
    uint32_t declared = load_u32le(file.ptr + 8);
    REQUIRE(declared >= 1 && declared <= SECTIONS_MAX, E_FORMAT,
            "%s: the header declares %" PRIu32
            " sections, 1 to %d are possible; the file is damaged: fetch it again",
            name, declared, SECTIONS_MAX);
    struct section_table table = {.file = file, .name = name};
    TRY(sections_walk(&table, declared));
    *out = table;
    return OK;
}

bool section_find(struct bytes *out, const struct section_table *t, uint32_t id) {
    for (unsigned i = 0; i < t->count; i++) {
        if (t->at[i].id == id) {
            *out = bytes_of(t->file.ptr + t->at[i].offset, t->at[i].bytes);
            return true;
        }
    }
    return false;
}

FALLIBLE section_need(struct bytes *out, const struct section_table *t, uint32_t id,
                      const char *title) {
    REQUIRE(section_find(out, t, id), E_FORMAT,
            "%s: section %" PRIu32 " (%s) is missing; the file is unfinished or damaged: make or "
            "fetch it again",
            t->name, id, title);
    return OK;
}

FALLIBLE section_need_sized(struct bytes *out, const struct section_table *t, uint32_t id,
                            const char *title, struct section_size size) {
    struct bytes found;
    TRY(section_need(&found, t, id, title));
    size_t want = 0;
    enum err e = size_mul(&want, size.count, size.item_bytes);
    e = e == OK ? size_add(&want, want, size.head_bytes) : e;
    if (e != OK) {
        return err_prefix(e, "%s: section %" PRIu32 " (%s)", t->name, id, title);
    }
    REQUIRE(found.len == want, E_FORMAT,
            "%s: section %" PRIu32 " (%s) has %zu bytes, %" PRIu64
            " %s need %zu; the file is damaged: fetch it again",
            t->name, id, title, found.len, size.count, size.unit, want);
    *out = found;
    return OK;
}
