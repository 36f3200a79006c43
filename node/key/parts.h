/* What a reader of one key format finds in a file's bytes: places and counts, all checked, nothing copied.
 *
 * The readers, one a format, are pure functions over a span, so that tests and fuzzers need no files; key.c puts a mapped file,
 * a count of owners and a digest around them. Besides every size and count they look at KEY_SPOT_POINTS points of
 * each section, spread evenly: a wrong download is caught at opening, on tiny keys each point is looked at, and on
 * large ones the cost stays a few hundred pages. key_check looks at all.
 *
 * Owner    the caller, to key_parts_done; spans are lent from the file's bytes.
 * Threads  any; const once parsed.
 * Errors   as key_open.
 */
#pragma once
#include "node/key/key.h"
#include "node/key/rows.h"
#include "node/key/sections.h"

enum { KEY_SPOT_POINTS = 32 };

struct key_parts {
    const struct curve *curve;
    struct key_shape shape;
    struct vkey vkey;                      /* owned */
    struct bytes points[KEY_POINTS_COUNT]; /* lent */
    struct bytes terms;                    /* lent; empty when the key holds no matrices */
    struct rows rows[2];                   /* lent; start NULL unless native */
    struct bytes dictionary;               /* lent; of the rows */
    struct sha256 source;                  /* of a native key: the key it was made from */
    bool zkey_layout;                      /* else big-endian uncompressed */
    struct key_contributions contributions;
    struct key_section_view sections[SECTIONS_MAX];
    unsigned sections_count;
};

/* Any of the three, by content: what key_open asks. native_parse is in native.h. */
FALLIBLE key_parse(struct key_parts *out, struct bytes file, const char *name);
FALLIBLE zkey_parse(struct key_parts *out, struct bytes file, const char *name);
FALLIBLE bellman_parse(struct key_parts *out, struct bytes file, const char *name);
void key_parts_done(struct key_parts *parts);

/* What an open key is made of; lent. */
const struct key_parts *key_parts_of(const struct key *key);

/* How a set of points is named in errors: "section 5 (A points)", "a (A points)". */
const char *key_points_title(enum key_format format, enum key_points which);
enum point_group key_points_group(enum key_points which);
/* points[from … from + count) of one set: canonical, on the curve, in the subgroup when `subgroup`; in a bellman key
 * not infinity either. E_RANGE or E_CURVE with file, section, index and byte offset. *infinities grows by those seen. */
struct point_range {
    enum key_points which;
    uint64_t from, count;
    bool subgroup;
};
FALLIBLE key_points_check(uint64_t *infinities, const struct key_parts *parts, const char *name,
                          struct point_range range);
/* vkey_check, and beta and delta in G1, which only a proving key has, are there too. `where` names the place. */
FALLIBLE key_header_check(const struct key_parts *parts, const char *name, const char *where);
/* KEY_SPOT_POINTS of each set, without the subgroup. */
FALLIBLE key_spot_check(const struct key_parts *parts, const char *name);
