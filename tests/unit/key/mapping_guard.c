/* Mappings of files that shrink: zeros and a mark for the guarded, the usual end for the others. */
#include "node/key/mapping_guard.h"
#include "tests/check/check.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGES = 8 };

static size_t page_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* A mapped unnamed file of PAGES pages of 7s. */
static uint8_t *map_sevens(int *fd) {
    size_t len = PAGES * page_bytes();
    *fd = memfd_create("guarded", 0);
    CHECK(*fd >= 0);
    CHECK_EQ(0, ftruncate(*fd, (off_t)len));
    uint8_t *rw = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    CHECK(rw != MAP_FAILED);
    memset(rw, 7, len);
    munmap(rw, len);
    uint8_t *base = mmap(NULL, len, PROT_READ, MAP_PRIVATE, *fd, 0);
    CHECK(base != MAP_FAILED);
    return base;
}

static uint8_t touch(const uint8_t *p) {
    return *(const volatile uint8_t *)p;
}

static void claim_lost_pages_read_as_zero(void) {
    int fd, other_fd;
    uint8_t *base = map_sevens(&fd), *other = map_sevens(&other_fd);
    struct mapping_guard guard = guard_open(base, PAGES * page_bytes());
    struct mapping_guard other_guard = guard_open(other, PAGES * page_bytes());
    CHECK(guard.slot > 0 && other_guard.slot > 0 && guard.slot != other_guard.slot);
    CHECK_EQ(7, touch(base + 5 * page_bytes()));
    CHECK_EQ(0, ftruncate(fd, (off_t)(2 * page_bytes())));
    CHECK(!guard_is_torn(&guard)); /* nobody has looked yet */
    CHECK_EQ(7, touch(base + page_bytes()));
    CHECK(!guard_is_torn(&guard));
    CHECK_EQ(0, touch(base + 5 * page_bytes() + 123));
    CHECK(guard_is_torn(&guard));
    CHECK_EQ(0, touch(base + 6 * page_bytes())); /* a second page as well */
    CHECK_EQ(7, touch(other + 5 * page_bytes()));
    CHECK(!guard_is_torn(&other_guard));
    guard_close(&guard);
    CHECK(!guard_is_torn(&guard));
    guard_close(&guard); /* twice is fine */
    guard_close(&other_guard);
    munmap(base, PAGES * page_bytes());
    munmap(other, PAGES * page_bytes());
    close(fd);
    close(other_fd);
}

static void claim_slots_run_out_quietly(void) {
    static struct mapping_guard guards[GUARDS_MAX];
    static uint8_t bytes[16];
    for (size_t i = 0; i < GUARDS_MAX; i++) {
        guards[i] = guard_open(bytes, sizeof bytes);
        CHECK(guards[i].slot > 0);
    }
    struct mapping_guard none = guard_open(bytes, sizeof bytes);
    CHECK_EQ(0, none.slot);
    CHECK(!guard_is_torn(&none));
    guard_close(&none);
    guard_close(&guards[7]);
    none = guard_open(bytes, sizeof bytes);
    CHECK_EQ(8, none.slot);
    guard_close(&none);
    for (size_t i = 0; i < GUARDS_MAX; i++) {
        guard_close(&guards[i]);
    }
}

static void *read_all(void *base) {
    size_t sum = 0;
    for (size_t i = 0; i < PAGES * page_bytes(); i += 64) {
        sum += touch((uint8_t *)base + i);
    }
    return (void *)sum; /* NOLINT */
}

static void claim_many_threads(void) {
    int fd;
    uint8_t *base = map_sevens(&fd);
    struct mapping_guard guard = guard_open(base, PAGES * page_bytes());
    CHECK_EQ(0, ftruncate(fd, 0));
    pthread_t threads[8];
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        CHECK_EQ(0, pthread_create(&threads[i], NULL, read_all, base));
    }
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        void *sum;
        CHECK_EQ(0, pthread_join(threads[i], &sum));
        CHECK(sum == NULL);
    }
    CHECK(guard_is_torn(&guard));
    guard_close(&guard);
    munmap(base, PAGES * page_bytes());
    close(fd);
}

/* Not ours: the process ends by SIGBUS as it always did. */
static void claim_other_faults_still_kill(void) {
    int fd;
    uint8_t *base = map_sevens(&fd);
    struct mapping_guard guard = guard_open(base, page_bytes()); /* the first page only */
    CHECK_EQ(0, ftruncate(fd, 0));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(STDERR_FILENO); /* a sanitizer would report the fault at length */
        touch(base + 3 * page_bytes());
        _exit(0);
    }
    int status;
    CHECK_EQ(child, waitpid(child, &status, 0));
    CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
    guard_close(&guard);
    munmap(base, PAGES * page_bytes());
    close(fd);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"guard: lost pages read as zero and the mapping is marked torn",
         claim_lost_pages_read_as_zero},
        {"guard: without a free slot a mapping stays unguarded", claim_slots_run_out_quietly},
        {"guard: many threads may fault on one page", claim_many_threads},
        {"guard: a fault elsewhere still ends the process", claim_other_faults_still_kill},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
