/* Each role's rights are a list of subject patterns, worked out from what the code sends:
 *
 *   {p} prefix   {U} PREFIX   {n} the holder's name   {t} its tenant   {g} each of its lanes   {T} each tenant of the fleet
 *
 * "The last message of a subject" is asked for on $JS.API.DIRECT.GET.<stream>.<subject>, so the right to it can name the subject; the
 * request without one can ask for anything in the stream. No role but the coordinator makes streams, no role deletes one.
 *
 * These patterns repeat names that proto/subjects.c builds. tests/security runs a whole job with them, so they cannot part.
 */
#include "node/cli/roles.h"

#include <stdio.h>
#include <string.h>

/* --- The tables --- */

static const char *const submitter_publish[] = {
    "{p}.job.*.*.{t}.*",
    "{p}.ctl.tenant.{t}.*",
    "$O.{p}-in-{t}.>",
    "$JS.API.DIRECT.GET.OBJ_{p}-in-{t}.$O.{p}-in-{t}.M.*",
    "$JS.API.DIRECT.GET.KV_{p}_jobs.$KV.{p}_jobs.{t}.*",
    "$JS.API.DIRECT.GET.{U}_DONE.{p}.done.{t}.>",
    "$JS.API.DIRECT.GET.KV_{p}_lead.$KV.{p}_lead.leader",
    "$JS.API.DIRECT.GET.KV_{p}_keys.$KV.{p}_keys.*",
    "$JS.API.DIRECT.GET.OBJ_{p}-keys.$O.{p}-keys.M.*",
    NULL,
};
static const char *const submitter_key_publish[] = {
    "$JS.API.DIRECT.GET.OBJ_{p}-keys", /* is what it has pushed before still whole? */
    "$O.{p}-keys.>",
    "$KV.{p}_keys.*",
    NULL,
};
static const char *const submitter_subscribe[] = {
    "{p}.done.{t}.>",
    "{p}.evt.{t}.>",
    NULL,
};

static const char *const worker_publish[] = {
    "$JS.API.CONSUMER.CREATE.{U}_LANES.L_{n}_{g}.{p}.lane.{n}.{g}",
    "$JS.API.CONSUMER.INFO.{U}_LANES.L_{n}_{g}",
    "$JS.API.STREAM.INFO.{U}_LANES", /* is its consumer ahead of it? then it is made anew */
    "$JS.API.CONSUMER.DELETE.{U}_LANES.L_{n}_{g}",
    "$JS.API.CONSUMER.MSG.NEXT.{U}_LANES.L_{n}_{g}",
    "$JS.ACK.{U}_LANES.L_{n}_{g}.>",
    "$JS.API.DIRECT.GET.KV_{p}_jobs.$KV.{p}_jobs.>",
    "$JS.API.DIRECT.GET.KV_{p}_cancel.$KV.{p}_cancel.>",
    "$JS.API.DIRECT.GET.KV_{p}_lead.$KV.{p}_lead.leader",
    "$JS.API.DIRECT.GET.KV_{p}_lanes.$KV.{p}_lanes.{n}.*",
    "$JS.API.DIRECT.GET.KV_{p}_keys.$KV.{p}_keys.*",
    "$JS.API.DIRECT.GET.{U}_DONE.{p}.done.>",
    "$JS.API.DIRECT.GET.{U}_PARTS.{p}.part.>",
    "$JS.API.DIRECT.GET.OBJ_{p}-keys",
    "$JS.API.DIRECT.GET.OBJ_{p}-keys.$O.{p}-keys.M.*",
    "$JS.API.DIRECT.GET.OBJ_{p}-in-{T}",
    "$KV.{p}_jobs.*.*",
    "$KV.{p}_lanes.{n}.*",
    "{p}.part.>",
    "{p}.done.>",
    "{p}.evt.>",
    "{p}.tel.{n}.>",
    "{p}.hb.{n}.*",
    "_INBOX.submitter.>",
    "_INBOX.operator.>",
    NULL,
};
static const char *const worker_subscribe[] = {
    "{p}.ctl.lane.{n}.>",
    "{p}.ctl.node.{n}.*",
    "{p}.ctl.all.*",
    "{p}.ctl.cancel.*.*",
    "$SRV.>",
    NULL,
};

static const char *const coordinator_publish[] = {
    "$JS.API.STREAM.CREATE.{S}",
    "$JS.API.STREAM.INFO.{S}",
    "$JS.API.DIRECT.GET.{S}",
    "$JS.API.DIRECT.GET.{S}.>",
    "$JS.API.STREAM.PURGE.{U}_LANES",
    "$JS.API.STREAM.PURGE.{U}_PARTS",
    "$JS.API.STREAM.PURGE.OBJ_{p}-in-{T}",
    "$JS.API.STREAM.INFO.OBJ_{p}-in-{T}",
    "$JS.API.DIRECT.GET.OBJ_{p}-in-{T}",
    "$JS.API.DIRECT.GET.OBJ_{p}-in-{T}.>",
    "$O.{p}-in-{T}.M.*",
    "$JS.API.CONSUMER.CREATE.{U}_JOBS.>",
    "$JS.API.CONSUMER.INFO.{U}_JOBS.*",
    "$JS.API.CONSUMER.MSG.NEXT.{U}_JOBS.*",
    "$JS.API.CONSUMER.DELETE.{U}_JOBS.*",
    "$JS.ACK.{U}_JOBS.>",
    "$JS.API.CONSUMER.CREATE.{U}_ADV.>",
    "$JS.API.CONSUMER.INFO.{U}_ADV.*",
    "$JS.API.CONSUMER.MSG.NEXT.{U}_ADV.*",
    "$JS.API.CONSUMER.DELETE.{U}_ADV.*",
    "$JS.ACK.{U}_ADV.>",
    "$JS.API.CONSUMER.CREATE.KV_{p}_jobs", /* follows the records and the lanes' directory */
    "$JS.API.CONSUMER.MSG.NEXT.KV_{p}_jobs.*",
    "$JS.API.CONSUMER.DELETE.KV_{p}_jobs.*",
    "$JS.API.CONSUMER.CREATE.KV_{p}_lanes",
    "$JS.API.CONSUMER.MSG.NEXT.KV_{p}_lanes.*",
    "$JS.API.CONSUMER.DELETE.KV_{p}_lanes.*",
    "$JS.API.CONSUMER.INFO.{U}_LANES.*",
    "$JS.ACK.{U}_LANES.>", /* takes a delivery back from a lane that holds it */
    "$KV.{p}_lead.leader",
    "$KV.{p}_jobs.*.*",
    "$KV.{p}_jobs.floor", /* what the next leader need not read */
    "$KV.{p}_cancel.*.*",
    "$KV.{p}_lanes.*.*",
    "{p}.lane.*.*",
    "{p}.done.>",
    "{p}.dead.>",
    "{p}.evt.>",
    "{p}.tel.fleet",
    "{p}.ctl.cancel.*.*",
    "{p}.ctl.lane.>",
    "_INBOX.submitter.>",
    "_INBOX.operator.>",
    "_INBOX.dashboard.>",
    "_R_.>", /* answers to another account */
    NULL,
};
static const char *const coordinator_subscribe[] = {
    "{p}.hb.*.*", "{p}.tel.>", "{p}.ctl.tenant.*.*", "{p}.ctl.coordinator.*", "$SRV.>", NULL,
};

static const char *const operator_publish[] = {
    "$JS.API.INFO",
    "$JS.API.STREAM.INFO.{S}",
    "$JS.API.DIRECT.GET.{S}",
    "$JS.API.DIRECT.GET.{S}.>",
    "$JS.API.STREAM.CREATE.OBJ_{p}-in-{T}",
    "$JS.API.STREAM.UPDATE.OBJ_{p}-in-{T}",
    "$JS.API.STREAM.INFO.OBJ_{p}-in-{T}",
    "$JS.API.CONSUMER.INFO.{U}_JOBS.*",
    "$JS.API.CONSUMER.INFO.{U}_LANES.*",
    "$JS.API.STREAM.PURGE.OBJ_{p}-keys",
    "$O.{p}-keys.>",
    "$KV.{p}_keys.*",
    "{p}.ctl.lane.>",
    "{p}.ctl.node.>",
    "{p}.ctl.all.*",
    "{p}.ctl.coordinator.*",
    "{p}.ctl.tenant.*.*",
    "$SRV.>",
    NULL,
};
static const char *const operator_subscribe[] = {
    "{p}.tel.>", "{p}.evt.>", "{p}.hb.>", "{p}.done.>", NULL,
};

static const char *const dashboard_publish[] = {
    "$JS.API.DIRECT.GET.{U}_TEL",
    "$JS.API.DIRECT.GET.{U}_TEL.>",
    "$JS.API.DIRECT.GET.KV_{p}_lanes",
    "$JS.API.DIRECT.GET.KV_{p}_lanes.>",
    "$JS.API.DIRECT.GET.KV_{p}_lead.$KV.{p}_lead.leader",
    NULL,
};
static const char *const dashboard_subscribe[] = {"{p}.tel.>", "{p}.evt.>", "{p}.hb.>", NULL};

/* {S}: what the fleet keeps, but for the tenants' buckets. */
static const char *const kept[] = {
    "{U}_JOBS",    "{U}_LANES",     "{U}_PARTS",    "{U}_DONE",    "{U}_DEAD",
    "{U}_ADV",     "{U}_TEL",       "KV_{p}_lead",  "KV_{p}_jobs", "KV_{p}_lanes",
    "KV_{p}_keys", "KV_{p}_cancel", "OBJ_{p}-keys",
};

static const char *const *const publish_tables[ROLES_COUNT] = {
    submitter_publish, worker_publish, coordinator_publish, operator_publish, dashboard_publish};
static const char *const *const subscribe_tables[ROLES_COUNT] = {
    submitter_subscribe, worker_subscribe, coordinator_subscribe, operator_subscribe,
    dashboard_subscribe};

/* --- Filling in --- */

struct values {
    const struct role_fleet *fleet;
    const char *name, *tenant, *each_tenant, *stream;
    unsigned lane;
};

static void fill(struct text *out, const char *pattern, const struct values *v) {
    struct subject upper = stream_name(&v->fleet->space, "X");
    upper.text[strlen(upper.text) - 2] = 0;
    while (*pattern) {
        if (*pattern != '{') {
            text_addf(out, "%c", *pattern++);
            continue;
        }
        switch (pattern[1]) {
        case 'p':
            text_add(out, v->fleet->space.prefix);
            break;
        case 'U':
            text_add(out, upper.text);
            break;
        case 'n':
            text_add(out, v->name);
            break;
        case 't':
            text_add(out, v->tenant);
            break;
        case 'T':
            text_add(out, v->each_tenant);
            break;
        case 'S':
            fill(out, v->stream, v);
            break;
        default:
            text_addf(out, "%u", v->lane);
        }
        pattern += 3;
    }
}

static void add_line(struct text *out, const char *pattern, const struct values *v) {
    fill(out, pattern, v);
    text_add(out, "\n");
}

/* The holder at i is the first of its tenant. */
static bool tenant_is_new(const struct role_fleet *fleet, size_t i) {
    const struct role_holder *h = &fleet->holders[i];
    for (size_t k = 0; k < i; k++) {
        if (!strcmp(fleet->holders[k].tenant, h->tenant)) {
            return false;
        }
    }
    return h->role == ROLE_SUBMITTER;
}

/* A pattern becomes one line, or one for each lane, tenant or stream that it speaks of. */
static void add_lines(struct text *out, const char *pattern, struct values v) {
    if (strstr(pattern, "{g}")) {
        for (v.lane = 0; v.lane < v.fleet->lanes_count; v.lane++) {
            add_line(out, pattern, &v);
        }
    } else if (strstr(pattern, "{T}")) {
        for (size_t i = 0; i < v.fleet->holders_count; i++) {
            v.each_tenant = v.fleet->holders[i].tenant;
            if (tenant_is_new(v.fleet, i)) {
                add_line(out, pattern, &v);
            }
        }
    } else if (strstr(pattern, "{S}")) {
        for (size_t i = 0; i < COUNT_OF(kept); i++) {
            v.stream = kept[i];
            add_line(out, pattern, &v);
        }
    } else {
        add_line(out, pattern, &v);
    }
}

static void add_table(struct text *out, const char *const *table, const struct role_fleet *fleet,
                      const struct role_holder *holder) {
    struct values v = {.fleet = fleet, .name = holder->name, .tenant = holder->tenant};
    for (; *table; table++) {
        add_lines(out, *table, v);
    }
}

static void add_inbox(struct text *out, const struct role_holder *holder) {
    char text[ROLE_TEXT_BYTES];
    role_holder_text(text, holder);
    text_addf(out, "_INBOX.%s.>\n", text);
}

void role_publishes(struct text *out, const struct role_fleet *fleet,
                    const struct role_holder *holder) {
    add_table(out, publish_tables[holder->role], fleet, holder);
    if (holder->role == ROLE_SUBMITTER && fleet->tenants_push_keys) {
        add_table(out, submitter_key_publish, fleet, holder);
    }
    add_inbox(out, holder); /* who waits for a message is woken by one of its own */
}

void role_subscribes(struct text *out, const struct role_fleet *fleet,
                     const struct role_holder *holder) {
    add_table(out, subscribe_tables[holder->role], fleet, holder);
    add_inbox(out, holder);
}

/* --- The server's configuration --- */

/* Each line of `lines`, with what stands before and after it. */
static void wrap_lines(struct text *out, const struct text *lines, const char *before,
                       const char *after) {
    const char *at = lines->ptr;
    for (const char *end; at && (end = strchr(at, '\n')); at = end + 1) {
        text_addf(out, "%s%.*s%s", before, (int)(end - at), at, after);
    }
}

static void add_user(struct text *out, const struct role_fleet *fleet,
                     const struct role_holder *holder) {
    AUTO(text_free) struct text publishes = {0}, subscribes = {0};
    char name[ROLE_TEXT_BYTES];
    role_holder_text(name, holder);
    role_publishes(&publishes, fleet, holder);
    role_subscribes(&subscribes, fleet, holder);
    text_addf(out, "      {\n        user: \"CN=%s\"\n        permissions: {\n", name);
    text_add(out, "          publish: { allow: [\n");
    wrap_lines(out, &publishes, "            \"", "\"\n");
    text_add(out, "          ] }\n          subscribe: { allow: [\n");
    wrap_lines(out, &subscribes, "            \"", "\"\n");
    text_add(out, "          ] }\n        }\n      }\n");
}

static bool belongs(const struct role_holder *h, enum role role, const char *tenant) {
    return role == ROLE_SUBMITTER || role == ROLE_DASHBOARD
               ? h->role == role && !strcmp(h->tenant, tenant)
               : h->role != ROLE_SUBMITTER && h->role != ROLE_DASHBOARD;
}

static void add_users(struct text *out, const struct role_fleet *fleet, enum role role,
                      const char *tenant) {
    text_add(out, "    users: [\n");
    for (size_t i = 0; i < fleet->holders_count; i++) {
        if (belongs(&fleet->holders[i], role, tenant)) {
            add_user(out, fleet, &fleet->holders[i]);
        }
    }
    text_add(out, "    ]\n");
}

/* What crosses between the fleet and an account: its requests one way, what it hears the other. */
struct crossing {
    struct text services, streams;
    char account[2 * ID_BYTES_MAX];
};

static void crossing_done(struct crossing *c) {
    text_free(&c->services);
    text_free(&c->streams);
}

static void crossing_of(struct crossing *c, const struct role_fleet *fleet,
                        const struct role_holder *holder) {
    const char *prefix = fleet->space.prefix;
    add_table(&c->services, publish_tables[holder->role], fleet, holder);
    add_table(&c->streams, subscribe_tables[holder->role], fleet, holder);
    if (holder->role == ROLE_DASHBOARD) {
        snprintf(c->account, sizeof c->account, "%s-dashboards", prefix);
        return;
    }
    if (fleet->tenants_push_keys) {
        add_table(&c->services, submitter_key_publish, fleet, holder);
    }
    text_addf(&c->streams, "_INBOX.submitter.%s.>\n", holder->tenant); /* a job's reply subject */
    snprintf(c->account, sizeof c->account, "%s-tenant-%s", prefix, holder->tenant);
}

static void add_exports(struct text *out, const struct role_fleet *fleet,
                        const struct role_holder *holder) {
    AUTO(crossing_done) struct crossing c = {0};
    char after[2 * ID_BYTES_MAX + 40];
    crossing_of(&c, fleet, holder);
    snprintf(after, sizeof after, "\", accounts: [\"%s\"] }\n", c.account);
    wrap_lines(out, &c.services, "      { service: \"", after);
    wrap_lines(out, &c.streams, "      { stream: \"", after);
}

static void add_account(struct text *out, const struct role_fleet *fleet,
                        const struct role_holder *holder) {
    AUTO(crossing_done) struct crossing c = {0};
    char service[ID_BYTES_MAX + 60], stream[ID_BYTES_MAX + 60];
    crossing_of(&c, fleet, holder);
    snprintf(service, sizeof service, "      { service: { account: \"%s\", subject: \"",
             fleet->space.prefix);
    snprintf(stream, sizeof stream, "      { stream: { account: \"%s\", subject: \"",
             fleet->space.prefix);
    text_addf(out, "\n  \"%s\": {\n", c.account);
    add_users(out, fleet, holder->role, holder->tenant);
    text_add(out, "    imports: [\n");
    wrap_lines(out, &c.services, service, "\" } }\n");
    wrap_lines(out, &c.streams, stream, "\" } }\n");
    text_add(out, "    ]\n  }\n");
}

void role_accounts(struct text *out, const struct role_fleet *fleet) {
    static const struct role_holder dashboards = {.role = ROLE_DASHBOARD};
    text_add(out,
             "# Made by `bellows certs accounts`: who may do what. Make it again after each new "
             "certificate;\n# changes by hand are lost. The server reads it again on SIGHUP.\n");
    text_addf(out, "accounts {\n  \"%s\": {\n    jetstream: enabled\n", fleet->space.prefix);
    add_users(out, fleet, ROLE_COORDINATOR, "");
    text_add(out, "    exports: [\n");
    for (size_t i = 0; i < fleet->holders_count; i++) {
        if (tenant_is_new(fleet, i)) {
            add_exports(out, fleet, &fleet->holders[i]);
        }
    }
    add_exports(out, fleet, &dashboards);
    text_add(out, "    ]\n  }\n");
    for (size_t i = 0; i < fleet->holders_count; i++) {
        if (tenant_is_new(fleet, i)) {
            add_account(out, fleet, &fleet->holders[i]);
        }
    }
    add_account(out, fleet, &dashboards);
    text_add(out, "\n  \"SYS\": { users: [] }\n}\nsystem_account: \"SYS\"\n");
}
