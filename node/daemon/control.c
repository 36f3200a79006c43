/* Three subscriptions with one handler: the subject says which lanes are meant and who answers. */
#include "node/daemon/control.h"

#include <stdio.h>
#include <string.h>

#include "node/base/log.h"
#include "node/base/mem.h"
#include "proto/fleet.pb-c.h"
#include "proto/unpack.h"

enum { SCOPES_COUNT = 3 };

struct control {
    struct transport *transport; /* lent */
    struct control_options options;
    struct subscription *subscriptions[SCOPES_COUNT]; /* owned */
};

static void bytes_free(struct bytes_mut *b) {
    mem_free(b->ptr);
}

static enum err verb_of(enum control_verb *out, const char *word, bool to_node) {
    static const char *const words[] = {
        [CONTROL_DRAIN] = "drain", [CONTROL_RESUME] = "resume", [CONTROL_STOP] = "stop"};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (!strcmp(words[i], word) && (i != CONTROL_STOP || to_node)) {
            *out = (enum control_verb)i;
            return OK;
        }
    }
    FAIL(E_USAGE, "no order is called \"%s\": there are drain, resume and, for a node, stop", word);
}

static enum err order_read(struct control_order *out, const struct subject_parts *parts,
                           struct bytes data) {
    AUTO(message_free) Bellows__V1__Control *m = NULL;
    struct control_order order = {.one_lane = parts->kind == SUBJECT_CTL_LANE, .gpu = parts->gpu};
    TRY(verb_of(&order.verb, parts->verb, parts->kind == SUBJECT_CTL_NODE));
    order.grace_ns = UINT64_MAX;
    if (data.len >
        0) { /* without a message: an order without a limit, as any client's `pub` makes it */
        TRY(message_unpack(&m, &bellows__v1__control__descriptor, data, MESSAGE_BYTES_MAX,
                           "order"));
        REQUIRE(m->grace_ms < UINT64_MAX / 1000000, E_RANGE, "grace_ms is %llu: no span so long",
                (unsigned long long)m->grace_ms);
        order.grace_ns = m->grace_ms ? m->grace_ms * UINT64_C(1000000) : UINT64_MAX;
        snprintf(order.reason, sizeof order.reason, "%s", m->reason);
    }
    *out = order;
    return OK;
}

static void answer(struct control *c, const struct message *m, enum err code) {
    Bellows__V1__ControlReply reply = BELLOWS__V1__CONTROL_REPLY__INIT;
    AUTO(bytes_free) struct bytes_mut packed = {0};
    char detail[ERR_DETAIL_BYTES];
    snprintf(detail, sizeof detail, "%s", code == OK ? "" : err_detail());
    reply.version = WIRE_VERSION;
    reply.ok = code == OK;
    reply.error_name = (char *)(uintptr_t)(code == OK ? "" : err_name(code));
    reply.error_detail = detail;
    if (m->reply[0] && message_pack(&packed, &reply, MESSAGE_BYTES_MAX, "answer") == OK) {
        IGNORE(message_respond(c->transport, m, bytes_of(packed.ptr, packed.len)));
    }
}

static void on_message(void *ctx, struct message *m) {
    struct control *c = ctx;
    struct subject_parts parts;
    struct control_order order;
    if (subject_parse(&parts, c->options.space, m->subject) != OK) {
        return;
    }
    bool mine =
        c->options.supervisor ? parts.kind != SUBJECT_CTL_LANE : parts.kind == SUBJECT_CTL_LANE;
    enum err code = order_read(&order, &parts, m->data);
    if (code == OK && (order.verb != CONTROL_STOP || c->options.supervisor)) {
        code = c->options.handler(c->options.handler_ctx, &order);
    }
    if (mine) {
        char quoted[sizeof order.reason + 16];
        log_line(code == OK ? LOG_INFO : LOG_WARN, "order.heard", "verb=%s error=%s reason=%s",
                 parts.verb, err_name(code),
                 log_quote(quoted, sizeof quoted, code == OK ? order.reason : ""));
        answer(c, m, code);
    }
}

enum err control_open(struct control **out, struct transport *t,
                      const struct control_options *options) {
    AUTO(control_close) struct control *c = NULL;
    TRY(mem_new(&c, 1, sizeof *c));
    c->transport = t;
    c->options = *options;
    struct lane_name lane = {options->node, options->gpu};
    struct subject scopes[SCOPES_COUNT] = {
        options->supervisor ? filter_ctl_lanes(options->space, options->node)
                            : subject_ctl_lane(options->space, lane, NULL),
        subject_ctl_node(options->space, options->node, NULL),
        subject_ctl_all(options->space, NULL),
    };
    struct subscribe_options how = {.handler = on_message, .handler_ctx = c};
    for (size_t i = 0; i < SCOPES_COUNT; i++) {
        TRY(transport_subscribe(&c->subscriptions[i], t, scopes[i].text, &how));
    }
    *out = TAKE(c);
    return OK;
}

void control_close(struct control **c) {
    if (!*c) {
        return;
    }
    for (size_t i = 0; i < SCOPES_COUNT; i++) {
        subscription_close(&(*c)->subscriptions[i]);
    }
    mem_free_ptr(c);
}
