/* An array of connections, and a handler that only logs and flags. */
#include "node/daemon/links.h"

#include <stdatomic.h>
#include <stdio.h>

#include "node/base/log.h"
#include "node/base/mem.h"
#include "node/daemon/child.h"

static const uint64_t CONNECT_NS = UINT64_C(60000000000);

struct one_link {
    struct links *all; /* lent: the owner */
    const char *purpose;
    struct transport *transport; /* owned */
};

struct links {
    struct one_link links[LINKS_MAX];
    size_t count;
    atomic_bool ending, lost;
};

static void on_event(void *ctx, enum transport_event event, const char *detail) {
    static const char *const names[] = {"transport.disconnected", "transport.reconnected",
                                        "transport.closed", "transport.slow", "transport.refused"};
    struct one_link *link = ctx;
    char quoted[300];
    if (atomic_load(&link->all->ending)) {
        return;
    }
    log_line(event == TRANSPORT_CLOSED || event == TRANSPORT_REFUSED ? LOG_ERROR : LOG_WARN,
             names[event], "link=%s detail=%s", link->purpose,
             log_quote(quoted, sizeof quoted, detail ? detail : ""));
    if (event == TRANSPORT_CLOSED) {
        atomic_store(&link->all->lost, true);
    }
}

static bool enough(void *ctx, const char *why) {
    struct link_patience *p = ctx;
    char quoted[ERR_DETAIL_BYTES + 64];
    if (!p->said) {
        log_warn("transport.waits", "detail=%s", log_quote(quoted, sizeof quoted, why));
        p->said = true;
    }
    return sigtimedwait(p->set, NULL, &(struct timespec){0}) > 0 || child_is_orphan(p->parent);
}

enum err links_open(struct links **out, const struct transport_options *options, const char *who,
                    const struct link_wish *wishes, size_t wishes_count,
                    struct link_patience *patience) {
    AUTO(links_close) struct links *l = NULL;
    ASSERT(wishes_count <= LINKS_MAX);
    TRY(mem_new(&l, 1, sizeof *l));
    for (; l->count < wishes_count; l->count++) {
        struct one_link *link = &l->links[l->count];
        struct transport_options o = *options;
        char name[200];
        *link = (struct one_link){l, wishes[l->count].purpose, NULL};
        snprintf(name, sizeof name, "bellows %s %s", who, link->purpose);
        o.name = name;
        o.open_wait_ns = CONNECT_NS;
        o.enough = enough;
        o.enough_ctx = patience;
        o.request_wait_ns = wishes[l->count].request_wait_ns;
        o.send_asap = !wishes[l->count].coalesces;
        o.on_event = on_event;
        o.event_ctx = link;
        TRY(transport_open(&link->transport, &o));
    }
    *out = TAKE(l);
    return OK;
}

void links_close(struct links **l) {
    if (!*l) {
        return;
    }
    atomic_store(&(*l)->ending, true);
    for (size_t i = (*l)->count; i-- > 0;) {
        transport_close(&(*l)->links[i].transport);
    }
    mem_free_ptr(l);
}

struct transport *links_get(const struct links *l, size_t idx) {
    ASSERT(idx < l->count);
    return l->links[idx].transport;
}

bool links_lost(const struct links *l) {
    return atomic_load(&l->lost);
}
