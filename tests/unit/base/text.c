/* Growing text, and JSON strings that stay JSON whatever is in them. */
#include "node/base/text.h"
#include "node/base/mem.h"
#include "tests/check/check.h"

#include <string.h>

static void claim_grows(void) {
    AUTO(text_free) struct text t = {0};
    for (int i = 0; i < 10000; i++) {
        text_addf(&t, "%d,", i);
    }
    CHECK_OK(text_done(&t));
    CHECK_EQ(48890, t.len);
    CHECK_EQ(t.len, strlen(t.ptr));
    CHECK(!strncmp(t.ptr, "0,1,2,", 6));
    text_free(&t);
    CHECK_EQ(0, t.len);
    text_add(&t, "");
    CHECK_STR("", t.ptr);
}

static void check_json(const char *want, const char *text) {
    AUTO(text_free) struct text t = {0};
    text_add_json_string(&t, text);
    CHECK_OK(text_done(&t));
    CHECK_STR(want, t.ptr);
}

static void claim_json(void) {
    check_json("\"\"", "");
    check_json("\"a\\\"b\\\\c\\n\\t\\r\\b\\f\\u0001\\u007f\"", "a\"b\\c\n\t\r\b\f\x01\x7f");
    check_json("\"Blasebalg für ½ €, 𝔽\"", "Blasebalg für ½ €, 𝔽");
}

static void claim_utf8(void) {
    check_json("\"\xef\xbf\xbd\"", "\x80");
    check_json("\"\xef\xbf\xbd\xef\xbf\xbd\"", "\xc0\x80");                 /* overlong NUL */
    check_json("\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"", "\xed\xa0\x80"); /* a surrogate */
    check_json("\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"", "\xf4\x90\x80\x80");
    check_json("\"\xef\xbf\xbd\xef\xbf\xbd\"", "\xe2\x82"); /* cut */
    check_json("\"\xef\xbf\xbd\xef\xbf\xbd"
               "A\"",
               "\xe2\x82"
               "A");
}

static enum err write_much(void *ctx) {
    (void)ctx;
    AUTO(text_free) struct text t = {0};
    for (int i = 0; i < 1000; i++) {
        text_add(&t, "word ");
        text_addf(&t, "%d", i);
        text_add_json_string(&t, "x\ny");
    }
    return text_done(&t);
}

static void claim_allocation(void) {
    CHECK(check_allocations(write_much, NULL) > 3);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"text grows and stays terminated", claim_grows},
        {"JSON strings are escaped", claim_json},
        {"invalid UTF-8 becomes U+FFFD byte by byte", claim_utf8},
        {"a failed allocation sticks until text_done says it", claim_allocation},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
