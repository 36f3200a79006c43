/* Keys and witnesses as files: what is remembered of them, what happens when they change or the world fails. */
#include "tests/format/damaged.h"

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/base/pool.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *scratch; /* owned by the claim that made it */

static void scratch_open(void) {
    CHECK_OK(dir_make_temp(&scratch, "bellows-format"));
    setenv("BELLOWS_CACHE", scratch, 1);
}

static void scratch_close(void) {
    CHECK_OK(dir_remove_tree(scratch));
    mem_free(scratch);
    scratch = NULL;
}

static const char *scratch_path(const char *name) {
    static char paths[4][512];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", scratch, name);
    return path;
}

static const char *put_case(const char *curve, const char *tail, const char *as) {
    struct damaged d = damaged_case(curve, tail);
    const char *path = scratch_path(as);
    CHECK_OK(file_write_all(path, bytes_of(d.ptr, d.len)));
    damaged_free(&d);
    return path;
}

/* How many files a folder of the scratch holds; *last is the path of one of them. */
static size_t files_below(const char *folder, char last[1024]) {
    DIR *dir = opendir(scratch_path(folder));
    size_t count = 0;
    for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        if (e->d_name[0] != '.') {
            snprintf(last, 1024, "%s/%s/%s", scratch, folder, e->d_name);
            count++;
        }
    }
    if (dir) {
        closedir(dir);
    }
    return count;
}

static void overwrite(const char *path, const char *text) {
    CHECK_OK(file_write_all(path, bytes_of(text, strlen(text))));
}

static void digest_of(struct sha256 *out, const char *path) {
    struct key *key = NULL;
    CHECK_OK(key_open(&key, path, (struct key_options){false}));
    CHECK_OK(key_digest(out, key));
    key_unref(&key);
}

static void claim_digest_remembered(void) {
    scratch_open();
    const char *path = put_case("bn128", "base/circuit.zkey", "a.zkey");
    struct sha256 first, second;
    digest_of(&first, path);
    char memory[1024];
    CHECK_EQ(0, files_below("digests", memory)); /* just written: not to be trusted yet */
    clock_sleep_ns(2100000000ull);
    digest_of(&first, path);
    CHECK_EQ(1, files_below("digests", memory));
    digest_of(&second, path);
    CHECK_MEM(&first, &second, sizeof first);
    /* What is remembered is used: write another number there and it comes back. */
    char line[80];
    snprintf(line, sizeof line, "%064d\n", 7);
    overwrite(memory, line);
    digest_of(&second, path);
    CHECK(second.b[31] == 7 && second.b[0] == 0);
    /* Nonsense there is not. */
    static const char *const nonsense[] = {"x", "7\n", "\n"};
    for (size_t i = 0; i < COUNT_OF(nonsense); i++) {
        overwrite(memory, nonsense[i]);
        digest_of(&second, path);
        CHECK_MEM(&first, &second, sizeof first);
    }
    scratch_close();
}

static void claim_replaced_file_has_its_own_digest(void) {
    scratch_open();
    const char *path = put_case("bn128", "base/circuit.zkey", "a.zkey");
    clock_sleep_ns(2100000000ull);
    struct sha256 first, second, third;
    digest_of(&first, path);
    CHECK_OK(file_write_all(path, (struct bytes){(const uint8_t *)"x", 1}));
    put_case("bn128", "base-zero/circuit.zkey", "a.zkey"); /* same length, same name */
    digest_of(&second, path);
    CHECK(memcmp(&first, &second, sizeof first) != 0);
    put_case("bn128", "base/circuit.zkey", "a.zkey");
    digest_of(&third, path);
    CHECK_MEM(&first, &third, sizeof first);
    scratch_close();
}

static double last_done;
static unsigned progress_calls;

static void on_progress(void *ctx, double done) {
    CHECK(ctx == &last_done);
    CHECK(done > last_done && done <= 1.0);
    last_done = done;
    progress_calls++;
}

static void claim_check_remembered(void) {
    scratch_open();
    struct pool *pool = NULL;
    CHECK_OK(pool_open(&pool, 3));
    for (size_t c = 0; c < CURVES_COUNT; c++) {
        char name[32];
        snprintf(name, sizeof name, "%zu.zkey", c);
        const char *path = put_case(curve_dirs[c], "bits/circuit.zkey", name);
        struct key *key = NULL;
        struct key_report first, second;
        CHECK_OK(key_open(&key, path, (struct key_options){false}));
        last_done = 0;
        progress_calls = 0;
        CHECK_OK(key_check(&first, key, pool, on_progress, &last_done));
        CHECK(!first.remembered && progress_calls > 0);
        CHECK(last_done == 1.0); /* NOLINT: exactly one at the end */
        CHECK_EQ(3 * 132 + 130 + 256, first.points_checked);
        CHECK(first.infinities_count[KEY_B1] > 0);
        CHECK_EQ(first.infinities_count[KEY_B1], first.infinities_count[KEY_B2]);
        CHECK_EQ(0, first.infinities_count[KEY_H]);
        progress_calls = 0;
        CHECK_OK(key_check(&second, key, NULL, on_progress, &last_done));
        CHECK(second.remembered);
        CHECK_EQ(0, progress_calls);
        CHECK_EQ(first.points_checked, second.points_checked);
        CHECK_MEM(first.infinities_count, second.infinities_count, sizeof first.infinities_count);
        key_unref(&key);
    }
    char memory[1024];
    CHECK_EQ(2, files_below("checked", memory));
    pool_close(&pool);
    scratch_close();
}

static void claim_check_finds_first_bad_point(void) {
    scratch_open();
    struct pool *pool = NULL;
    CHECK_OK(pool_open(&pool, 3));
    for (size_t c = 0; c < CURVES_COUNT; c++) {
        struct damaged d = damaged_case(curve_dirs[c], "bits/circuit.zkey");
        size_t n8 = zkey_q_bytes(&d), h = section_place(&d, 9);
        /* 255·k/31 are looked at when opening: 100 and 200 are not. */
        d.ptr[h + 100 * 2 * n8 + n8] ^= 1;
        d.ptr[h + 200 * 2 * n8 + n8] ^= 1;
        const char *path = scratch_path("bad.zkey");
        CHECK_OK(file_write_all(path, bytes_of(d.ptr, d.len)));
        struct key *key = NULL;
        struct key_report report;
        CHECK_OK(key_open(&key, path, (struct key_options){false}));
        CHECK_ERR(E_CURVE, key_check(&report, key, pool, NULL, NULL));
        CHECK_HAS(err_detail(), "section 9 (H points): point 100 at byte");
        CHECK_ERR(E_CURVE, key_check(&report, key, NULL, NULL, NULL)); /* and is not remembered */
        char memory[1024];
        CHECK_EQ(0, files_below("checked", memory));
        key_unref(&key);
        damaged_free(&d);
    }
    pool_close(&pool);
    scratch_close();
}

/* On BLS12-381 most points of the curve are outside the subgroup: (0, 2) is. Opening looks at the curve only. */
static void claim_check_finds_points_outside_subgroup(void) {
    scratch_open();
    const struct curve *c = curve_by_id(CURVE_BLS12_381);
    struct damaged d = damaged_case("bls12381", "base/circuit.zkey");
    uint64_t two[FP_LIMBS_MAX] = {2}, y[FP_LIMBS_MAX];
    CHECK(c->fp_from_int(y, two));
    size_t at = section_place(&d, 5) + 2 * c->g1_bytes;
    memset(d.ptr + at, 0, c->fp_bytes);
    memcpy(d.ptr + at + c->fp_bytes, y, c->fp_bytes);
    const char *path = scratch_path("outside.zkey");
    CHECK_OK(file_write_all(path, bytes_of(d.ptr, d.len)));
    struct key *key = NULL;
    struct key_report report;
    CHECK_OK(key_open(&key, path, (struct key_options){false}));
    CHECK_ERR(E_CURVE, key_check(&report, key, NULL, NULL, NULL));
    CHECK_HAS(err_detail(), "section 5 (A points): point 2");
    CHECK_HAS(err_detail(), "subgroup");
    key_unref(&key);
    damaged_free(&d);
    scratch_close();
}

static void claim_check_ties_g1_to_g2(void) {
    for (size_t c = 0; c < CURVES_COUNT; c++) {
        scratch_open();
        struct damaged d = damaged_case(curve_dirs[c], "base/circuit.zkey");
        struct damaged other = damaged_case(curve_dirs[c], "base-other/circuit.zkey");
        size_t n8 = zkey_q_bytes(&d), delta1 = zkey_domain_place(&d) + 4 + 12 * n8;
        memcpy(d.ptr + delta1, other.ptr + delta1,
               2 * n8); /* another ceremony's delta, in G1 only */
        const char *path = scratch_path("mixed.zkey");
        CHECK_OK(file_write_all(path, bytes_of(d.ptr, d.len)));
        struct key *key = NULL;
        struct key_report report;
        CHECK_OK(key_open(&key, path, (struct key_options){false}));
        CHECK_ERR(E_CURVE, key_check(&report, key, NULL, NULL, NULL));
        CHECK_HAS(err_detail(), "delta in G1 and delta in G2");
        key_unref(&key);
        damaged_free(&other);
        damaged_free(&d);
        scratch_close();
    }
}

static void claim_no_cache_folder(void) {
    scratch_open();
    const char *path = put_case("bn128", "base/circuit.zkey", "a.zkey");
    clock_sleep_ns(2100000000ull);
    static const char *const folders[] = {"/dev/null/x", "/proc/bellows", ""};
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        setenv("BELLOWS_CACHE", folders[i], 1);
        if (!folders[i][0]) { /* no cache folder known at all */
            unsetenv("XDG_CACHE_HOME");
            unsetenv("HOME");
        }
        struct key *key = NULL;
        struct key_report report;
        struct sha256 digest;
        CHECK_OK(key_open(&key, path, (struct key_options){false}));
        CHECK_OK(key_digest(&digest, key));
        CHECK_OK(key_check(&report, key, NULL, NULL, NULL));
        CHECK(!report.remembered);
        CHECK_OK(key_check(&report, key, NULL, NULL, NULL));
        CHECK(!report.remembered);
        key_unref(&key);
    }
    scratch_close();
}

/* ── Large and shrinking files ── */

/* base's sections 1 to 8, section 10 stretched to 5 GiB of hole, then section 9. */
static void claim_section_beyond_4_gib(void) {
    scratch_open();
    const uint64_t stretched = 5ull << 30;
    for (size_t c = 0; c < CURVES_COUNT; c++) {
        struct damaged d = damaged_case(curve_dirs[c], "base/circuit.zkey");
        size_t h = section_place(&d, 9) - 12, h_bytes = 12 + section_length(&d, 9);
        size_t ten = section_place(&d, 10) - 12;
        const char *path = scratch_path("large.zkey");
        int fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
        CHECK(fd >= 0);
        CHECK_EQ(h, pwrite(fd, d.ptr, h, 0));
        damaged_u64(&d, ten + 4, stretched);
        CHECK_EQ(d.len - ten, pwrite(fd, d.ptr + ten, d.len - ten, (off_t)h));
        CHECK_EQ(h_bytes, pwrite(fd, d.ptr + h, h_bytes, (off_t)(h + 12 + stretched)));
        close(fd);
        struct key *key = NULL;
        uint64_t start = clock_ns();
        CHECK_OK(key_open(&key, path, (struct key_options){false}));
        CHECK(clock_ns() - start < REFUSAL_NS_MAX);
        CHECK_EQ(8, key_shape(key)->points_count[KEY_H]);
        bool zkey_layout;
        struct bytes points = key_points_raw(&zkey_layout, key, KEY_H);
        CHECK_MEM(d.ptr + h + 12, points.ptr, points.len);
        struct key_section_view views[10];
        CHECK_EQ(10, key_sections(views, 10, key));
        CHECK(views[8].id == 10 && views[8].bytes == stretched);
        CHECK(views[9].id == 9 && views[9].offset > stretched);
        key_unref(&key);
        unlink(path);
        damaged_free(&d);
    }
    scratch_close();
}

/* The file is larger than a page, so that cutting it takes whole pages away. */
static void claim_truncated_while_mapped(void) {
    scratch_open();
    const char *path = put_case("bls12381", "bits/circuit.zkey", "a.zkey");
    struct key *key = NULL, *other = NULL;
    CHECK_OK(key_open(&key, path, (struct key_options){false}));
    CHECK_OK(
        key_open(&other, check_vectors("bls12381/bits/circuit.zkey"), (struct key_options){false}));
    CHECK_OK(key_intact(key));
    CHECK_EQ(0, truncate(path, 4096));
    struct key_report report;
    CHECK_ERR(E_IO, key_check(&report, key, NULL, NULL, NULL));
    CHECK_HAS(err_detail(), "became shorter");
    CHECK_HAS(err_detail(), "a.zkey");
    CHECK_ERR(E_IO, key_intact(key));
    CHECK_OK(key_intact(other));
    key_unref(&key);
    key_unref(&other);
    scratch_close();
}

static void claim_witness_truncated_while_mapped(void) {
    scratch_open();
    struct damaged d = damaged_case("bn128", "base/witness.wtns");
    static const uint8_t values[1024 * 32];
    damaged_append(&d, values, sizeof values);
    damaged_u32(&d, section_place(&d, 1) + 36, 8 + 1024);
    damaged_u64(&d, section_place(&d, 2) - 8, (8 + 1024) * 32);
    const char *path = scratch_path("w.wtns");
    CHECK_OK(file_write_all(path, bytes_of(d.ptr, d.len)));
    struct witness w;
    CHECK_OK(witness_open(&w, path));
    CHECK_OK(witness_intact(&w));
    CHECK_EQ(0, truncate(path, 4096));
    struct scalar last;
    witness_get(&last, &w, w.count - 1);
    CHECK(scalar_is_zero(&last));
    CHECK_ERR(E_IO, witness_intact(&w));
    CHECK_HAS(err_detail(), "w.wtns: the file became shorter");
    witness_close(&w);
    damaged_free(&d);
    scratch_close();
}

static void claim_files_that_are_none(void) {
    scratch_open();
    struct key *key = NULL;
    struct witness w;
    struct r1cs r;
    const char *missing = scratch_path("missing"), *folder = scratch;
    CHECK_ERR(E_IO, key_open(&key, missing, (struct key_options){false}));
    CHECK_HAS(err_detail(), "missing");
    CHECK_ERR(E_IO, key_open(&key, folder, (struct key_options){false}));
    CHECK_ERR(E_IO, witness_open(&w, missing));
    CHECK_ERR(E_IO, witness_open(&w, folder));
    CHECK_ERR(E_IO, r1cs_open(&r, missing));
    const char *empty = scratch_path("empty.zkey");
    int fd = open(empty, O_CREAT | O_WRONLY, 0600);
    CHECK(fd >= 0);
    close(fd);
    CHECK_ERR(E_FORMAT, key_open(&key, empty, (struct key_options){false}));
    CHECK_HAS(err_detail(), "empty.zkey is empty");
    CHECK_ERR(E_FORMAT, witness_open(&w, empty));
    CHECK_ERR(E_FORMAT, r1cs_open(&r, empty));
    scratch_close();
}

static void claim_gamma_patched_over_delta(void) {
    scratch_open();
    for (size_t c = 0; c < CURVES_COUNT; c++) {
        struct damaged d = damaged_case(curve_dirs[c], "base/circuit.zkey");
        size_t n8 = zkey_q_bytes(&d), points = zkey_domain_place(&d) + 4;
        memcpy(d.ptr + points + 14 * n8, d.ptr + points + 8 * n8, 4 * n8);
        const char *path = scratch_path("forgeable.zkey");
        CHECK_OK(file_write_all(path, bytes_of(d.ptr, d.len)));
        struct key *key = NULL;
        CHECK_ERR(E_RANGE, key_open(&key, path, (struct key_options){false}));
        CHECK_HAS(err_detail(), "gamma equals delta");
        CHECK_HAS(err_detail(), "--allow-insecure-keys");
        CHECK_OK(key_open(&key, path, (struct key_options){true}));
        CHECK(vkey_is_insecure(key_vkey(key)));
        key_unref(&key);
        damaged_free(&d);
    }
    scratch_close();
}

/* ── Allocation failure ── */

static enum err open_and_close(const char *path, enum reads reads) {
    struct key *key = NULL;
    struct witness w;
    struct r1cs r;
    struct key_report report;
    enum err e;
    switch (reads) {
    case READS_WITNESS:
        e = witness_open(&w, path);
        if (e == OK) {
            witness_close(&w);
        }
        return e;
    case READS_R1CS:
        e = r1cs_open(&r, path);
        if (e == OK) {
            r1cs_close(&r);
        }
        return e;
    default:
        e = key_open(&key, path, (struct key_options){false});
        if (e == OK) {
            e = key_check(&report, key, NULL, NULL, NULL);
        }
        key_unref(&key);
        return e;
    }
}

/* `act` with the first, the second, … allocation failing, until several in a row were not needed or not missed (what
 * only remembers may fail unnoticed). */
static void fails_at_every_allocation(enum err (*act)(void *ctx), void *ctx, const char *what) {
    enum { UNMISSED_IN_A_ROW = 12, ALLOCATIONS_MAX = 10000 };
    unsigned unmissed = 0, failures = 0;
    for (long n = 0; unmissed < UNMISSED_IN_A_ROW; n++) {
        long blocks = mem_live_blocks();
        mem_fail_after(n);
        enum err e = act(ctx);
        mem_fail_after(-1);
        CHECK_MSG(e == OK || e == E_LIMIT || e == E_FORMAT, "%s, allocation %ld: %s (%s)", what, n,
                  err_name(e), err_detail());
        CHECK_MSG(mem_live_blocks() == blocks, "%s, allocation %ld: %ld blocks leak", what, n,
                  mem_live_blocks() - blocks);
        CHECK_MSG(n < ALLOCATIONS_MAX, "%s never succeeds", what);
        unmissed = e == OK ? unmissed + 1 : 0;
        failures += e != OK;
    }
    CHECK_MSG(failures > 0, "%s allocates nothing", what);
}

struct file_act {
    const char *path;
    enum reads reads;
};

static enum err act_on_file(void *ctx) {
    const struct file_act *act = ctx;
    return open_and_close(act->path, act->reads);
}

static enum err act_on_json(void *ctx) {
    const struct damaged *d = ctx;
    struct vkey vk = {0}, copy = {0};
    struct text text = {0};
    enum err e = vkey_read_json(&vk, bytes_of(d->ptr, d->len), d->name);
    if (e == OK) {
        e = vkey_copy(&copy, &vk);
    }
    if (e == OK) {
        e = vkey_write_json(&text, &copy);
    }
    text_free(&text);
    vkey_done(&copy);
    vkey_done(&vk);
    return e;
}

static enum err act_on_bellman_vkey(void *ctx) {
    const struct damaged *d = ctx;
    struct vkey vk;
    enum err e =
        vkey_read_bellman(&vk, curve_by_id(CURVE_BLS12_381), bytes_of(d->ptr, d->len), d->name);
    if (e == OK) {
        vkey_done(&vk);
    }
    return e;
}

static void claim_allocation_failure(void) {
    scratch_open();
    static const struct {
        const char *tail;
        enum reads reads;
    } files[] = {
        {"bls12381/base/circuit.zkey", READS_KEY},   {"bn128/base/circuit.zkey", READS_KEY},
        {"bls12381/base/circuit.params", READS_KEY}, {"bn128/base/witness.wtns", READS_WITNESS},
        {"bls12381/base/circuit.r1cs", READS_R1CS},
    };
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        setenv("BELLOWS_CACHE", scratch, 1);
        struct file_act act = {check_vectors(files[i].tail), files[i].reads};
        fails_at_every_allocation(act_on_file, &act, files[i].tail);
    }
    for (size_t c = 0; c < CURVES_COUNT; c++) {
        struct damaged d = damaged_case(curve_dirs[c], "base/verification_key.json");
        fails_at_every_allocation(act_on_json, &d, "verification key");
        damaged_free(&d);
    }
    struct damaged vk = damaged_case("bls12381", "base/circuit.vk");
    fails_at_every_allocation(act_on_bellman_vkey, &vk, "bellman verifying key");
    damaged_free(&vk);
    scratch_close();
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"key_digest: remembered by the file's identity once it has settled",
         claim_digest_remembered},
        {"key_digest: a file replaced under its name gets its own (A19)",
         claim_replaced_file_has_its_own_digest},
        {"key_check: remembered by digest, with progress on the caller's thread",
         claim_check_remembered},
        {"key_check: names the first bad point, on any number of threads (A11)",
         claim_check_finds_first_bad_point},
        {"key_check: finds a point outside the subgroup (A11)",
         claim_check_finds_points_outside_subgroup},
        {"key_check: delta in G1 must belong to delta in G2", claim_check_ties_g1_to_g2},
        {"key_check, key_digest: work where nothing can be remembered", claim_no_cache_folder},
        {"key_open: sections may pass 4 GiB (A01)", claim_section_beyond_4_gib},
        {"key: a file cut while mapped is E_IO, not a crash", claim_truncated_while_mapped},
        {"witness: a file cut while mapped is E_IO, not a crash",
         claim_witness_truncated_while_mapped},
        {"key, witness, r1cs: missing files, folders and empty files are named (A10)",
         claim_files_that_are_none},
        {"key_open: gamma patched over delta needs permission (B13)",
         claim_gamma_patched_over_delta},
        {"key, witness, r1cs, vkey: every allocation may fail", claim_allocation_failure},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
