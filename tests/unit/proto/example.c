/* The worked example of proto/README.md: every byte that the page shows is what our code writes and reads.
 *
 * Blocks marked ```hex hold lines of "bytes   what they are"; what stands behind two spaces, or instead of a byte, is for people. The
 * blocks come in the order of the table below.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/file.h"
#include "node/base/hash.h"
#include "node/base/mem.h"
#include "proto/body.h"
#include "tests/check/check.h"

#include <xxhash.h>

enum { VALUES_COUNT = 4, RAW_BYTES = 32 * VALUES_COUNT, BLOCK_BYTES_MAX = 4096 };

static const uint64_t bn254_r[4] = {0x43e1f593f0000001, 0x2833e84879b97091, 0xb85045b68181585d,
                                    0x30644e72e131a029};

static char *page; /* owned */
static const char *at;

static void page_open(void) {
    char path[512];
    struct bytes_mut text;
    snprintf(path, sizeof path, "%s/proto/README.md", getenv("BELLOWS_ROOT"));
    CHECK_OK(file_read_all(&text, path, 1 << 20));
    page = mem_zero_alloc(text.len + 1, 1);
    memcpy(page, text.ptr, text.len);
    mem_free(text.ptr);
    at = page;
}

/* Bytes of the page's next block. */
static size_t next_block(uint8_t out[BLOCK_BYTES_MAX]) {
    size_t len = 0;
    at = strstr(at, "```hex\n");
    CHECK_MSG(at, "proto/README.md has too few blocks of hex");
    at = strchr(at, '\n') + 1;
    while (strncmp(at, "```", 3) != 0) {
        while (isxdigit((unsigned char)at[0]) && isxdigit((unsigned char)at[1]) &&
               (at[2] == ' ' || at[2] == '\n')) {
            CHECK(len < BLOCK_BYTES_MAX);
            out[len++] = (uint8_t)strtoul((char[]){at[0], at[1], 0}, NULL, 16);
            at += at[2] == ' ' && at[3] != ' ' ? 3 : 2;
        }
        at = strchr(at, '\n') + 1;
    }
    return len;
}

static void check_block(const char *what, struct bytes want) {
    uint8_t got[BLOCK_BYTES_MAX];
    size_t len = next_block(got);
    if (len != want.len || memcmp(got, want.ptr, len) != 0) {
        for (size_t i = 0; i < want.len; i++) {
            printf("%02x%s", want.ptr[i], i % 16 == 15 ? "\n" : " ");
        }
        CHECK_MSG(0, "proto/README.md: %s has %zu bytes on the page and should be the %zu above",
                  what, len, want.len);
    }
}

static void example_values(uint8_t out[RAW_BYTES]) {
    memset(out, 0, RAW_BYTES);
    out[0] = 1;
    out[32] = 12;
    out[64] = 3;
    out[96] = 4;
}

/* The section packed. */
static void claim_packed(void) {
    uint8_t values[RAW_BYTES];
    AUTO(codec_survey_close) struct codec_survey survey = {0};
    page_open();
    next_block((uint8_t[BLOCK_BYTES_MAX]){0}); /* the plain frame comes first */
    example_values(values);
    CHECK_OK(codec_survey_open(&survey, bytes_of(values, RAW_BYTES), bn254_r, NULL));
    struct bytes_mut packed = {mem_alloc(survey.bytes), survey.bytes};
    CHECK_OK(codec_encode(packed, &survey, bytes_of(values, RAW_BYTES), bn254_r, NULL));
    check_block("the packed section", bytes_of(packed.ptr, packed.len));
    mem_free(packed.ptr);
    mem_free(page);
}

/* A frame as any protobuf library writes it. */
static size_t example_frame(uint8_t *out) {
    uint8_t values[RAW_BYTES];
    Bellows__V1__Frame frame;
    example_values(values);
    bellows__v1__frame__init(&frame);
    frame.raw_bytes = RAW_BYTES;
    frame.xxh64 = XXH64(values, RAW_BYTES, 0);
    frame.data = (ProtobufCBinaryData){RAW_BYTES, values};
    size_t len = bellows__v1__frame__get_packed_size(&frame);
    out[0] = (uint8_t)(len | 0x80);
    out[1] = (uint8_t)(len >> 7);
    CHECK(len >= 128 && len < 16384);
    return 2 + bellows__v1__frame__pack(&frame, out + 2);
}

static void describe(Bellows__V1__Body **out, uint8_t *frames, size_t frames_bytes) {
    struct frame_section section = {SECTION_WITNESS_RAW, VALUES_COUNT, RAW_BYTES};
    struct body_summary summary = {.wire_bytes = frames_bytes};
    CHECK_OK(frame_layout_init(&summary.layout, &section, 1, 4194304, UINT64_MAX));
    CHECK_OK(sha256_of(&summary.sha256, bytes_of(frames, frames_bytes)));
    CHECK_OK(body_describe(out, &summary,
                           (struct body_place){.inline_frames = bytes_of(frames, frames_bytes)}));
}

static void claim_job(void) {
    uint8_t frames[512], digest[32], got[RAW_BYTES], want[RAW_BYTES], shown[BLOCK_BYTES_MAX];
    size_t frames_bytes = example_frame(frames);
    Bellows__V1__Body *body = NULL;
    Bellows__V1__Partition partition, *partitions[] = {&partition};
    job_message job, *read = NULL;
    struct bytes_mut packed;
    page_open();
    check_block("the frame", bytes_of(frames, frames_bytes));
    next_block(shown); /* the packed section */
    describe(&body, frames, frames_bytes);
    bellows__v1__partition__init(&partition);
    bellows__v1__job__init(&job);
    memset(digest, 0xab, sizeof digest);
    partition.body = body;
    job.version = 1;
    job.job_id = (char[]){"example-1"};
    job.tenant = (char[]){"acme"};
    job.key_digest = (ProtobufCBinaryData){sizeof digest, digest};
    job.curve = BELLOWS__V1__CURVE__BN254;
    job.priority = 2;
    job.generation = 1;
    job.n_partitions = 1;
    job.partitions = partitions;
    CHECK_OK(job_pack(&packed, &job));
    size_t len = next_block(shown); /* without the frames, which the page does not repeat */
    CHECK_MSG(len + frames_bytes == packed.len && !memcmp(shown, packed.ptr, len) &&
                  !memcmp(packed.ptr + len, frames, frames_bytes),
              "proto/README.md: the job differs");
    CHECK_OK(job_unpack(&read, bytes_of(packed.ptr, packed.len), NULL, 1 << 20));
    struct bytes_mut dest = {got, sizeof got};
    CHECK_OK(body_read_inline(read->partitions[0]->body, &dest, 1, 1 << 20));
    example_values(want);
    CHECK_MEM(want, got, sizeof got);
    message_free(&read);
    mem_free(body);
    mem_free(packed.ptr);
    mem_free(page);
}

static void claim_result(void) {
    uint8_t digest[32];
    Bellows__V1__Error error;
    result_message result, *read = NULL;
    struct bytes_mut packed;
    page_open();
    for (int i = 0; i < 3; i++) {
        next_block((uint8_t[BLOCK_BYTES_MAX]){0});
    }
    memset(digest, 0xab, sizeof digest);
    bellows__v1__error__init(&error);
    bellows__v1__result__init(&result);
    error.name = (char[]){"E_UNSAT"};
    error.detail = (char[]){"no"};
    result.version = 1;
    result.job_id = (char[]){"example-1"};
    result.tenant = (char[]){"acme"};
    result.generation = 1;
    result.status = BELLOWS__V1__STATUS__STATUS_FAILED;
    result.key_digest = (ProtobufCBinaryData){sizeof digest, digest};
    result.curve = BELLOWS__V1__CURVE__BN254;
    result.error = &error;
    CHECK_OK(result_pack(&packed, &result));
    check_block("the result", bytes_of(packed.ptr, packed.len));
    CHECK_OK(result_unpack(&read, bytes_of(packed.ptr, packed.len)));
    CHECK_STR("E_UNSAT", read->error->name);
    message_free(&read);
    mem_free(packed.ptr);
    mem_free(page);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"the packed section on the page is what the codec writes", claim_packed},
        {"the frame and the job on the page are read, and give the values", claim_job},
        {"the result on the page is what the fleet writes", claim_result},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
