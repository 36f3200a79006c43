/* What is not JSON is refused with its place; what cJSON tolerates is refused too. */
#include "node/base/json.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/base/text.h"
#include "tests/check/check.h"

#include <stdio.h>
#include <string.h>

static enum err parse_text(cJSON **out, const char *text) {
    return json_parse(out, bytes_of(text, strlen(text)), "x.json");
}

static void refuses_bytes(enum err want, struct bytes text, const char *detail) {
    cJSON *tree = NULL;
    enum err code = json_parse(&tree, text, "x.json");
    if (code == OK) {
        json_free(&tree);
    }
    CHECK_MSG(code == want, "%.*s gave %s (%s), want %s", (int)text.len, (const char *)text.ptr,
              err_name(code), code ? err_detail() : "", err_name(want));
    CHECK_HAS(err_detail(), "x.json: ");
    CHECK_HAS(err_detail(), detail);
    CHECK(!tree);
}

static void refuses(enum err want, const char *text, const char *detail) {
    refuses_bytes(want, bytes_of(text, strlen(text)), detail);
}

static void claim_reads(void) {
    AUTO(json_free) cJSON *tree = NULL;
    CHECK_OK(parse_text(&tree, " {\"a\": \"1\", \"n\": 42, \"l\": [\"x\",\"y\"], \"t\": true} \n"));
    const char *text, *texts[2];
    uint64_t n;
    bool b;
    size_t count;
    const cJSON *member;
    CHECK_OK(json_text_member(&text, tree, "a"));
    CHECK_STR("1", text);
    CHECK_OK(json_number_member(&n, tree, 0, 100, "n"));
    CHECK_EQ(42, n);
    CHECK_OK(json_list_member(&member, &count, tree, "l"));
    CHECK_EQ(2, count);
    CHECK_OK(json_texts(texts, 2, member, "l"));
    CHECK_STR("y", texts[1]);
    CHECK_OK(json_member(&member, tree, "t"));
    CHECK_OK(json_bool(&b, member, "t"));
    CHECK(b);
}

static void claim_kinds(void) {
    AUTO(json_free) cJSON *tree = NULL;
    CHECK_OK(
        parse_text(&tree, "{\"a\": 1, \"l\": [\"x\", 2], \"f\": 1.5, \"m\": -1, \"e\": 1e300}"));
    const char *texts[3] = {NULL};
    const cJSON *member;
    uint64_t n = 7;
    size_t count;
    CHECK_ERR(E_FORMAT, json_text_member(texts, tree, "a"));
    CHECK_STR("a is not a text in quotes", err_detail());
    CHECK_ERR(E_FORMAT, json_text_member(texts, tree, "zz"));
    CHECK_STR("field \"zz\" is missing", err_detail());
    CHECK_OK(json_member(&member, tree, "l"));
    CHECK_ERR(E_FORMAT, json_texts(texts, 2, member, "pi_a"));
    CHECK_STR("pi_a[1] is not a text in quotes", err_detail());
    CHECK(!texts[0]);
    CHECK_ERR(E_FORMAT, json_texts(texts, 3, member, "pi_a"));
    CHECK_STR("pi_a has 2 entries, 3 are expected", err_detail());
    CHECK_ERR(E_FORMAT, json_number_member(&n, tree, 0, 10, "l"));
    CHECK_ERR(E_FORMAT, json_number_member(&n, tree, 0, 10, "f"));
    CHECK_ERR(E_RANGE, json_number_member(&n, tree, 0, 10, "m"));
    CHECK_ERR(E_RANGE, json_number_member(&n, tree, 0, 10, "e"));
    CHECK_ERR(E_RANGE, json_number_member(&n, tree, 2, 10, "a"));
    CHECK_ERR(E_FORMAT, json_list_member(&member, &count, tree, "a"));
    CHECK_ERR(E_FORMAT, json_member(&member, member, "x")); /* a list has no fields */
    bool b;
    CHECK_ERR(E_FORMAT, json_bool(&b, member, "l"));
    CHECK_EQ(7, n);
}

static void claim_not_json(void) {
    refuses(E_FORMAT, "", "is empty");
    refuses(E_FORMAT, "   ", "is not JSON");
    refuses(E_FORMAT, "{\"a\": 1,\n \"b\": }", "line 2, column 7");
    refuses(E_FORMAT, "[1, 2", "is not JSON");
    refuses(E_FORMAT, "\"open", "is not JSON");
    refuses(E_FORMAT, "\"open\\", "is not JSON");
    refuses(E_FORMAT, "[1] [2]", "text after the JSON value, at line 1, column 5");
    refuses(E_FORMAT, "\xef\xbb\xbf[]", "byte-order mark");
    refuses(E_FORMAT, "nul", "is not JSON");
}

static void claim_ambiguous(void) {
    refuses(E_FORMAT, "{\"a\":1,\"a\":2}", "field \"a\" is there twice");
    refuses(E_FORMAT, "[[{\"a\":1,\"b\":{\"x\":1,\"x\":1}}]]", "field \"x\" is there twice");
    refuses(E_FORMAT, "{\"a\":\"1\\u00002\"}", "\\u0000");
    refuses(E_FORMAT, "[\"a\nb\"]", "control character");
    refuses_bytes(E_FORMAT, bytes_of("[1,\0 2]", 7), "is zero");
    refuses_bytes(E_FORMAT, bytes_of("[\"1\0\"]", 6), "control character");
    AUTO(json_free) cJSON *tree = NULL;
    CHECK_OK(parse_text(&tree, "[\"\\\\u0000\"]")); /* a backslash and a text */
}

static void claim_limits(void) {
    AUTO(text_free) struct text t = {0};
    for (int depth = 0; depth < JSON_DEPTH_MAX; depth++) {
        text_add(&t, "[");
    }
    AUTO(text_free) struct text ok = {0};
    text_add(&ok, t.ptr);
    for (int depth = 0; depth < JSON_DEPTH_MAX; depth++) {
        text_add(&ok, "]");
    }
    AUTO(json_free) cJSON *tree = NULL;
    CHECK_OK(parse_text(&tree, ok.ptr));
    text_add(&t, "[");
    refuses(E_FORMAT, t.ptr, "nested deeper than 64");
    text_free(&t);
    text_add(&t, "{\"f\":0");
    for (int i = 0; i < JSON_FIELDS_MAX; i++) {
        text_addf(&t, ",\"f%d\":0", i);
    }
    text_add(&t, "}");
    refuses(E_FORMAT, t.ptr, "fields in one object");
    text_free(&t);
    text_add(&t, "[0");
    for (int i = 0; i < JSON_VALUES_MAX; i++) {
        text_add(&t, ",0");
    }
    refuses(E_FORMAT, t.ptr, "more than 4194304 values");
}

static void claim_mutations(void) {
    static const char seed[] =
        "{\"pi_a\": [\"12\\n\", \"3\", true], \"n\": {\"x\": -1.5e3, \"y\": null}}";
    for (int round = 0; round < 20000; round++) {
        char text[sizeof seed];
        memcpy(text, seed, sizeof seed);
        for (int i = 0; i < 3; i++) {
            text[rng_below(check_rng(), sizeof seed - 1)] = (char)rng_u64(check_rng());
        }
        AUTO(json_free) cJSON *tree = NULL;
        struct bytes exact = bytes_of(text, rng_below(check_rng(), sizeof seed));
        IGNORE(json_parse(&tree, exact, "x.json")); /* refused or read, never past the end */
    }
}

static enum err parse_example(void *ctx) {
    AUTO(json_free) cJSON *tree = NULL;
    return parse_text(&tree, ctx);
}

static void claim_allocation(void) {
    char example[] = "{\"a\": [\"1\", {\"b\": 2}], \"c\": true}";
    CHECK(check_allocations(parse_example, example) >= 9);
}

static void claim_file(void) {
    AUTO(json_free) cJSON *tree = NULL;
    CHECK_ERR(E_IO, json_read(&tree, "/nonexistent.json"));
    CHECK_HAS(err_detail(), "/nonexistent.json");
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"values are read by field and kind", claim_reads},
        {"a value of another kind is named with its field", claim_kinds},
        {"what is not JSON is refused with line and column", claim_not_json},
        {"texts with two meanings are refused", claim_ambiguous},
        {"depth, fields and values have limits", claim_limits},
        {"damaged texts are refused or read, never past their end", claim_mutations},
        {"a failed allocation is E_LIMIT, not a syntax error", claim_allocation},
        {"a file that is not there is named", claim_file},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
