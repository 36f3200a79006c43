/* The server's store lies on a small file system, which is filled to the last byte by a ballast while jobs come in, and emptied again.
 *
 * The packaged server switches its streams off when a write finds no room, and on only when it is started again: that is the operator's
 * hand here, with room made first. What it acknowledged before is on the disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "node/base/clock.h"
#include "tests/chaos/measure.h"
#include "tests/e2e/host.h"

#define SECOND UINT64_C(1000000000)
enum { JOBS_MAX = 2000, WARM = 4, PIECE_BYTES = 4096 };
static const char SIZE[] = "size=24m";
static const off_t ROOM_BYTES = 192 << 10; /* left for jobs to fill */

struct disk {
    char dir[256], ballast[272];
    bool mounted;
};

static void disk_open(struct disk *d) {
    const char *tmp = getenv("TMPDIR");
    snprintf(d->dir, sizeof d->dir, "%s/bellows-disk-XXXXXX", tmp ? tmp : "/tmp");
    CHECK(mkdtemp(d->dir));
    snprintf(d->ballast, sizeof d->ballast, "%s/ballast", d->dir);
    /* Seen by this process and its children alone, and gone with them. */
    d->mounted = geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
                 mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                 mount("none", d->dir, "tmpfs", 0, SIZE) == 0;
    if (!d->mounted) {
        rmdir(d->dir);
        check_skip("only root may mount a small file system");
    }
}

static void disk_close(struct disk *d) {
    CHECK_MSG(umount2(d->dir, MNT_DETACH) == 0, "umount %s: %s", d->dir, strerror(errno));
    rmdir(d->dir);
}

static void disk_fill(const struct disk *d) {
    static const char piece[PIECE_BYTES];
    struct statvfs room;
    int fd = open(d->ballast, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    while (statvfs(d->dir, &room) == 0 &&
           (off_t)(room.f_bavail * room.f_frsize) > ROOM_BYTES + (off_t)sizeof piece) {
        CHECK_EQ((ssize_t)sizeof piece, write(fd, piece, sizeof piece));
    }
    close(fd);
}

static enum err send(struct host *h, unsigned number) {
    char job_id[24];
    snprintf(job_id, sizeof job_id, "disk%u", number);
    return job_order_send(&h->user,
                          &(struct job_order){.case_name = "bn128/mul", .job_id = job_id});
}

static void wait_for_result(struct host *h, unsigned number) {
    char job_id[24];
    snprintf(job_id, sizeof job_id, "disk%u", number);
    AUTO(message_free) result_message *r = job_result(&h->user, job_id, 1);
    check_proved(r, "bn128/mul", 1);
}

/* The number of jobs that were taken before one was not; its error in *fault. */
static unsigned send_until_refused(struct fault *fault, struct host *h, unsigned from) {
    for (unsigned n = from; n < JOBS_MAX; n++) {
        enum err code = send(h, n);
        if (code != OK) {
            *fault = fault_of(code);
            return n;
        }
    }
    check_fail(__FILE__, __LINE__, "%d jobs were taken by a full disk", JOBS_MAX);
}

void claim_full_disk(void) {
    struct host h;
    struct disk d;
    struct fault refused = {.code = OK};
    disk_open(&d);
    const char *tmp = getenv("TMPDIR");
    setenv("TMPDIR", d.dir, 1);
    host_start_server(&h, NULL);
    if (tmp) {
        setenv("TMPDIR", tmp, 1);
    } else {
        unsetenv("TMPDIR");
    }
    host_start_coordinator(&h);
    host_connect(&h);
    host_start_node(&h, 0, 1, NULL);
    host_wait_for_lanes(&h, 1);
    for (unsigned n = 0; n < WARM; n++) {
        CHECK_OK(send(&h, n));
    }
    for (unsigned n = 0; n < WARM; n++) {
        wait_for_result(&h, n);
    }
    disk_fill(&d);
    unsigned taken = send_until_refused(&refused, &h, WARM);
    printf("disk     full after %u jobs more; the next one: %s: %s\n", taken - WARM,
           err_name(refused.code), refused.detail);
    enum err_class class = err_class(refused.code);
    CHECK_MSG(class == CLASS_BUSY || class == CLASS_WORLD, "a full disk is %s: %s",
              err_name(refused.code), refused.detail);
    clock_sleep_ns(2 * SECOND); /* whoever works meets the full disk, too */
    CHECK(unlink(d.ballast) == 0);
    if (!check_server_down(&h.server)) { /* a fault of the packaged server, seen often */
        printf("disk     the server stood still in its shutdown and was killed\n");
    }
    check_server_up(&h.server, false);
    uint64_t start_ns = clock_ns();
    while (send(&h, taken) != OK) {
        CHECK_MSG(clock_ns() - start_ns < 20 * SECOND, "no job is taken though there is room");
        clock_sleep_ns(SECOND / 10);
    }
    for (unsigned n = WARM; n <= taken; n++) {
        wait_for_result(&h, n);
    }
    printf("disk     with room again: all %u jobs that were taken have one result, %.1f s later\n",
           taken + 1, (double)(clock_ns() - start_ns) / 1e9);
    CHECK_EQ(taken + 1, host_stream_count(&h, "DONE"));
    host_stop(&h);
    disk_close(&d);
}
