/* The section table on made-up containers: places, sizes, limits, and what first bytes say. */
#include "node/key/sections.h"
#include "tests/check/check.h"

#include "node/base/mem.h"

#include <string.h>

/* A zkey with the given section ids and lengths, contents zero. */
static struct bytes_mut container(const struct section *sections, uint32_t count) {
    size_t len = CONTAINER_HEADER_BYTES, at = CONTAINER_HEADER_BYTES;
    for (uint32_t i = 0; i < count; i++) {
        len += SECTION_HEADER_BYTES + sections[i].bytes;
    }
    uint8_t *file = mem_zero_alloc(1, len);
    CHECK(file != NULL);
    memcpy(file, "zkey", 4);
    store_u32le(file + 4, 1);
    store_u32le(file + 8, count);
    for (uint32_t i = 0; i < count; i++) {
        store_u32le(file + at, sections[i].id);
        store_u64le(file + at + 4, sections[i].bytes);
        at += SECTION_HEADER_BYTES + sections[i].bytes;
    }
    return (struct bytes_mut){file, len};
}

static void claim_places(void) {
    static const struct section want[] = {{7, 24, 5}, {1, 41, 0}, {900, 53, 3}};
    struct bytes_mut file = container(want, COUNT_OF(want));
    struct section_table t;
    CHECK_OK(section_table_read(&t, bytes_of(file.ptr, file.len), "x.zkey", FILE_ZKEY));
    CHECK_EQ(3, t.count);
    for (size_t i = 0; i < COUNT_OF(want); i++) {
        struct bytes found;
        CHECK_EQ(want[i].offset, t.at[i].offset);
        CHECK(section_find(&found, &t, want[i].id));
        CHECK_EQ(want[i].bytes, found.len);
        CHECK(found.ptr == file.ptr + want[i].offset);
    }
    struct bytes none;
    CHECK(!section_find(&none, &t, 2));
    CHECK_ERR(E_FORMAT, section_need(&none, &t, 2, "things"));
    CHECK_HAS(err_detail(), "x.zkey: section 2 (things) is missing");
    mem_free(file.ptr);
}

static void claim_sizes(void) {
    static const struct section sections[] = {{1, 0, 20}};
    struct bytes_mut file = container(sections, 1);
    struct section_table t;
    struct bytes found;
    CHECK_OK(section_table_read(&t, bytes_of(file.ptr, file.len), "x.zkey", FILE_ZKEY));
    struct section_size size = {4, 4, 4, "things"};
    CHECK_OK(section_need_sized(&found, &t, 1, "list", size));
    size.count = 5;
    CHECK_ERR(E_FORMAT, section_need_sized(&found, &t, 1, "list", size));
    CHECK_HAS(err_detail(), "section 1 (list) has 20 bytes, 5 things need 24");
    size.count = UINT64_MAX; /* count · 4 + 4 would wrap to 0 */
    CHECK_ERR(E_RANGE, section_need_sized(&found, &t, 1, "list", size));
    CHECK_HAS(err_detail(), "x.zkey: section 1");
    mem_free(file.ptr);
}

static void claim_most_sections(void) {
    static struct section sections[SECTIONS_MAX + 1];
    for (uint32_t i = 0; i <= SECTIONS_MAX; i++) {
        sections[i] = (struct section){i, 0, i % 3};
    }
    struct section_table t;
    struct bytes_mut file = container(sections, SECTIONS_MAX);
    CHECK_OK(section_table_read(&t, bytes_of(file.ptr, file.len), "x.zkey", FILE_ZKEY));
    CHECK_EQ(SECTIONS_MAX, t.count);
    mem_free(file.ptr);
    file = container(sections, SECTIONS_MAX + 1);
    CHECK_ERR(E_FORMAT, section_table_read(&t, bytes_of(file.ptr, file.len), "x.zkey", FILE_ZKEY));
    CHECK_HAS(err_detail(), "declares 65 sections");
    mem_free(file.ptr);
}

static void claim_kinds(void) {
    static const struct {
        const char *bytes;
        enum file_kind kind;
    } files[] = {
        {"zkey", FILE_ZKEY},
        {"wtns....", FILE_WTNS},
        {"r1cs", FILE_R1CS},
        {"ptau", FILE_PTAU},
        {" \n {\"a\"", FILE_JSON},
        {"[", FILE_JSON},
        {"\xEF\xBB\xBF{", FILE_JSON},
        {"<HTML>", FILE_HTML},
        {"<!doctype html>", FILE_HTML},
        {"version https://git-lfs.github.com/spec/v1", FILE_LFS_POINTER},
        {"PK\x03\x04", FILE_COMPRESSED},
        {"\x28\xB5\x2F\xFDxx", FILE_COMPRESSED},
        {"zke", FILE_UNKNOWN},
        {"", FILE_UNKNOWN},
        {"   ", FILE_UNKNOWN},
    };
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        struct bytes file = bytes_of(files[i].bytes, strlen(files[i].bytes));
        CHECK_MSG(file_kind_of(file) == files[i].kind, "\"%s\" is %s", files[i].bytes,
                  file_kind_title(file_kind_of(file)));
    }
    static const uint8_t values[64] = {1};
    CHECK_EQ(FILE_RAW_SCALARS, file_kind_of(bytes_of(values, 64)));
    CHECK_EQ(FILE_UNKNOWN, file_kind_of(bytes_of(values, 63)));
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"sections: found where they stand, in any order", claim_places},
        {"sections: sizes are compared without wrapping", claim_sizes},
        {"sections: as many as the limit and not one more", claim_most_sections},
        {"sections: first bytes tell the kind of file", claim_kinds},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
