/* Nine subscriptions, one handler that looks at the second token of the subject. Everything that is told but the counts is put together
 * once.
 */
#include "node/transport/service.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "node/base/clock.h"
#include "node/base/lock.h"
#include "node/base/mem.h"
#include "proto/subjects.h"

enum verb { VERB_PING, VERB_INFO, VERB_STATS, VERBS_COUNT };
enum { SUBJECTS_COUNT = 3 * VERBS_COUNT };
static const char *const verb_names[VERBS_COUNT] = {"PING", "INFO", "STATS"};

struct endpoint_counts {
    uint64_t requests, errors, busy_ns;
    char last_error[128];
};

struct service {
    struct transport *transport; /* lent */
    struct service_config config;
    char id[NUID_BYTES], started[40];
    struct text head;                                   /* owned: what all answers begin with */
    struct subscription *subscriptions[SUBJECTS_COUNT]; /* owned */
    struct lock lock;
    struct endpoint_counts counts[SERVICE_ENDPOINTS_MAX]; /* [lock] */
};

/* --- The three answers --- */

static void add_member(struct text *json, const char *name, const char *value) {
    text_add_json_string(json, name);
    text_add(json, ":");
    text_add_json_string(json, value);
}

static void make_head(struct service *s) {
    const struct service_config *c = &s->config;
    text_add(&s->head, "{");
    add_member(&s->head, "name", c->name);
    text_add(&s->head, ",");
    add_member(&s->head, "id", s->id);
    text_add(&s->head, ",");
    add_member(&s->head, "version", c->version);
    text_add(&s->head, ",\"metadata\":{");
    for (size_t i = 0; i < SERVICE_METADATA_MAX && c->metadata[i].name; i++) {
        text_add(&s->head, i ? "," : "");
        add_member(&s->head, c->metadata[i].name, c->metadata[i].value);
    }
    text_add(&s->head, "},");
}

static void add_endpoint(struct text *json, const struct service_pair *endpoint) {
    text_add(json, "{");
    add_member(json, "name", endpoint->name);
    text_add(json, ",");
    add_member(json, "subject", endpoint->value);
    text_add(json, ",\"queue_group\":\"\"");
}

static void add_info(struct text *json, const struct service *s) {
    add_member(json, "description", s->config.description);
    text_add(json, ",\"endpoints\":[");
    for (size_t i = 0; i < SERVICE_ENDPOINTS_MAX && s->config.endpoints[i].name; i++) {
        text_add(json, i ? "," : "");
        add_endpoint(json, &s->config.endpoints[i]);
        text_add(json, ",\"metadata\":{}}");
    }
    text_add(json, "],");
}

static void add_stats(struct text *json, struct service *s) {
    struct endpoint_counts counts[SERVICE_ENDPOINTS_MAX];
    lock_take(&s->lock);
    memcpy(counts, s->counts, sizeof counts);
    lock_give(&s->lock);
    add_member(json, "started", s->started);
    text_add(json, ",\"endpoints\":[");
    for (size_t i = 0; i < SERVICE_ENDPOINTS_MAX && s->config.endpoints[i].name; i++) {
        const struct endpoint_counts *n = &counts[i];
        text_add(json, i ? "," : "");
        add_endpoint(json, &s->config.endpoints[i]);
        text_addf(json, ",\"num_requests\":%" PRIu64 ",\"num_errors\":%" PRIu64 ",", n->requests,
                  n->errors);
        add_member(json, "last_error", n->last_error);
        text_addf(json, ",\"processing_time\":%" PRIu64 ",\"average_processing_time\":%" PRIu64,
                  n->busy_ns, n->requests ? n->busy_ns / n->requests : 0);
        if (i == 0 && s->config.data) {
            text_add(json, ",\"data\":");
            s->config.data(s->config.ctx, json);
        }
        text_add(json, "}");
    }
    text_add(json, "],");
}

static void answer(struct service *s, const struct message *m, enum verb verb) {
    static const char *const types[VERBS_COUNT] = {"io.nats.micro.v1.ping_response",
                                                   "io.nats.micro.v1.info_response",
                                                   "io.nats.micro.v1.stats_response"};
    AUTO(text_free) struct text json = {0};
    text_add_bytes(&json, text_bytes(&s->head));
    if (verb == VERB_INFO) {
        add_info(&json, s);
    } else if (verb == VERB_STATS) {
        add_stats(&json, s);
    }
    add_member(&json, "type", types[verb]);
    text_add(&json, "}");
    if (text_done(&json) == OK) { /* who hears nothing asks again */
        IGNORE(message_respond(s->transport, m, text_bytes(&json)));
    }
}

static void on_request(void *ctx, struct message *m) {
    struct service *s = ctx;
    for (int verb = 0; verb < VERBS_COUNT; verb++) {
        size_t len = strlen(verb_names[verb]);
        const char *token = m->subject + strlen("$SRV.");
        if (m->reply[0] && !strncmp(token, verb_names[verb], len) &&
            (token[len] == 0 || token[len] == '.')) {
            answer(s, m, (enum verb)verb);
            return;
        }
    }
}

/* --- Life --- */

static void set_started(struct service *s) {
    time_t now = (time_t)(clock_unix_ns() / UINT64_C(1000000000));
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(s->started, sizeof s->started, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static FALLIBLE subscribe_all(struct service *s) {
    struct subscribe_options options = {.handler = on_request, .handler_ctx = s};
    for (int i = 0; i < SUBJECTS_COUNT; i++) {
        char subject[SUBJECT_BYTES_MAX];
        const char *verb = verb_names[i / 3];
        switch (i % 3) {
        case 0:
            snprintf(subject, sizeof subject, "$SRV.%s", verb);
            break;
        case 1:
            snprintf(subject, sizeof subject, "$SRV.%s.%s", verb, s->config.name);
            break;
        default:
            snprintf(subject, sizeof subject, "$SRV.%s.%s.%s", verb, s->config.name, s->id);
            break;
        }
        TRY(transport_subscribe(&s->subscriptions[i], s->transport, subject, &options));
    }
    return OK;
}

FALLIBLE service_open(struct service **out, struct transport *t,
                      const struct service_config *config) {
    AUTO(service_close) struct service *s = NULL;
    TRY(id_check(config->name, "name of a service"));
    TRY(mem_new(&s, 1, sizeof *s));
    lock_init(&s->lock, LOCK_TRANSPORT);
    s->transport = t;
    s->config = *config;
    transport_nuid(s->id);
    set_started(s);
    make_head(s);
    TRY(text_done(&s->head));
    TRY(subscribe_all(s));
    *out = TAKE(s);
    return OK;
}

void service_close(struct service **service) {
    struct service *s = *service;
    if (s) {
        for (int i = 0; i < SUBJECTS_COUNT; i++) {
            subscription_close(&s->subscriptions[i]);
        }
        text_free(&s->head);
        lock_done(&s->lock);
        mem_free_ptr(service);
    }
}

const char *service_id(const struct service *s) {
    return s->id;
}

void service_note(struct service *s, unsigned endpoint_idx, uint64_t ns, const char *error) {
    ASSERT(endpoint_idx < SERVICE_ENDPOINTS_MAX);
    LOCK_SCOPE(&s->lock);
    struct endpoint_counts *n = &s->counts[endpoint_idx];
    n->requests++;
    n->busy_ns += ns;
    if (error) {
        n->errors++;
        snprintf(n->last_error, sizeof n->last_error, "%s", error);
    }
}
