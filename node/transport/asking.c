/* Requests: one subscription per connection takes all answers, and whoever waits is found by the last token of the subject.
 *
 *   thread: begin ─▶ publish, reply "<inbox>.7" ─▶ wait ◀─ wake ─ library's thread: message on "<inbox>.7" │ refusal │ loss │ close
 *
 * The library's own requests do the same, except that nothing but the answer wakes them: what the server refuses is never answered, and
 * the asker slept to the end of its wait although the refusal had come long before. Here whatever ends a request ends it at once.
 *
 * Numbers are never used twice on a connection. So an answer that comes after its asker has gone finds nobody, and is dropped.
 */
#include "node/transport/nats.h"

#include "node/base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void wake(struct asking *a, natsStatus end) { /* [lock] */
    a->end = end;
    condition_wake_one(&a->heard);
}

/* On a thread of the library. */
static void on_answer(void *ctx, struct message *m) {
    struct nats_transport *t = ctx;
    uint64_t number = strtoull(strrchr(m->subject, '.') + 1, NULL, 10);
    LOCK_SCOPE(&t->lock);
    for (struct asking *a = t->askings; a; a = a->next) {
        if (a->number == number && !a->answer) {
            a->answer = m->handle;
            m->handle = NULL;
            wake(a, a->end);
            return;
        }
    }
}

FALLIBLE askings_open(struct nats_transport *t) {
    char filter[REPLY_BYTES];
    nats_inbox(t->answers_inbox, &t->base);
    snprintf(filter, sizeof filter, "%s.*", t->answers_inbox);
    return nats_listen(&t->answers, t, filter,
                       &(struct subscribe_options){.handler = on_answer, .handler_ctx = t});
}

void askings_close(struct nats_transport *t) {
    ASSERT(!t->askings);
    if (t->answers) {
        nats_listen_over(t->answers);
        t->answers = NULL;
    }
}

void asking_begin(struct asking *a, struct nats_transport *t, const char *subject) {
    *a = (struct asking){.t = t, .subject = subject};
    condition_init(&a->heard);
    LOCK_SCOPE(&t->lock);
    a->number = ++t->askings_count;
    a->deaf = t->answers_refused;
    a->end = a->deaf ? NATS_NOT_PERMITTED : NATS_OK;
    a->next = t->askings;
    t->askings = a;
    snprintf(a->reply, sizeof a->reply, "%s.%" PRIu64, t->answers_inbox, a->number);
}

natsStatus asking_end(natsMsg **answer, struct asking *a, natsStatus sent, uint64_t wait_ns) {
    struct nats_transport *t = a->t;
    struct timespec until = clock_wait_until(wait_ns);
    lock_take(&t->lock);
    while (sent == NATS_OK && a->end == NATS_OK && !a->answer &&
           condition_wait_until(&a->heard, &t->lock, &until)) {
    }
    struct asking **link = &t->askings;
    while (*link != a) {
        link = &(*link)->next;
    }
    *link = a->next;
    lock_give(&t->lock);
    condition_done(&a->heard);
    if (!a->answer) {
        return sent != NATS_OK ? sent : a->end != NATS_OK ? a->end : NATS_TIMEOUT;
    }
    if (natsMsg_IsNoResponders(a->answer)) {
        natsMsg_Destroy(a->answer);
        return NATS_NO_RESPONDERS;
    }
    *answer = a->answer;
    return NATS_OK;
}

enum err asking_error(const struct asking *a, natsStatus status, const char *doing) {
    if (a->deaf) {
        return err_set(E_NET, "%s %s: the NATS server does not permit this user to listen to %s.>",
                       doing, a->subject, a->t->inbox_prefix);
    }
    return nats_error(status, doing, a->subject);
}

void askings_lost(struct nats_transport *t, natsStatus why) {
    LOCK_SCOPE(&t->lock);
    for (struct asking *a = t->askings; a; a = a->next) {
        wake(a, why);
    }
}

/* --- Refusals --- */

/* 'Permissions Violation for Publish to "a.b"', perhaps with more behind it, perhaps cut: is this `subject` meant? */
static bool names(const char *refusal, const char *doing, const char *subject) {
    const char *named = strstr(refusal, doing) ? strchr(refusal, '"') : NULL;
    if (!named) {
        return false;
    }
    size_t len = strcspn(++named, "\"");
    bool whole = named[len] == '"';
    return strncmp(named, subject, len) == 0 && (!whole || subject[len] == 0);
}

static const char PUBLISH[] = "ublish", SUBSCRIPTION[] = "ubscription";

void askings_refused(struct nats_transport *t, const char *text) {
    char filter[REPLY_BYTES];
    snprintf(filter, sizeof filter, "%s.*", t->answers_inbox);
    LOCK_SCOPE(&t->lock);
    uint64_t number = atomic_fetch_add(&t->refused, 1);
    snprintf(t->refusals[number % REFUSALS_KEPT], sizeof t->refusals[0], "%s", text);
    bool all = names(text, SUBSCRIPTION, filter);
    t->answers_refused = t->answers_refused || all;
    for (struct asking *a = t->askings; a; a = a->next) {
        if (all || names(text, PUBLISH, a->subject)) {
            a->deaf = all;
            wake(a, NATS_NOT_PERMITTED);
        }
    }
}

FALLIBLE nats_check_refused(struct nats_transport *t, uint64_t refused_before,
                            const char *subject) {
    if (atomic_load(&t->refused) == refused_before) { /* nearly always, without the lock */
        return OK;
    }
    LOCK_SCOPE(&t->lock);
    uint64_t now = atomic_load(&t->refused), oldest = now > REFUSALS_KEPT ? now - REFUSALS_KEPT : 0;
    for (uint64_t n = refused_before > oldest ? refused_before : oldest; n < now; n++) {
        if (names(t->refusals[n % REFUSALS_KEPT], PUBLISH, subject)) {
            return nats_error(NATS_NOT_PERMITTED, "", subject);
        }
    }
    return OK;
}
