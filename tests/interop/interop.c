/* The official JavaScript clients against us: what we store they read, what they submit we take.
 *
 * The packages are installed by npm into the build folder, once; without npm or network the claims are skipped. First the
 * C side plays coordinator and lane at the level of messages, then a whole `bellows dev` proves real circuits.
 */
#include "node/base/clock.h"
#include "node/base/file.h"
#include "node/base/mem.h"
#include "node/transport/fleet.h"
#include "proto/body.h"
#include "tests/check/command.h"
#include "tests/check/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S UINT64_C(1000000000)

static struct check_server server;
static char packages[512]; /* folder with package.json and node_modules */

static const char *from_env(const char *name) {
    const char *value = getenv(name);
    CHECK_MSG(value, "%s is not set: run through meson test", name);
    return value;
}

static void copy_file(const char *path) {
    char from[600], to[600];
    struct bytes_mut content;
    snprintf(from, sizeof from, "%s/%s", from_env("BELLOWS_ROOT"), path);
    snprintf(to, sizeof to, "%s/%s", packages, strrchr(path, '/') + 1);
    CHECK_OK(file_read_all(&content, from, 1 << 20));
    CHECK_OK(file_write_all(to, bytes_of(content.ptr, content.len)));
    mem_free(content.ptr);
}

/* Once per build folder and lock file: "installed" is a copy of the lock file that was installed. */
static bool is_installed(struct bytes lock, const char *mark) {
    struct bytes_mut installed;
    if (!file_exists(mark)) {
        return false;
    }
    CHECK_OK(file_read_all(&installed, mark, 1 << 20));
    bool same = installed.len == lock.len && memcmp(installed.ptr, lock.ptr, lock.len) == 0;
    mem_free(installed.ptr);
    return same;
}

static void install(void) {
    static bool refused; /* by the first claim for all */
    static const char *const names[] = {
        "tests/interop/package.json", "tests/interop/package-lock.json",
        "tests/interop/store.js",     "tests/interop/submit.js",
        "tests/interop/discover.js",  "deploy/examples/js/bellows.js"};
    static const char *const npm[] = {"npm",        "ci",        "--ignore-scripts",
                                      "--no-audit", "--no-fund", NULL};
    char out[4096], path[600];
    struct bytes_mut lock;
    snprintf(packages, sizeof packages, "%s/tests/interop/npm", from_env("BELLOWS_BUILD"));
    CHECK_OK(dir_make(packages));
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        copy_file(names[i]);
    }
    snprintf(path, sizeof path, "%s/package-lock.json", packages);
    CHECK_OK(file_read_all(&lock, path, 1 << 20));
    snprintf(path, sizeof path, "%s/installed", packages);
    if (!is_installed(bytes_of(lock.ptr, lock.len), path)) {
        if (refused || check_command(out, sizeof out, packages, npm) != 0) {
            bool first = !refused;
            refused = true;
            mem_free(lock.ptr);
            check_skip("npm cannot install the official clients here%s%.300s", first ? ": " : "",
                       first ? out : "");
        }
        CHECK_OK(file_write_all(path, bytes_of(lock.ptr, lock.len)));
    }
    mem_free(lock.ptr);
}

static struct transport *begin(void) {
    struct transport *t = NULL;
    install();
    if (server.pid == 0) {
        check_server_start(&server, NULL);
    }
    CHECK_OK(transport_open(&t, &(struct transport_options){.url = server.url, .name = "interop"}));
    return t;
}

/* `node store.js SERVER …`: its output. */
#define STORE(out, ...) store(out, sizeof(out), (const char *const[]){__VA_ARGS__, NULL})
static void store(char *out, size_t out_bytes, const char *const *arguments) {
    const char *argv[10] = {"node", "store.js", server.url};
    for (size_t i = 0; arguments[i]; i++) {
        CHECK(i + 4 < COUNT_OF(argv));
        argv[i + 3] = arguments[i];
    }
    int code = check_command(out, out_bytes, packages, argv);
    CHECK_MSG(code == 0, "store.js %s ended with %d: %.600s", arguments[0], code, out);
}

/* --- Stores --- */

static void claim_kv(void) {
    struct transport *t = begin();
    struct kv_entry e;
    uint64_t revision;
    char out[1000], want[64];
    bool found;
    CHECK_OK(kv_ensure(t, &(struct kv_config){.bucket = "ours"}));
    CHECK_OK(kv_put(&revision, t, "ours", "a.b", bytes_of("from C", 6)));
    STORE(out, "kv-get", "ours", "a.b");
    snprintf(want, sizeof want, "%llu from C", (unsigned long long)revision);
    CHECK_STR(want, out);
    CHECK_OK(kv_delete(NULL, t, "ours", "a.b", 0));
    STORE(out, "kv-get", "ours", "a.b");
    CHECK_STR("none", out);
    STORE(out, "kv-put", "ours", "x", "hello");
    CHECK_OK(kv_get(&e, &found, t, "ours", "x"));
    CHECK(found && e.value.len == 5 && e.revision == strtoull(out, NULL, 10));
    CHECK_MEM("hello", e.value.ptr, 5);
    kv_entry_done(&e);
    STORE(out, "kv-make", "theirs");
    CHECK_OK(kv_put(&revision, t, "theirs", "y", bytes_of("1", 1)));
    STORE(out, "kv-get", "theirs", "y");
    CHECK_STR("1 1", out);
    transport_close(&t);
}

struct gather {
    uint8_t *ptr;
    size_t len, cap;
};

static enum err gather(void *ctx, struct bytes chunk) {
    struct gather *g = ctx;
    REQUIRE(chunk.len <= g->cap - g->len, E_INTERNAL, "more than was put");
    memcpy(g->ptr + g->len, chunk.ptr, chunk.len);
    g->len += chunk.len;
    return OK;
}

static void check_object_exchange(struct transport *t, const char *bucket, size_t bytes) {
    char out[1000], path[600], back_path[600];
    struct object_info info;
    bool found;
    uint8_t *data = mem_alloc(bytes + 1);
    struct gather g = {.ptr = mem_alloc(bytes + 1), .cap = bytes};
    struct bytes_mut back;
    rng_fill(check_rng(), data, bytes);
    snprintf(path, sizeof path, "%s/data", server.dir);
    snprintf(back_path, sizeof back_path, "%s/back", server.dir);
    CHECK_OK(file_write_all(path, bytes_of(data, bytes)));
    STORE(out, "obj-put", bucket, "from js", path);
    CHECK_OK(object_get(&info, &found, t, bucket, "from js", bytes, gather, &g));
    CHECK(found && g.len == bytes);
    CHECK_EQ((bytes + 131071) / 131072, info.chunks_count); /* the client's own chunk size */
    CHECK_MEM(data, g.ptr, bytes);
    CHECK_OK(object_put_bytes(&info, t, bucket, "from/c + x", bytes_of(data, bytes)));
    STORE(out, "obj-get", bucket, "from/c + x", back_path);
    CHECK_OK(file_read_all(&back, back_path, bytes + 1));
    CHECK_EQ(bytes, back.len);
    CHECK_MEM(data, back.ptr, bytes);
    mem_free(back.ptr);
    mem_free(g.ptr);
    mem_free(data);
}

static void claim_objects(void) {
    struct transport *t = begin();
    char out[1000];
    CHECK_OK(object_bucket_ensure(t, &(struct object_bucket_config){.bucket = "objects"}));
    check_object_exchange(t, "objects", 3000000);
    check_object_exchange(t, "objects", 1);
    STORE(out, "obj-make", "their-objects");
    check_object_exchange(t, "their-objects", 300000);
    transport_close(&t);
}

/* --- A job from JavaScript --- */

struct values {   /* of a witness that proves nothing */
    uint8_t *ptr; /* owned */
    size_t bytes;
};

static struct values make_values(size_t count) {
    struct values v = {mem_zero_alloc(count, 32), 32 * count};
    for (size_t i = 0; i < count; i++) {
        rng_fill(check_rng(), v.ptr + 32 * i, 31);
    }
    return v;
}

static void write_wtns(const char *path, struct values v) {
    size_t header = 12 + 12 + 40 + 12;
    uint8_t *file = mem_zero_alloc(1, header + v.bytes);
    memcpy(file, "wtns\2\0\0\0\2\0\0\0", 12);
    store_u32le(file + 12, 1);
    store_u64le(file + 16, 40);
    store_u32le(file + 24, 32);
    store_u32le(file + 60, (uint32_t)(v.bytes / 32));
    store_u32le(file + 64, 2);
    store_u64le(file + 68, v.bytes);
    memcpy(file + header, v.ptr, v.bytes);
    CHECK_OK(file_write_all(path, bytes_of(file, header + v.bytes)));
    mem_free(file);
}

static enum err fetch_body(struct bytes_mut dest, struct transport *t,
                           const Bellows__V1__Body *body) {
    if (body->place_case == BELLOWS__V1__BODY__PLACE_INLINE_FRAMES) {
        return body_read_inline(body, &dest, 1, dest.len);
    }
    AUTO(body_reader_free) struct body_reader *reader = NULL;
    AUTO(object_download_close) struct object_download *d = NULL;
    struct sha256 sha256;
    memcpy(sha256.b, body->sha256.data, sizeof sha256.b);
    struct object_download_options o = {.bucket = body->object->bucket,
                                        .nuid = body->object->nuid,
                                        .bytes = body->wire_bytes,
                                        .sha256 = &sha256};
    TRY(body_reader_new(&reader, body, &dest, 1, dest.len));
    TRY(object_download_open(&d, t, &o));
    for (bool end = false; !end;) {
        struct message m = {0};
        TRY(object_download_next(&m, &end, d));
        enum err err = end ? OK : body_reader_add(reader, m.data);
        message_done(&m);
        TRY(err);
    }
    return body_reader_end(reader);
}

/* Takes one job, checks its witness, stores a made-up result whose points count 0, 1, 2, …. */
static void serve(struct transport *t, const struct subject_space *space, struct values want) {
    struct puller *p = NULL;
    struct message m;
    struct subject_parts parts;
    struct subject stream = stream_name(space, "JOBS"), consumer = consumer_of_priority(2);
    AUTO(message_free) job_message *job = NULL;
    struct bytes_mut got = {mem_alloc(want.bytes), want.bytes};
    CHECK_OK(puller_open(&p, t, stream.text, consumer.text));
    CHECK_OK(puller_next(&m, p, 30 * S));
    CHECK_OK(subject_parse(&parts, space, m.subject));
    CHECK_OK(job_unpack(&job, m.data, &parts, want.bytes));
    for (size_t i = 0; i < job->n_partitions; i++) {
        CHECK_OK(fetch_body(got, t, job->partitions[i]->body));
        CHECK_MEM(want.ptr, got.ptr, got.len);
    }
    uint8_t points[128];
    for (size_t i = 0; i < sizeof points; i++) {
        points[i] = i % 32 ? 0 : (uint8_t)(i / 32 + 7);
    }
    Bellows__V1__Proof proof;
    part_message part, *part_ptr = &part;
    result_message result;
    bellows__v1__proof__init(&proof);
    bellows__v1__part_result__init(&part);
    bellows__v1__result__init(&result);
    proof.a = proof.c = proof.publics = (ProtobufCBinaryData){64, points};
    proof.b = (ProtobufCBinaryData){128, points};
    part.version = result.version = 1;
    part.status = result.status = BELLOWS__V1__STATUS__STATUS_OK;
    part.proof = &proof;
    result.job_id = job->job_id;
    result.tenant = job->tenant;
    result.generation = job->generation;
    result.curve = job->curve;
    result.n_partitions = 1;
    result.partitions = &part_ptr;
    struct bytes_mut packed;
    struct publish_ack ack;
    struct subject done =
        subject_done(space, (struct job_name){job->tenant, job->job_id}, job->generation);
    CHECK_OK(result_pack(&packed, &result));
    CHECK_OK(transport_publish(&ack, t, done.text, bytes_of(packed.ptr, packed.len),
                               &(struct publish_options){.expect_last = true}));
    CHECK_EQ(PUBLISH_STORED, ack.outcome);
    CHECK_OK(transport_ack_sync(t, m.reply, 0));
    mem_free(packed.ptr);
    mem_free(got.ptr);
    message_done(&m);
    puller_close(&p);
}

static void submit_and_serve(size_t values_count, const char *const *options, const char *want) {
    struct transport *t = begin();
    struct subject_space space;
    struct check_command submit;
    char out[4096], path[600], proto[600], digest[65];
    struct values v = make_values(values_count);
    snprintf(path, sizeof path, "%s/w.wtns", server.dir);
    snprintf(proto, sizeof proto, "%s/proto", from_env("BELLOWS_ROOT"));
    snprintf(digest, sizeof digest, "%064d", 7);
    write_wtns(path, v);
    CHECK_OK(subject_space_init(&space, NULL));
    CHECK_OK(fleet_ensure(t, &space, NULL));
    CHECK_OK(fleet_ensure(t, &space, NULL)); /* idempotent */
    CHECK_OK(fleet_ensure_tenant(t, &space, "acme", NULL));
    const char *argv[20] = {"node",         "submit.js", "--server",  server.url,
                            "--proto",      proto,       "--tenant",  "acme",
                            "--key-digest", digest,      "--wait-ms", "20000"};
    size_t argc = 12;
    for (; *options; options++) {
        argv[argc++] = *options;
    }
    argv[argc] = path;
    check_command_start(&submit, packages, argv);
    serve(t, &space, v);
    CHECK_MSG(check_command_finish(&submit, out, sizeof out) == 0, "submit.js: %.800s", out);
    CHECK_HAS(out, "\"status\":1");
    CHECK_HAS(out, want);
    CHECK_HAS(out, "\"pi_a\":[\"7\",\"8\",\"1\"]");
    CHECK_HAS(out, "\"pi_b\":[[\"7\",\"8\"],[\"9\",\"10\"],[\"1\",\"0\"]]");
    CHECK_HAS(out, "\"publics\":[\"7\",\"8\"]");
    mem_free(v.ptr);
    transport_close(&t);
}

static void claim_submit_object(void) {
    static const char *const options[] = {"--object", "--frame-bytes", "262144", NULL};
    submit_and_serve(30000, options, "\"places\":[\"object\"],\"frames\":[4]");
}

static void claim_submit_inline(void) {
    static const char *const options[] = {NULL};
    submit_and_serve(3000, options, "\"places\":[\"inline\"],\"frames\":[1]");
}

/* --- A whole fleet --- */

/* Runs in `bellows dev --run`: $1 program, $2 vectors of one case, $3 folder of the scripts, $4 proto, $5 curve number. */
static const char fleet_script[] =
    "set -e\n"
    "\"$1\" key push \"$2/circuit.zkey\" --json\n"
    "digest=$(sha256sum \"$2/circuit.zkey\" | cut -c1-64)\n"
    "cd \"$3\"\n"
    "for place in '' --object; do\n"
    "  node submit.js --server \"$BELLOWS_SERVER\" --proto \"$4\" --tenant default \\\n"
    "    --key-digest $digest --curve $5 --frame-bytes 4096 $place --wait-ms 60000 \\\n"
    "    --proof proof.json --public public.json \"$2/witness.wtns\" \"$2/witness.wtns\"\n"
    "  \"$1\" verify \"$2/verification_key.json\" public.json proof.json\n"
    "  \"$1\" verify \"$2/verification_key.json\" \"$2/public.json\" proof.json\n"
    "done\n";

static void run_fleet(const char *curve_folder, const char *curve_number) {
    char program[600], script[600], vectors[600], proto[600], command[3200], out[8192];
    install();
    snprintf(program, sizeof program, "%s/bellows", from_env("BELLOWS_BUILD"));
    if (!file_exists(program)) {
        check_skip("there is no %s", program);
    }
    snprintf(script, sizeof script, "%s/fleet.sh", packages);
    snprintf(vectors, sizeof vectors, "%s/%s/merkle", from_env("BELLOWS_VECTORS"), curve_folder);
    snprintf(proto, sizeof proto, "%s/proto", from_env("BELLOWS_ROOT"));
    CHECK_OK(file_write_all(script, bytes_of(fleet_script, sizeof fleet_script - 1)));
    snprintf(command, sizeof command, "sh '%s' '%s' '%s' '%s' '%s' %s", script, program, vectors,
             packages, proto, curve_number);
    const char *const argv[] = {program, "dev",   "--backend", "cpu", "--log-level",
                                "warn",  "--run", command,     NULL};
    int code = check_command(out, sizeof out, packages, argv);
    size_t len = strlen(out);
    CHECK_MSG(code == 0, "bellows dev ended with %d: …%s", code, out + (len > 700 ? len - 700 : 0));
    CHECK_HAS(out, "\"places\":[\"inline\",\"inline\"]");
    CHECK_HAS(out, "\"places\":[\"object\",\"object\"]");
}

static void claim_fleet_bn254(void) {
    run_fleet("bn128", "1");
}

static void claim_fleet_bls12_381(void) {
    run_fleet("bls12381", "2");
}

/* --- Discovery --- */

static void claim_discovery(void) {
    char program[600], command[1400], out[8192];
    install();
    snprintf(program, sizeof program, "%s/bellows", from_env("BELLOWS_BUILD"));
    if (!file_exists(program)) {
        check_skip("there is no %s", program);
    }
    snprintf(command, sizeof command,
             "cd '%s' && '%s' cancel nothing; "
             "node discover.js \"$BELLOWS_SERVER\" bellows-coordinator bellows-node",
             packages, program);
    const char *const argv[] = {program, "dev",   "--backend", "cpu", "--log-level",
                                "warn",  "--run", command,     NULL};
    int code = check_command(out, sizeof out, packages, argv);
    CHECK_MSG(code == 0, "bellows dev ended with %d: %.800s", code, out);
    CHECK_HAS(out, "{\"name\":\"bellows-coordinator\",\"instances\":1,");
    CHECK_HAS(out, "\"leads\":true,\"ready\":true,");
    CHECK_HAS(out, "\"lanes_open\":2");
    CHECK_HAS(out, "{\"name\":\"bellows-node\",\"instances\":1,");
    CHECK_HAS(out, "\"bellows.ctl.node.dev.drain\"");
    CHECK_HAS(out, "\"data\":{\"lanes\":2,\"running\":2}");
    CHECK(!strstr(out, "\"requests\":[0],\"data\":{\"leads\"")); /* the cancel was counted */
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"key-value entries go both ways", claim_kv},
        {"objects go both ways, in each side's chunks", claim_objects},
        {"a job from JavaScript, its body an object of four frames", claim_submit_object},
        {"a job from JavaScript, its body inline", claim_submit_inline},
        {"a fleet proves for JavaScript, BN254, inline and from objects", claim_fleet_bn254},
        {"a fleet proves for JavaScript, BLS12-381, inline and from objects",
         claim_fleet_bls12_381},
        {"coordinator and node are found by the official services client", claim_discovery},
    };
    int code = check_main(argc, argv, claims, COUNT_OF(claims));
    check_server_stop(&server);
    return code;
}
