/* One thread and one poll over all listeners and connections. A direction of a connection holds at most one piece: it is read when the
 * place is free, and written when its time has come, so a reader that does not read stops the writer at the other end, as TCP
 * does.
 */
#include "tests/chaos/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "node/base/clock.h"
#include "node/base/mem.h"

enum { PIECE_BYTES = 65536, RELAYS_MAX = 128, LOOK_MS = 20, SLOW_LOOK_MS = 2 };

struct flow { /* one direction */
    size_t len, at;
    uint64_t due_ns;
    bool ended; /* the reading side has said its last */
    uint8_t piece[PIECE_BYTES];
};
struct relay {
    int fds[2]; /* the process's, the server's; -1: free */
    unsigned wire;
    struct flow flows[2]; /* flows[i] comes out of fds[i] */
};
struct wires {
    unsigned count, server_port;
    int listeners[WIRES_MAX];
    unsigned ports[WIRES_MAX];
    _Atomic int modes[WIRES_MAX];
    _Atomic uint64_t delays_ns[WIRES_MAX];
    struct relay *relays; /* owned; [thread] */
    atomic_bool stopping;
    pthread_t thread;
    bool thread_runs;
};

static void relay_close(struct relay *r) {
    for (int i = 0; i < 2; i++) {
        if (r->fds[i] >= 0) {
            close(r->fds[i]);
            r->fds[i] = -1;
        }
    }
}

static int connect_to(unsigned port) {
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void take_connection(struct wires *w, unsigned wire) {
    static const int on = 1;
    int fd = accept4(w->listeners[wire], NULL, NULL, SOCK_CLOEXEC);
    struct relay *r = w->relays;
    while (r < w->relays + RELAYS_MAX && r->fds[0] >= 0) {
        r++;
    }
    int server = fd >= 0 && r < w->relays + RELAYS_MAX && atomic_load(&w->modes[wire]) != WIRE_CUT
                     ? connect_to(w->server_port)
                     : -1;
    if (server < 0) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    r->fds[0] = fd;
    r->fds[1] = server;
    r->wire = wire;
    r->flows[0].len = r->flows[1].len = 0;
    r->flows[0].ended = r->flows[1].ended = false;
}

/* False: the relay is of no use any more. */
static bool read_piece(struct wires *w, struct relay *r, int side) {
    struct flow *f = &r->flows[side];
    ssize_t got = recv(r->fds[side], f->piece, PIECE_BYTES, MSG_DONTWAIT);
    if (got < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    f->ended = got == 0;
    f->len = (size_t)got;
    f->at = 0;
    f->due_ns = atomic_load(&w->modes[r->wire]) == WIRE_SLOW
                    ? clock_ns() + atomic_load(&w->delays_ns[r->wire])
                    : 0;
    return !f->ended;
}

static bool write_piece(struct relay *r, int side) {
    struct flow *f = &r->flows[side];
    if (f->len == 0 || (f->due_ns && clock_ns() < f->due_ns)) {
        return true;
    }
    ssize_t put =
        send(r->fds[1 - side], f->piece + f->at, f->len - f->at, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    f->at += (size_t)put;
    f->len = f->at == f->len ? 0 : f->len;
    return true;
}

/* What each socket of a relay is waited for. */
static short wishes(const struct relay *r, int side, bool hole) {
    const struct flow *in = &r->flows[side], *out = &r->flows[1 - side];
    short wish = 0;
    if (!hole && in->len == 0) {
        wish |= POLLIN;
    }
    if (!hole && out->len > 0 && (!out->due_ns || clock_ns() >= out->due_ns)) {
        wish |= POLLOUT;
    }
    return wish;
}

static void move(struct wires *w, struct relay *r, const struct pollfd *polled) {
    bool alive = atomic_load(&w->modes[r->wire]) != WIRE_CUT;
    for (int side = 0; side < 2 && alive; side++) {
        if (polled[side].revents & (POLLERR | POLLNVAL)) {
            alive = false;
        } else if (polled[side].fd >= 0 && polled[side].revents & (POLLIN | POLLHUP) &&
                   r->flows[side].len == 0) {
            alive = read_piece(w, r, side);
        }
    }
    bool hole = atomic_load(&w->modes[r->wire]) == WIRE_HOLE;
    for (int side = 0; side < 2 && alive && !hole; side++) {
        alive = write_piece(r, side);
    }
    if (!alive) {
        relay_close(r);
    }
}

static void *wires_main(void *ctx) {
    struct wires *w = ctx;
    while (!atomic_load(&w->stopping)) {
        struct pollfd polled[WIRES_MAX + 2 * RELAYS_MAX];
        bool slow = false;
        for (unsigned i = 0; i < w->count; i++) {
            polled[i] = (struct pollfd){.fd = w->listeners[i], .events = POLLIN};
            slow |= atomic_load(&w->modes[i]) == WIRE_SLOW;
        }
        for (unsigned i = 0; i < RELAYS_MAX; i++) {
            struct relay *r = &w->relays[i];
            bool hole = r->fds[0] >= 0 && atomic_load(&w->modes[r->wire]) == WIRE_HOLE;
            for (int side = 0; side < 2; side++) { /* in a hole even the end is not seen */
                polled[w->count + 2 * i + (unsigned)side] = (struct pollfd){
                    .fd = hole ? -1 : r->fds[side], .events = wishes(r, side, hole)};
                slow |= r->fds[0] >= 0 && r->flows[side].len > 0;
            }
        }
        if (poll(polled, w->count + 2 * RELAYS_MAX, slow ? SLOW_LOOK_MS : LOOK_MS) < 0) {
            continue;
        }
        for (unsigned i = 0; i < RELAYS_MAX; i++) {
            if (w->relays[i].fds[0] >= 0) {
                move(w, &w->relays[i], polled + w->count + 2 * i);
            }
        }
        for (unsigned i = 0; i < w->count; i++) {
            if (polled[i].revents & POLLIN) {
                take_connection(w, i);
            }
        }
    }
    return NULL;
}

static enum err listen_on(struct wires *w, unsigned idx, const char *address) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    REQUIRE(!address || inet_pton(AF_INET, address, &at.sin_addr) == 1, E_IO, "%s is no address",
            address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    w->listeners[idx] = fd;
    REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 64) == 0 &&
                getsockname(fd, (struct sockaddr *)&at, &len) == 0,
            E_IO, "no listener for a wire: %s", strerror(errno));
    w->ports[idx] = ntohs(at.sin_port);
    return OK;
}

enum err wires_open(struct wires **out, unsigned count, unsigned server_port,
                    const char *const *addresses) {
    AUTO(wires_close) struct wires *w = NULL;
    ASSERT(count <= WIRES_MAX);
    TRY(mem_new(&w, 1, sizeof *w));
    w->server_port = server_port;
    TRY(mem_new(&w->relays, RELAYS_MAX, sizeof *w->relays));
    for (unsigned i = 0; i < RELAYS_MAX; i++) {
        w->relays[i].fds[0] = w->relays[i].fds[1] = -1;
    }
    for (; w->count < count; w->count++) {
        w->listeners[w->count] = -1;
        TRY(listen_on(w, w->count, addresses ? addresses[w->count] : NULL));
    }
    int rc = pthread_create(&w->thread, NULL, wires_main, w);
    REQUIRE(rc == 0, E_LIMIT, "no thread for the wires: %s", strerror(rc));
    w->thread_runs = true;
    *out = TAKE(w);
    return OK;
}

void wires_close(struct wires **wires) {
    struct wires *w = *wires;
    if (!w) {
        return;
    }
    atomic_store(&w->stopping, true);
    if (w->thread_runs) {
        pthread_join(w->thread, NULL);
    }
    for (unsigned i = 0; i < RELAYS_MAX && w->relays; i++) {
        relay_close(&w->relays[i]);
    }
    for (unsigned i = 0; i < w->count; i++) {
        close(w->listeners[i]);
    }
    mem_free(w->relays);
    mem_free_ptr(wires);
}

unsigned wire_port(const struct wires *w, unsigned idx) {
    return w->ports[idx];
}

void wire_set(struct wires *w, unsigned idx, enum wire_mode mode, uint64_t delay_ns) {
    atomic_store(&w->delays_ns[idx], delay_ns);
    atomic_store(&w->modes[idx], (int)mode);
}
