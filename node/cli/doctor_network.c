/* The way to the fleet, step by step; a step that fails ends the way, as the next ones stand on it.
 *
 *   address ─ greeting (version, limits, JetStream: one line that every server sends first) ─ login ─ round trip ─ fleet (lease) ─ clock
 *   ─ role (each subject of the role's list that can be tried without doing anything: listening, and reading)
 */
#include "node/base/clock.h"
#include "node/base/json.h"
#include "node/cli/certs.h"
#include "node/cli/client.h"
#include "node/cli/doctor.h"
#include "proto/unpack.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char PART[] = "network";
enum {
    GREETING_BYTES_MAX = 32 * 1024,
    GREETING_MS = 3000,
    PAYLOAD_LEAST = FRAME_RAW_BYTES_MAX + FRAME_HEADER_BYTES_MAX + 4096,
    CERT_SOON_DAYS = 30,
    TRIPS = 9,
    URL_BYTES = 512
};
static const uint64_t LOGIN_NS = UINT64_C(2000000000);
static const uint64_t TRIP_SLOW_NS = UINT64_C(20000000);
static const uint64_t REFUSAL_NS = UINT64_C(500000000);
static const uint64_t CLOCK_WAIT_NS = UINT64_C(3000000000);
static const uint64_t CLOCK_LOOK_NS = UINT64_C(20000000);

struct way {
    struct findings *f;          /* lent */
    const struct config *config; /* lent */
    char url[URL_BYTES];         /* the first of the servers */
    struct subject_space space;
    struct transport *link; /* owned */
    struct role_holder holder;
    bool has_role;
};

/* --- Greeting --- */

static bool split_url(char host[256], char port[16], const char *url) {
    const char *at = strstr(url, "://"), *end;
    at = at ? at + 3 : url;
    end = strrchr(at, '@');
    at = end ? end + 1 : at;
    size_t len;
    if (at[0] == '[') {
        at++;
        len = strcspn(at, "]");
        end = at + len + (at[len] == ']');
    } else {
        len = strcspn(at, ":/");
        end = at + len;
    }
    snprintf(host, 256, "%.*s", (int)len, at);
    snprintf(port, 16, "%.*s", *end == ':' ? (int)strcspn(end + 1, "/") : 4,
             *end == ':' ? end + 1 : "4222");
    return host[0] != 0;
}

static int dial(const struct addrinfo *a) {
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    int error = 0;
    socklen_t len = sizeof error;
    if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
        error = errno;
        if (error == EINPROGRESS) {
            error = poll(&ready, 1, GREETING_MS) == 1 ? 0 : ETIMEDOUT;
            if (error == 0) {
                (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
            }
        }
        if (error) {
            close(fd);
            errno = error;
            return -1;
        }
    }
    return fd;
}

/* "INFO {…}\r\n". */
static enum err read_greeting(cJSON **out, int fd) {
    char text[GREETING_BYTES_MAX];
    size_t len = 0;
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    while (len + 1 < sizeof text && !memchr(text, '\n', len)) {
        ssize_t got =
            poll(&ready, 1, GREETING_MS) == 1 ? read(fd, text + len, sizeof text - 1 - len) : 0;
        REQUIRE(got > 0, E_NET, "it says nothing");
        len += (size_t)got;
    }
    text[len] = 0;
    REQUIRE(!strncmp(text, "INFO ", 5), E_NET, "what answers there is no NATS server");
    return json_parse(out, bytes_of(text + 5, strcspn(text + 5, "\r\n")), "greeting");
}

static enum err greet(cJSON **out, const char *url) {
    char host[256], port[16];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    REQUIRE(split_url(host, port, url), E_USAGE, "%.200s is no address of a server", url);
    int rc = getaddrinfo(host, port, &hints, &found);
    REQUIRE(rc == 0, E_NET, "the name %s is not known here: %s", host, gai_strerror(rc));
    int fd = -1;
    for (struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
        fd = dial(a);
    }
    int cause = errno;
    freeaddrinfo(found);
    REQUIRE(fd >= 0, E_NET, "%s port %s: %s", host, port, strerror(cause));
    enum err code = read_greeting(out, fd);
    close(fd);
    return code;
}

static const char *text_of(const cJSON *info, const char *field) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(info, field);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static void judge_greeting(struct findings *f, const cJSON *info) {
    const char *version = text_of(info, "version");
    unsigned major = 0, minor = 0;
    bool known = sscanf(version, "%u.%u", &major, &minor) == 2;
    bool old = known && (major < 2 || (major == 2 && minor < 9));
    finding_add(f, PART, "server", old ? FINDING_BAD : FINDING_GOOD,
                "nats-server %.40s, named %.60s", version, text_of(info, "server_name"));
    if (old) {
        finding_cure(f, "update it to 2.9 or later: records are read by its direct get");
    }
    bool jetstream = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(info, "jetstream"));
    finding_add(f, PART, "jetstream", jetstream ? FINDING_GOOD : FINDING_BAD,
                jetstream ? "on" : "off: nothing can be stored");
    if (!jetstream) {
        finding_cure(f, "a jetstream block in its configuration, as in deploy/nats, or -js");
    }
    const cJSON *payload = cJSON_GetObjectItemCaseSensitive(info, "max_payload");
    double bytes = cJSON_IsNumber(payload) ? payload->valuedouble : 0;
    bool small = bytes < PAYLOAD_LEAST;
    finding_add(f, PART, "max_payload", small ? FINDING_BAD : FINDING_GOOD,
                "%.1f MiB; a frame of a body needs %.1f", bytes / 0x1p20,
                (double)PAYLOAD_LEAST / 0x1p20);
    if (small) {
        finding_cure(f, "max_payload: 8MB in the server's configuration");
    }
}

/* --- Login --- */

static void judge_certificate(struct way *w) {
    int days = 0;
    if (!w->config->tls_cert[0]) {
        finding_add(w->f, PART, "role", FINDING_NOTE,
                    "no certificate: the server must let everybody do everything");
        finding_cure(w->f, "fine on one machine; for more, deploy/SECURITY.md");
        return;
    }
    if (certs_days_left(&days, w->config->tls_cert) != OK) {
        finding_add(w->f, PART, "certificate", FINDING_BAD, "%s", err_detail());
        finding_cure(w->f, "tls_cert names a certificate that `bellows certs issue` made");
        return;
    }
    bool soon = days < CERT_SOON_DAYS;
    finding_add(w->f, PART, "certificate",
                days <= 0 ? FINDING_BAD
                : soon    ? FINDING_WARNING
                          : FINDING_GOOD,
                "good for %d more days", days > 0 ? days : 0);
    if (soon) {
        finding_cure(w->f, "bellows certs issue DIR NAME --replace, then restart what uses it");
    }
}

static bool log_in(struct way *w) {
    struct transport_options options = client_transport_options(w->config);
    options.url = w->url;
    options.name = "bellows doctor";
    options.request_wait_ns = LOGIN_NS;
    options.send_asap = true;
    enum err code = transport_open(&w->link, &options);
    finding_add(w->f, PART, "login", code == OK ? FINDING_GOOD : FINDING_BAD, "%s",
                code == OK ? "the server lets us in" : err_detail());
    if (code != OK) {
        finding_cure(w->f, "tls_ca, tls_cert and tls_key as deploy/SECURITY.md says; the name must "
                           "stand in the server's accounts.conf");
    }
    return code == OK;
}

static int by_size(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void judge_trip(struct way *w) {
    uint64_t ns[TRIPS];
    for (size_t i = 0; i < TRIPS; i++) {
        uint64_t start_ns = clock_ns();
        if (transport_flush(w->link, LOGIN_NS) != OK) {
            finding_add(w->f, PART, "round trip", FINDING_BAD, "%s", err_detail());
            return;
        }
        ns[i] = clock_ns() - start_ns;
    }
    qsort(ns, TRIPS, sizeof ns[0], by_size);
    bool slow = ns[TRIPS / 2] > TRIP_SLOW_NS;
    finding_add(w->f, PART, "round trip", slow ? FINDING_WARNING : FINDING_GOOD,
                "%.2f ms, at most %.2f of %d", (double)ns[TRIPS / 2] / 1e6,
                (double)ns[TRIPS - 1] / 1e6, TRIPS);
    if (slow) {
        finding_cure(w->f, "a NATS server nearer to the nodes: each job takes a dozen round trips");
    }
}

/* --- Fleet and clock --- */

static enum err read_lease(struct kv_entry *out, bool *found, struct way *w) {
    struct subject bucket = kv_bucket_name(&w->space, "lead");
    return kv_get(out, found, w->link, bucket.text, "leader");
}

/* The lease is written each second, and the server notes when: seen just after that, it tells the server's time. */
static void judge_clock(struct way *w, uint64_t revision) {
    for (uint64_t start_ns = clock_ns(); clock_ns() - start_ns < CLOCK_WAIT_NS;) {
        AUTO(kv_entry_done) struct kv_entry lease = {0};
        bool found = false;
        if (read_lease(&lease, &found, w) == OK && found && lease.revision != revision) {
            doctor_ahead(w->f, ((double)clock_unix_ns() - (double)lease.time_unix_ns) / 1e9);
            return;
        }
        clock_sleep_ns(CLOCK_LOOK_NS);
    }
    finding_add(w->f, PART, "clock", FINDING_NOTE, "not compared: no coordinator renews its lease");
}

static void judge_fleet(struct way *w) {
    AUTO(kv_entry_done) struct kv_entry lease = {0};
    AUTO(message_free) Bellows__V1__Lease *m = NULL;
    bool found = false;
    enum err code = read_lease(&lease, &found, w);
    if (code != OK) {
        finding_add(w->f, PART, "fleet", FINDING_BAD, "no fleet with prefix %s: %.300s",
                    w->space.prefix, err_detail());
        finding_cure(w->f, "start `bellows coordinator`, or give its --prefix");
        return;
    }
    if (!found || message_unpack(&m, &bellows__v1__lease__descriptor, lease.value, LEASE_BYTES_MAX,
                                 "lease") != OK) {
        finding_add(w->f, PART, "fleet", FINDING_BAD, "no coordinator leads: jobs wait");
        finding_cure(w->f, "start `bellows coordinator`; its log says why it does not lead");
        return;
    }
    finding_add(w->f, PART, "fleet", FINDING_GOOD, "%.100s leads, term %" PRIu64, m->holder,
                m->term);
    judge_clock(w, lease.revision);
}

/* --- Role --- */

/* What the server refuses it says by the way, and a thread of the library hears it a moment later. */
static uint64_t refusals(struct way *w, uint64_t enough) {
    struct transport_health health = {0};
    IGNORE(transport_flush(w->link, LOGIN_NS));
    for (uint64_t start_ns = clock_ns(); clock_ns() - start_ns < REFUSAL_NS;) {
        transport_health(&health, w->link);
        if (health.refused_count >= enough) {
            break;
        }
        clock_sleep_ns(CLOCK_LOOK_NS);
    }
    return health.refused_count;
}

/* Reading and listening; a reading request without its body is answered with an error, which is permission enough. Anything else would
 * do something. */
static size_t try_all(struct way *w, const struct text *lines, bool publish) {
    size_t tried = 0;
    const char *at = lines->ptr;
    for (const char *end; at && (end = strchr(at, '\n')); at = end + 1) {
        char subject[400];
        AUTO(subscription_close) struct subscription *sub = NULL;
        snprintf(subject, sizeof subject, "%.*s", (int)(end - at), at);
        bool reads = !strncmp(subject, "$JS.API.DIRECT.GET.", 19) && !strpbrk(subject, "*>");
        if (publish && reads) {
            tried += transport_send(w->link, subject, bytes_of(NULL, 0)) == OK;
        } else if (!publish) {
            tried += transport_subscribe(&sub, w->link, subject, NULL) == OK;
        }
    }
    return tried;
}

static void judge_role(struct way *w) {
    AUTO(text_free) struct text publishes = {0}, subscribes = {0};
    AUTO(subscription_close) struct subscription *everything = NULL;
    struct role_fleet fleet = {
        .space = w->space, .holders = &w->holder, .holders_count = 1, .lanes_count = 1};
    struct transport_health health;
    role_publishes(&publishes, &fleet, &w->holder);
    role_subscribes(&subscribes, &fleet, &w->holder);
    size_t tried = try_all(w, &publishes, true) + try_all(w, &subscribes, false);
    uint64_t refused = refusals(w, UINT64_MAX);
    transport_health(&health, w->link);
    if (refused == 0) {
        finding_add(w->f, PART, "permissions", FINDING_GOOD,
                    "%s: all %zu rights that can be tried are there", role_word(w->holder.role),
                    tried);
    } else {
        finding_add(w->f, PART, "permissions", FINDING_BAD,
                    "%s: %" PRIu64 " of %zu rights are refused, last: %.200s",
                    role_word(w->holder.role), refused, tried, health.last_error);
        finding_cure(w->f, "bellows certs accounts, and reload the server; same --prefix on both?");
    }
    if (transport_subscribe(&everything, w->link, ">", NULL) == OK &&
        refusals(w, refused + 1) == refused) {
        finding_add(w->f, PART, "accounts", FINDING_BAD,
                    "the server lets this role listen to everything: the roles are not in force");
        finding_cure(w->f, "include accounts.conf in the server's configuration");
    }
}

/* The certificate's common name is the inbox prefix behind "_INBOX.". */
static void find_role(struct way *w) {
    char inbox[TRANSPORT_INBOX_BYTES];
    transport_inbox(inbox, w->link);
    char *nuid = strrchr(inbox, '.');
    *nuid = 0;
    w->has_role = strlen(inbox) > 7 && role_holder_parse(&w->holder, inbox + 7) == OK;
}

static void walk(struct way *w) {
    AUTO(json_free) cJSON *info = NULL;
    enum err code = greet(&info, w->url);
    if (code != OK) {
        finding_add(w->f, PART, "server", FINDING_BAD, "no server at %.200s: %.180s", w->url,
                    err_detail());
        finding_cure(w->f, "start it, or name it with --server or BELLOWS_SERVER");
        return;
    }
    judge_greeting(w->f, info);
    judge_certificate(w);
    if (!log_in(w)) {
        return;
    }
    find_role(w);
    judge_trip(w);
    judge_fleet(w);
    if (w->has_role) {
        judge_role(w);
    }
}

void doctor_network(struct findings *f, const struct config *config) {
    struct way w = {.f = f, .config = config};
    client_server(w.url, sizeof w.url, config);
    w.url[strcspn(w.url, ",")] = 0;
    if (subject_space_init(&w.space, config->prefix) != OK) {
        finding_add(f, PART, "prefix", FINDING_BAD, "%s", err_detail());
        return;
    }
    walk(&w);
    transport_close(&w.link);
}
