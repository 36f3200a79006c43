/* Sizes and times as people write them; names that are nearly right. */
#include "node/base/quantity.h"
#include "node/base/nearest.h"
#include "tests/check/check.h"

static void claim_bytes(void) {
    uint64_t n = 7;
    CHECK_OK(quantity_bytes(&n, "4MiB"));
    CHECK_EQ(4 << 20, n);
    CHECK_OK(quantity_bytes(&n, "123"));
    CHECK_EQ(123, n);
    CHECK_OK(quantity_bytes(&n, "2kB"));
    CHECK_EQ(2000, n);
    CHECK_OK(quantity_bytes(&n, "3TiB"));
    CHECK_EQ(INT64_C(3) << 40, n);
    CHECK_OK(quantity_bytes(&n, "18446744073709551615"));
    CHECK(n == UINT64_MAX);
    CHECK_ERR(E_RANGE, quantity_bytes(&n, "18446744073709551616"));
    CHECK_ERR(E_RANGE, quantity_bytes(&n, "16777216TiB"));
    CHECK_ERR(E_FORMAT, quantity_bytes(&n, "4 MiB"));
    CHECK_ERR(E_FORMAT, quantity_bytes(&n, "4mib"));
    CHECK_ERR(E_FORMAT, quantity_bytes(&n, "MiB"));
    CHECK_ERR(E_FORMAT, quantity_bytes(&n, ""));
    CHECK_ERR(E_FORMAT, quantity_bytes(&n, "-4MiB"));
    CHECK_ERR(E_FORMAT, quantity_bytes(&n, "1.5GiB"));
    CHECK(n == UINT64_MAX);
}

static void claim_spans(void) {
    uint64_t n;
    CHECK_OK(quantity_span_ns(&n, "5s"));
    CHECK_EQ(INT64_C(5000000000), n);
    CHECK_OK(quantity_span_ns(&n, "250us"));
    CHECK_EQ(250000, n);
    CHECK_OK(quantity_span_ns(&n, "2min"));
    CHECK_EQ(INT64_C(120000000000), n);
    CHECK_OK(quantity_span_ns(&n, "0"));
    CHECK_EQ(0, n);
    CHECK_ERR(E_FORMAT, quantity_span_ns(&n, "5"));
    CHECK_HAS(err_detail(), "ns us ms s min h d");
    CHECK_ERR(E_RANGE, quantity_span_ns(&n, "999999999999d"));
}

static void claim_back(void) {
    for (int i = 0; i < 2000; i++) {
        uint64_t n = rng_u64(check_rng()) >> rng_below(check_rng(), 64), back;
        n <<= rng_below(check_rng(), 30);
        char text[QUANTITY_TEXT_BYTES];
        quantity_bytes_text(text, n);
        CHECK_OK(quantity_bytes(&back, text));
        CHECK(back == n);
        quantity_span_text(text, n);
        CHECK_OK(quantity_span_ns(&back, text));
        CHECK(back == n);
    }
    char text[QUANTITY_TEXT_BYTES];
    quantity_bytes_text(text, 4 << 20);
    CHECK_STR("4MiB", text);
    quantity_span_text(text, UINT64_C(90000000000));
    CHECK_STR("90s", text);
}

static void claim_numbers(void) {
    uint64_t n;
    CHECK_OK(quantity_number(&n, "007"));
    CHECK_EQ(7, n);
    CHECK_ERR(E_FORMAT, quantity_number(&n, "7x"));
    CHECK_ERR(E_FORMAT, quantity_number(&n, " 7"));
    CHECK_ERR(E_FORMAT, quantity_number(&n, "0x7"));
}

static void claim_nearest(void) {
    static const char *const names[] = {"server", "threads", "log-level"};
    CHECK_STR("server", nearest_name("sever", names, COUNT_OF(names)));
    CHECK_STR("server", nearest_name("serevr", names, COUNT_OF(names)));
    CHECK_STR("threads", nearest_name("thread", names, COUNT_OF(names)));
    CHECK_STR("log-level", nearest_name("log_level", names, COUNT_OF(names)));
    CHECK(!nearest_name("colour", names, COUNT_OF(names)));
    CHECK(!nearest_name("", names, COUNT_OF(names)));
    CHECK(!nearest_name("server", names, 0));
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"sizes have units, fit 64 bits and hold nothing else", claim_bytes},
        {"times need a unit", claim_spans},
        {"what is written reads back exactly", claim_back},
        {"numbers are decimal digits", claim_numbers},
        {"a nearly right name finds the right one", claim_nearest},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
