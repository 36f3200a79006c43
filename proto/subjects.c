/* Names on the wire, built and taken apart by one table.
 *
 * Every kind of subject is one pattern of space-separated fields after the prefix: a lower-case word stands for itself, a
 * letter names a field:
 *
 *   p priority  c circuit  t tenant  j job  g generation  i index  n node  u gpu  v verb (or state, or telemetry kind)
 *
 * Building walks the pattern with the fields' values (or a wildcard), parsing walks it with the subject's tokens; so the
 * two cannot disagree.
 */
#include "proto/subjects.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TOKENS_MAX = 8 };

static struct subject print(const char *format, ...) __attribute__((format(printf, 1, 2)));

static const char *const patterns[SUBJECT_KINDS_COUNT] = {
    [SUBJECT_JOB] = "job p c t j",
    [SUBJECT_LANE] = "lane n u",
    [SUBJECT_PART] = "part t j g i",
    [SUBJECT_DONE] = "done t j g",
    [SUBJECT_DEAD] = "dead t j",
    [SUBJECT_TELEMETRY] = "tel n u v",
    [SUBJECT_TELEMETRY_FLEET] = "tel fleet",
    [SUBJECT_EVENT] = "evt t j v",
    [SUBJECT_HEARTBEAT] = "hb n u",
    [SUBJECT_CTL_LANE] = "ctl lane n u v",
    [SUBJECT_CTL_NODE] = "ctl node n v",
    [SUBJECT_CTL_ALL] = "ctl all v",
    [SUBJECT_CTL_COORDINATOR] = "ctl coordinator v",
    [SUBJECT_CTL_TENANT] = "ctl tenant t v",
    [SUBJECT_CTL_CANCEL] = "ctl cancel t j",
};

static bool id_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

/* Index of the first character that may not stand in an id, or the length. */
static size_t id_span(const char *id) {
    size_t len = 0;
    while (id[len] && id_char(id[len])) {
        len++;
    }
    return len;
}

FALLIBLE id_check(const char *id, const char *what) {
    REQUIRE(id && id[0], E_FORMAT, "%s is empty: an id has 1 to %d characters", what, ID_BYTES_MAX);
    size_t len = id_span(id);
    REQUIRE(!id[len], E_FORMAT,
            "%s has byte 0x%02x at position %zu: an id is made of letters, digits, '_' and '-'",
            what, (unsigned char)id[len], len);
    REQUIRE(len <= ID_BYTES_MAX, E_FORMAT, "%s has %zu characters, at most %d allowed", what, len,
            ID_BYTES_MAX);
    return OK;
}

bool id_is_valid(const char *id) {
    size_t len = id ? id_span(id) : 0;
    return len > 0 && len <= ID_BYTES_MAX && !id[len];
}

FALLIBLE subject_space_init(struct subject_space *out, const char *prefix) {
    prefix = prefix ? prefix : "bellows";
    TRY(id_check(prefix, "subject prefix"));
    REQUIRE(strlen(prefix) < sizeof out->prefix, E_FORMAT,
            "subject prefix has %zu characters, at most %zu allowed", strlen(prefix),
            sizeof out->prefix - 1);
    memset(out, 0, sizeof *out);
    memcpy(out->prefix, prefix, strlen(prefix));
    return OK;
}

/* --- Building --- */

/* Values of the fields; NULL strings and absent numbers become "*". */
struct fields {
    const char *tenant, *job, *node, *verb, *circuit;
    bool has_priority, has_gpu, has_generation, has_index;
    unsigned priority;
    uint32_t gpu, index;
    uint64_t generation;
};

static void add(struct subject *out, const char *token) {
    size_t at = strlen(out->text), len = strlen(token);
    ASSERT(at + len + 2 <= sizeof out->text);
    if (at > 0) {
        out->text[at++] = '.';
    }
    memcpy(out->text + at, token, len + 1);
}

static void add_id(struct subject *out, const char *id) {
    ASSERT(!id || id_is_valid(id));
    add(out, id ? id : "*");
}

static void add_number(struct subject *out, bool present, uint64_t value) {
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    add(out, present ? digits : "*");
}

static void add_field(struct subject *out, char field, const struct fields *f) {
    switch (field) {
    case 'p':
        add_number(out, f->has_priority, f->priority);
        return;
    case 'c':
        add_id(out, f->circuit);
        return;
    case 't':
        add_id(out, f->tenant);
        return;
    case 'j':
        add_id(out, f->job);
        return;
    case 'g':
        add_number(out, f->has_generation, f->generation);
        return;
    case 'i':
        add_number(out, f->has_index, f->index);
        return;
    case 'n':
        add_id(out, f->node);
        return;
    case 'u':
        add_number(out, f->has_gpu, f->gpu);
        return;
    case 'v':
        add_id(out, f->verb);
        return;
    default:
        UNREACHABLE("unknown field in a subject pattern");
    }
}

/* The next space-separated word of a pattern; false at its end. */
static bool next_word(char word[16], const char **pattern) {
    while (**pattern == ' ') {
        (*pattern)++;
    }
    size_t len = strcspn(*pattern, " ");
    if (len == 0) {
        return false;
    }
    ASSERT(len < 16);
    memcpy(word, *pattern, len);
    word[len] = '\0';
    *pattern += len;
    return true;
}

static struct subject build(const struct subject_space *s, enum subject_kind kind,
                            const struct fields *f) {
    struct subject out = {""};
    add(&out, s->prefix);
    const char *pattern = patterns[kind];
    char word[16];
    while (next_word(word, &pattern)) {
        if (word[1]) {
            add(&out, word);
        } else {
            add_field(&out, word[0], f);
        }
    }
    return out;
}

static void circuit_token(char out[CIRCUIT_TOKEN_DIGITS + 1], const uint8_t key_digest[32]) {
    hex_encode(out, key_digest, CIRCUIT_TOKEN_DIGITS / 2);
}

struct subject subject_job(const struct subject_space *s, unsigned priority,
                           const uint8_t key_digest[32], struct job_name job) {
    char circuit[CIRCUIT_TOKEN_DIGITS + 1];
    circuit_token(circuit, key_digest);
    ASSERT(priority < JOB_PRIORITY_COUNT);
    return build(s, SUBJECT_JOB,
                 &(struct fields){.has_priority = true,
                                  .priority = priority,
                                  .circuit = circuit,
                                  .tenant = job.tenant,
                                  .job = job.job});
}

static struct subject build_lane(const struct subject_space *s, enum subject_kind kind,
                                 struct lane_name lane, const char *verb) {
    ASSERT(lane.node);
    return build(
        s, kind,
        &(struct fields){.node = lane.node, .has_gpu = true, .gpu = lane.gpu, .verb = verb});
}

struct subject subject_lane(const struct subject_space *s, struct lane_name lane) {
    return build_lane(s, SUBJECT_LANE, lane, NULL);
}

struct subject subject_telemetry(const struct subject_space *s, struct lane_name lane,
                                 const char *kind) {
    return build_lane(s, SUBJECT_TELEMETRY, lane, kind);
}

struct subject subject_telemetry_fleet(const struct subject_space *s) {
    return build(s, SUBJECT_TELEMETRY_FLEET, &(struct fields){0});
}

struct subject subject_heartbeat(const struct subject_space *s, struct lane_name lane) {
    return build_lane(s, SUBJECT_HEARTBEAT, lane, NULL);
}

struct subject subject_ctl_lane(const struct subject_space *s, struct lane_name lane,
                                const char *verb) {
    return build_lane(s, SUBJECT_CTL_LANE, lane, verb);
}

static struct subject build_job(const struct subject_space *s, enum subject_kind kind,
                                struct job_name job, const char *verb) {
    return build(s, kind, &(struct fields){.tenant = job.tenant, .job = job.job, .verb = verb});
}

struct subject subject_part(const struct subject_space *s, struct job_name job, uint64_t generation,
                            uint32_t index) {
    return build(s, SUBJECT_PART,
                 &(struct fields){.tenant = job.tenant,
                                  .job = job.job,
                                  .has_generation = true,
                                  .generation = generation,
                                  .has_index = true,
                                  .index = index});
}

struct subject subject_done(const struct subject_space *s, struct job_name job,
                            uint64_t generation) {
    return build(s, SUBJECT_DONE,
                 &(struct fields){.tenant = job.tenant,
                                  .job = job.job,
                                  .has_generation = true,
                                  .generation = generation});
}

struct subject subject_dead(const struct subject_space *s, struct job_name job) {
    return build_job(s, SUBJECT_DEAD, job, NULL);
}

struct subject subject_event(const struct subject_space *s, struct job_name job,
                             const char *state) {
    return build_job(s, SUBJECT_EVENT, job, state);
}

struct subject subject_ctl_cancel(const struct subject_space *s, struct job_name job) {
    return build_job(s, SUBJECT_CTL_CANCEL, job, NULL);
}

struct subject subject_ctl_node(const struct subject_space *s, const char *node, const char *verb) {
    return build(s, SUBJECT_CTL_NODE, &(struct fields){.node = node, .verb = verb});
}

struct subject subject_ctl_all(const struct subject_space *s, const char *verb) {
    return build(s, SUBJECT_CTL_ALL, &(struct fields){.verb = verb});
}

struct subject subject_ctl_coordinator(const struct subject_space *s, const char *verb) {
    return build(s, SUBJECT_CTL_COORDINATOR, &(struct fields){.verb = verb});
}

struct subject subject_ctl_tenant(const struct subject_space *s, const char *tenant,
                                  const char *verb) {
    ASSERT(tenant);
    return build(s, SUBJECT_CTL_TENANT, &(struct fields){.tenant = tenant, .verb = verb});
}

/* --- Filters: the same patterns with fields left out --- */

struct subject filter_jobs(const struct subject_space *s, int priority) {
    return build(s, SUBJECT_JOB,
                 &(struct fields){.has_priority = priority >= 0, .priority = (unsigned)priority});
}

struct subject filter_lanes(const struct subject_space *s) {
    return build(s, SUBJECT_LANE, &(struct fields){0});
}

struct subject filter_parts(const struct subject_space *s) {
    return build(s, SUBJECT_PART, &(struct fields){0});
}

struct subject filter_parts_of(const struct subject_space *s, struct job_name job,
                               uint64_t generation) {
    return build(s, SUBJECT_PART,
                 &(struct fields){.tenant = job.tenant,
                                  .job = job.job,
                                  .has_generation = true,
                                  .generation = generation});
}

struct subject filter_done(const struct subject_space *s) {
    return build(s, SUBJECT_DONE, &(struct fields){0});
}

struct subject filter_done_of(const struct subject_space *s, struct job_name job) {
    return build_job(s, SUBJECT_DONE, job, NULL);
}

struct subject filter_done_tenant(const struct subject_space *s, const char *tenant) {
    return build(s, SUBJECT_DONE, &(struct fields){.tenant = tenant});
}

struct subject filter_dead(const struct subject_space *s) {
    return build(s, SUBJECT_DEAD, &(struct fields){0});
}

struct subject filter_telemetry(const struct subject_space *s) {
    return print("%s.tel.>", s->prefix);
}

struct subject filter_telemetry_kind(const struct subject_space *s, const char *kind) {
    return build(s, SUBJECT_TELEMETRY, &(struct fields){.verb = kind});
}

struct subject filter_events(const struct subject_space *s) {
    return build(s, SUBJECT_EVENT, &(struct fields){0});
}

struct subject filter_events_state(const struct subject_space *s, const char *state) {
    return build(s, SUBJECT_EVENT, &(struct fields){.verb = state});
}

struct subject filter_events_of(const struct subject_space *s, struct job_name job) {
    return build_job(s, SUBJECT_EVENT, job, NULL);
}

struct subject filter_heartbeats(const struct subject_space *s) {
    return build(s, SUBJECT_HEARTBEAT, &(struct fields){0});
}

struct subject filter_ctl_lanes(const struct subject_space *s, const char *node) {
    return build(s, SUBJECT_CTL_LANE, &(struct fields){.node = node});
}

struct subject filter_cancels(const struct subject_space *s) {
    return build(s, SUBJECT_CTL_CANCEL, &(struct fields){0});
}

struct subject filter_tenant_requests(const struct subject_space *s, const char *verb) {
    return build(s, SUBJECT_CTL_TENANT, &(struct fields){.verb = verb});
}

/* --- Streams, buckets, keys, consumers, message ids --- */

static struct subject print(const char *format, ...) {
    struct subject out;
    va_list args;
    va_start(args, format);
    int len = vsnprintf(out.text, sizeof out.text, format, args);
    va_end(args);
    ASSERT(len > 0 && (size_t)len < sizeof out.text);
    return out;
}

struct subject stream_name(const struct subject_space *s, const char *tail) {
    struct subject out = print("%s_%s", s->prefix, tail);
    for (char *c = out.text; *c; c++) {
        *c = (char)toupper((unsigned char)*c);
    }
    return out;
}

struct subject kv_bucket_name(const struct subject_space *s, const char *tail) {
    return print("%s_%s", s->prefix, tail);
}

struct subject bucket_in(const struct subject_space *s, const char *tenant) {
    ASSERT(id_is_valid(tenant));
    return print("%s-in-%s", s->prefix, tenant);
}

struct subject bucket_keys(const struct subject_space *s) {
    return print("%s-keys", s->prefix);
}

struct subject key_of_job(struct job_name job) {
    ASSERT(id_is_valid(job.tenant) && id_is_valid(job.job));
    return print("%s.%s", job.tenant, job.job);
}

struct subject key_of_lane(struct lane_name lane) {
    ASSERT(id_is_valid(lane.node));
    return print("%s.%" PRIu32, lane.node, lane.gpu);
}

struct subject consumer_of_lane(struct lane_name lane) {
    ASSERT(id_is_valid(lane.node));
    return print("L_%s_%" PRIu32, lane.node, lane.gpu);
}

struct subject consumer_of_priority(unsigned priority) {
    ASSERT(priority < JOB_PRIORITY_COUNT);
    return print("J_P%u", priority);
}

struct subject message_id_of_job(struct job_name job, uint64_t generation) {
    ASSERT(id_is_valid(job.tenant) && id_is_valid(job.job));
    return print("%s.%s.%" PRIu64, job.tenant, job.job, generation);
}

struct subject message_id_of_assignment(struct job_name job, uint64_t generation, uint64_t epoch,
                                        uint32_t index) {
    ASSERT(id_is_valid(job.tenant) && id_is_valid(job.job));
    return print("%s.%s.%" PRIu64 ".%" PRIu64 ".%" PRIu32, job.tenant, job.job, generation, epoch,
                 index);
}

/* --- Parsing --- */

/* Decimal without sign or leading zeros, at most `limit`. */
static bool parse_number(uint64_t *out, const char *token, uint64_t limit) {
    uint64_t value = 0;
    if (!token[0] || (token[0] == '0' && token[1])) {
        return false;
    }
    for (; *token; token++) {
        if (*token < '0' || *token > '9') {
            return false;
        }
        unsigned digit = (unsigned)(*token - '0');
        if (digit > limit || value > (limit - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

static bool copy_id(char out[ID_BYTES_MAX + 1], const char *token) {
    if (!id_is_valid(token)) {
        return false;
    }
    memcpy(out, token, strlen(token) + 1);
    return true;
}

static bool parse_circuit(char out[CIRCUIT_TOKEN_DIGITS + 1], const char *token) {
    if (strlen(token) != CIRCUIT_TOKEN_DIGITS ||
        strspn(token, "0123456789abcdef") != CIRCUIT_TOKEN_DIGITS) {
        return false;
    }
    memcpy(out, token, CIRCUIT_TOKEN_DIGITS + 1);
    return true;
}

static bool parse_field(struct subject_parts *out, char field, const char *token) {
    uint64_t n = 0;
    switch (field) {
    case 'p':
        if (!parse_number(&n, token, JOB_PRIORITY_COUNT - 1)) {
            return false;
        }
        out->priority = (unsigned)n;
        return true;
    case 'u':
        if (!parse_number(&n, token, UINT32_MAX)) {
            return false;
        }
        out->gpu = (uint32_t)n;
        return true;
    case 'i':
        if (!parse_number(&n, token, UINT32_MAX)) {
            return false;
        }
        out->index = (uint32_t)n;
        return true;
    case 'g':
        return parse_number(&out->generation, token, UINT64_MAX);
    case 'c':
        return parse_circuit(out->circuit, token);
    case 't':
        return copy_id(out->tenant, token);
    case 'j':
        return copy_id(out->job, token);
    case 'n':
        return copy_id(out->node, token);
    case 'v':
        return copy_id(out->verb, token);
    default:
        return false;
    }
}

/* Cuts `text` in place at its dots. 0 when there are too many tokens. */
static size_t split(char *tokens[TOKENS_MAX], char *text) {
    size_t count = 0;
    char *at = text;
    for (;;) {
        if (count == TOKENS_MAX) {
            return 0;
        }
        tokens[count++] = at;
        at = strchr(at, '.');
        if (!at) {
            return count;
        }
        *at++ = '\0';
    }
}

static bool parse_as(struct subject_parts *out, enum subject_kind kind, char *const *tokens,
                     size_t tokens_count) {
    const char *pattern = patterns[kind];
    char word[16];
    size_t at = 0;
    memset(out, 0, sizeof *out);
    out->kind = kind;
    while (next_word(word, &pattern)) {
        if (at == tokens_count) {
            return false;
        }
        const char *token = tokens[at++];
        bool fits = word[1] ? strcmp(word, token) == 0 : parse_field(out, word[0], token);
        if (!fits) {
            return false;
        }
    }
    return at == tokens_count;
}

FALLIBLE subject_parse(struct subject_parts *out, const struct subject_space *s, const char *text) {
    char copy[SUBJECT_BYTES_MAX];
    char *tokens[TOKENS_MAX];
    size_t len = strnlen(text, sizeof copy);
    REQUIRE(len < sizeof copy, E_FORMAT, "subject is longer than %zu bytes", sizeof copy - 1);
    memcpy(copy, text, len + 1);
    size_t count = split(tokens, copy);
    if (count > 1 && strcmp(tokens[0], s->prefix) == 0) {
        for (int kind = 0; kind < SUBJECT_KINDS_COUNT; kind++) {
            struct subject_parts parts;
            if (parse_as(&parts, (enum subject_kind)kind, tokens + 1, count - 1)) {
                *out = parts;
                return OK;
            }
        }
    }
    FAIL(E_FORMAT,
         "subject \"%.100s\" is none of %s.job, .lane, .part, .done, .dead, .tel, .evt, "
         ".hb or .ctl with valid ids and numbers",
         text, s->prefix);
}

FALLIBLE job_key_parse(char tenant[ID_BYTES_MAX + 1], char job[ID_BYTES_MAX + 1], const char *key) {
    char copy[2 * ID_BYTES_MAX + 2];
    char *tokens[TOKENS_MAX];
    size_t len = strnlen(key, sizeof copy);
    REQUIRE(len < sizeof copy, E_FORMAT, "key is longer than %zu bytes", sizeof copy - 1);
    memcpy(copy, key, len + 1);
    REQUIRE(split(tokens, copy) == 2 && id_is_valid(tokens[0]) && id_is_valid(tokens[1]), E_FORMAT,
            "key \"%.100s\" is not <tenant>.<job>", key);
    memcpy(tenant, tokens[0], strlen(tokens[0]) + 1);
    memcpy(job, tokens[1], strlen(tokens[1]) + 1);
    return OK;
}

FALLIBLE lane_key_parse(char node[ID_BYTES_MAX + 1], uint32_t *gpu, const char *key) {
    char copy[ID_BYTES_MAX + 16];
    char *tokens[TOKENS_MAX];
    uint64_t n = 0;
    size_t len = strnlen(key, sizeof copy);
    REQUIRE(len < sizeof copy, E_FORMAT, "key is longer than %zu bytes", sizeof copy - 1);
    memcpy(copy, key, len + 1);
    REQUIRE(split(tokens, copy) == 2 && id_is_valid(tokens[0]) &&
                parse_number(&n, tokens[1], UINT32_MAX),
            E_FORMAT, "key \"%.100s\" is not <node>.<gpu>", key);
    memcpy(node, tokens[0], strlen(tokens[0]) + 1);
    *gpu = (uint32_t)n;
    return OK;
}

FALLIBLE subject_check_foreign(const char *text, const char *what) {
    REQUIRE(text && text[0], E_FORMAT, "%s is empty", what);
    size_t len = strnlen(text, SUBJECT_BYTES_MAX);
    REQUIRE(len < SUBJECT_BYTES_MAX, E_FORMAT, "%s is longer than %d bytes", what,
            SUBJECT_BYTES_MAX - 1);
    REQUIRE(text[0] != '$', E_FORMAT, "%s starts with '$': that belongs to the server", what);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        REQUIRE(c > ' ' && c < 0x7f && c != '*' && c != '>', E_FORMAT,
                "%s has byte 0x%02x at position %zu: no spaces, wildcards or control bytes", what,
                c, i);
        REQUIRE(c != '.' || (i > 0 && i + 1 < len && text[i + 1] != '.'), E_FORMAT,
                "%s has an empty token at position %zu", what, i);
    }
    return OK;
}

bool subject_is_inbox(const char *text) {
    return strncmp(text, "_INBOX.", 7) == 0 || strncmp(text, "_R_.", 4) == 0;
}

FALLIBLE subject_check_reply(const char *text, const char *tenant) {
    static const char *const roles[] = {"worker", "coordinator", "operator", "dashboard"};
    TRY(subject_check_foreign(text, "reply_subject"));
    REQUIRE(strncmp(text, "_INBOX.", 7) == 0, E_FORMAT,
            "reply_subject \"%.100s\" is no inbox: it must begin with \"_INBOX.\"", text);
    const char *owner = text + 7, *rest = strchr(owner, '.');
    size_t len = rest ? (size_t)(rest - owner) : strlen(owner);
    for (size_t i = 0; i < COUNT_OF(roles); i++) {
        REQUIRE(strlen(roles[i]) != len || strncmp(owner, roles[i], len) != 0, E_FORMAT,
                "reply_subject \"%.100s\" is the inbox of a %s", text, roles[i]);
    }
    if (len == strlen("submitter") && strncmp(owner, "submitter", len) == 0) {
        size_t tenant_len = strlen(tenant);
        REQUIRE(rest && strncmp(rest + 1, tenant, tenant_len) == 0 && rest[1 + tenant_len] == '.',
                E_FORMAT, "reply_subject \"%.100s\" is not an inbox of tenant %s", text, tenant);
    }
    return OK;
}

bool subject_matches(const char *filter, const char *subject) {
    for (;;) {
        size_t f = strcspn(filter, "."), s = strcspn(subject, ".");
        if (s == 0) {
            return false;
        }
        if (f == 1 && filter[0] == '>') {
            return filter[1] == '\0';
        }
        bool any = f == 1 && filter[0] == '*';
        if (!any && (f != s || memcmp(filter, subject, f) != 0)) {
            return false;
        }
        filter += f;
        subject += s;
        if (!*filter || !*subject) {
            return !*filter && !*subject;
        }
        filter++;
        subject++;
    }
}
