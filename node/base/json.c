/* Three passes. A scan of the raw text, without memory, refuses what cJSON would misread or what would cost too much:
 * it knows only whether it is inside a string, how deep it is and how many values there can be. cJSON parses. A walk
 * over the tree, which the scan has bounded in depth, refuses fields given twice.
 */
#include "node/base/json.h"

#include <pthread.h>
#include <string.h>

#include "node/base/file.h"
#include "node/base/mem.h"

static pthread_once_t hooks_once = PTHREAD_ONCE_INIT;
static _Thread_local bool ran_out; /* cJSON reports a failed allocation like a syntax error */

static void *tree_alloc(size_t bytes) {
    void *block = mem_alloc(bytes);
    ran_out = ran_out || !block;
    return block;
}

/* cJSON's hooks are the whole process's, so a guest leaves them alone. */
static void set_hooks(void) {
#ifdef BELLOWS_GUEST
    (void)tree_alloc;
#else
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = tree_alloc, .free_fn = mem_free});
#endif
}

/* Line and column, from 1, of byte `at`. */
struct place {
    size_t line, column;
};
static struct place place_of(struct bytes text, size_t at) {
    struct place p = {1, 1};
    for (size_t i = 0; i < at && i < text.len; i++) {
        p.column++;
        if (text.ptr[i] == '\n') {
            p.line++;
            p.column = 1;
        }
    }
    return p;
}

static FALLIBLE check_string(size_t *at, struct bytes text) {
    size_t i = *at + 1;
    for (; i < text.len && text.ptr[i] != '"'; i++) {
        struct place p;
        if (text.ptr[i] < 0x20) {
            p = place_of(text, i);
            FAIL(E_FORMAT, "line %zu, column %zu: a control character inside quotes", p.line,
                 p.column);
        }
        if (text.ptr[i] != '\\') {
            continue;
        }
        i++;
        if (text.len - i >= 5 && !memcmp(text.ptr + i, "u0000", 5)) {
            p = place_of(text, i);
            FAIL(E_FORMAT, "line %zu, column %zu: \\u0000 inside quotes", p.line, p.column);
        }
    }
    *at = i;
    return OK;
}

static FALLIBLE scan(struct bytes text) {
    REQUIRE(text.len <= JSON_BYTES_MAX, E_FORMAT, "%zu bytes of JSON, at most %d allowed", text.len,
            JSON_BYTES_MAX);
    REQUIRE(text.len > 0, E_FORMAT, "is empty; JSON was expected");
    REQUIRE(text.ptr[0] != 0xef, E_FORMAT, "starts with a byte-order mark; save it without one");
    size_t depth = 0, values_count = 1;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (c == '"') {
            TRY(check_string(&i, text));
        } else if (c == '[' || c == '{') {
            depth++;
            values_count++;
            REQUIRE(depth <= JSON_DEPTH_MAX, E_FORMAT, "byte %zu: nested deeper than %d levels", i,
                    JSON_DEPTH_MAX);
        } else if (c == ']' || c == '}') {
            depth -= depth > 0;
        } else if (c == ',') {
            values_count++;
            REQUIRE(values_count <= JSON_VALUES_MAX, E_FORMAT, "more than %d values",
                    JSON_VALUES_MAX);
        } else if (c == '\0') {
            FAIL(E_FORMAT, "byte %zu of %zu is zero; this is not JSON", i, text.len);
        }
    }
    return OK;
}

static FALLIBLE check_fields(const cJSON *value) {
    size_t count = 0;
    for (const cJSON *m = value->child; m; m = m->next) {
        TRY(check_fields(m));
        if (!cJSON_IsObject(value)) {
            continue;
        }
        REQUIRE(++count <= JSON_FIELDS_MAX, E_FORMAT, "more than %d fields in one object",
                JSON_FIELDS_MAX);
        for (const cJSON *earlier = value->child; earlier != m; earlier = earlier->next) {
            REQUIRE(strcmp(earlier->string, m->string) != 0, E_FORMAT,
                    "field \"%.64s\" is there twice", m->string);
        }
    }
    return OK;
}

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static FALLIBLE parse(cJSON **out, struct bytes json) {
    TRY(scan(json));
    pthread_once(&hooks_once, set_hooks);
    ran_out = false;
    const char *text = (const char *)json.ptr, *end = NULL;
    AUTO(json_free) cJSON *tree = cJSON_ParseWithLengthOpts(text, json.len, &end, false);
    REQUIRE(tree || !ran_out, E_LIMIT, "out of memory: the tree of %zu bytes of JSON", json.len);
    size_t at = end ? (size_t)(end - text) : 0;
    while (tree && at < json.len && is_space(text[at])) {
        at++;
    }
    struct place p = place_of(json, at);
    REQUIRE(tree, E_FORMAT, "is not JSON: line %zu, column %zu makes no sense", p.line, p.column);
    REQUIRE(at == json.len, E_FORMAT, "has text after the JSON value, at line %zu, column %zu",
            p.line, p.column);
    TRY(check_fields(tree));
    *out = TAKE(tree);
    return OK;
}

enum err json_parse(cJSON **out, struct bytes json, const char *name) {
    enum err code = parse(out, json);
    return code == OK ? OK : err_prefix(code, "%s", name);
}

enum err json_read(cJSON **out, const char *path) {
    struct bytes_mut text;
    TRY(file_read_all(&text, path, JSON_BYTES_MAX));
    enum err code = json_parse(out, bytes_of(text.ptr, text.len), path);
    mem_free(text.ptr);
    return code;
}

void json_free(cJSON **json) {
    cJSON_Delete(*json);
    *json = NULL;
}

enum err json_text(const char **out, const cJSON *value, const char *field) {
    REQUIRE(cJSON_IsString(value), E_FORMAT, "%s is not a text in quotes", field);
    *out = value->valuestring;
    return OK;
}

enum err json_bool(bool *out, const cJSON *value, const char *field) {
    REQUIRE(cJSON_IsBool(value), E_FORMAT, "%s is neither true nor false", field);
    *out = cJSON_IsTrue(value);
    return OK;
}

enum err json_number(uint64_t *out, const cJSON *value, uint64_t least, uint64_t most,
                     const char *field) {
    static const uint64_t exact_limit = UINT64_C(1) << 53;
    ASSERT(most < exact_limit);
    REQUIRE(cJSON_IsNumber(value), E_FORMAT, "%s is not a number", field);
    double d = value->valuedouble;
    REQUIRE(d >= (double)least && d <= (double)most, E_RANGE,
            "%s is %g, but must lie between %llu and %llu", field, d, (unsigned long long)least,
            (unsigned long long)most);
    uint64_t n = (uint64_t)d;
    REQUIRE((double)n == d, E_FORMAT, "%s is %g, not a whole number", field, d);
    *out = n;
    return OK;
}

enum err json_list(size_t *count, const cJSON *value, const char *field) {
    REQUIRE(cJSON_IsArray(value), E_FORMAT, "%s is not a list", field);
    size_t n = 0;
    for (const cJSON *e = value->child; e; e = e->next) {
        n++;
    }
    *count = n;
    return OK;
}

enum err json_texts(const char **out, size_t count, const cJSON *value, const char *field) {
    size_t found;
    TRY(json_list(&found, value, field));
    REQUIRE(found == count, E_FORMAT, "%s has %zu entries, %zu are expected", field, found, count);
    size_t i = 0;
    for (const cJSON *e = value->child; e; e = e->next, i++) {
        REQUIRE(cJSON_IsString(e), E_FORMAT, "%s[%zu] is not a text in quotes", field, i);
    }
    i = 0;
    for (const cJSON *e = value->child; e; e = e->next) {
        out[i++] = e->valuestring;
    }
    return OK;
}

enum err json_member(const cJSON **out, const cJSON *object, const char *field) {
    REQUIRE(cJSON_IsObject(object), E_FORMAT, "is not a JSON object with a field \"%s\"", field);
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(object, field);
    REQUIRE(member, E_FORMAT, "field \"%s\" is missing", field);
    *out = member;
    return OK;
}

enum err json_text_member(const char **out, const cJSON *object, const char *field) {
    const cJSON *member = NULL;
    TRY(json_member(&member, object, field));
    return json_text(out, member, field);
}

enum err json_number_member(uint64_t *out, const cJSON *object, uint64_t least, uint64_t most,
                            const char *field) {
    const cJSON *member = NULL;
    TRY(json_member(&member, object, field));
    return json_number(out, member, least, most, field);
}

enum err json_list_member(const cJSON **out, size_t *count, const cJSON *object,
                          const char *field) {
    const cJSON *member = NULL;
    TRY(json_member(&member, object, field));
    TRY(json_list(count, member, field));
    *out = member;
    return OK;
}
