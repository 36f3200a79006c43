/* Nine subjects, three answers. */
#include "node/transport/service.h"

#include <stdio.h>
#include <string.h>

#include "node/base/json.h"
#include "node/base/mem.h"
#include "proto/limits.h"
#include "tests/unit/transport/world.h"

static void add_data(void *ctx, struct text *json) {
    text_addf(json, "{\"depth\":%d}", *(int *)ctx);
}

static const struct cJSON *member(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    CHECK_MSG(item, "no member %s", key);
    return item;
}

/* What one subject answers; *answer is the caller's. */
static void ask(cJSON **answer, struct transport *t, const char *verb, const char *rest,
                const char *type) {
    struct message m = {0};
    char about[SUBJECT_BYTES_MAX];
    snprintf(about, sizeof about, "$SRV.%s%s", verb, rest);
    CHECK_OK(transport_request(&m, t, about, bytes_of(NULL, 0), 5 * S));
    CHECK_OK(json_parse(answer, m.data, about));
    message_done(&m);
    CHECK_STR(type, member(*answer, "type")->valuestring);
    CHECK_STR("tester", member(*answer, "name")->valuestring);
    CHECK_STR("1.2.3", member(*answer, "version")->valuestring);
    CHECK_STR("\"quoted\"", member(member(*answer, "metadata"), "k")->valuestring);
}

static void claim_nine_subjects(void) {
    static const char *const types[][2] = {{"PING", "io.nats.micro.v1.ping_response"},
                                           {"INFO", "io.nats.micro.v1.info_response"},
                                           {"STATS", "io.nats.micro.v1.stats_response"}};
    struct transport *t = enter(), *asker = world_connect();
    struct service *s = NULL;
    int depth = 7;
    char own[SUBJECT_BYTES_MAX], other[SUBJECT_BYTES_MAX];
    struct message m = {0};
    struct service_config config = {.name = "tester",
                                    .version = "1.2.3",
                                    .description = "tests",
                                    .endpoints = {{"one", "a.one"}, {"two", "a.two"}},
                                    .metadata = {{"k", "\"quoted\""}},
                                    .data = add_data,
                                    .ctx = &depth};
    CHECK_OK(service_open(&s, t, &config));
    CHECK_OK(transport_flush(t, S));
    snprintf(own, sizeof own, ".tester.%s", service_id(s));
    service_note(s, 1, 300, NULL);
    service_note(s, 1, 100, "E_RANGE");
    const char *const rests[] = {"", ".tester", own};
    for (size_t i = 0; i < 9; i++) {
        AUTO(json_free) cJSON *answer = NULL;
        ask(&answer, asker, types[i % 3][0], rests[i / 3], types[i % 3][1]);
        CHECK_STR(service_id(s), member(answer, "id")->valuestring);
        if (i % 3 == 0) {
            continue;
        }
        const cJSON *endpoints = member(answer, "endpoints");
        CHECK_EQ(2, cJSON_GetArraySize(endpoints));
        const cJSON *two = cJSON_GetArrayItem(endpoints, 1);
        CHECK_STR("a.two", member(two, "subject")->valuestring);
        if (i % 3 == 2) {
            CHECK_EQ(2, (int)member(two, "num_requests")->valuedouble);
            CHECK_EQ(1, (int)member(two, "num_errors")->valuedouble);
            CHECK_EQ(200, (int)member(two, "average_processing_time")->valuedouble);
            CHECK_STR("E_RANGE", member(two, "last_error")->valuestring);
            const cJSON *data = member(cJSON_GetArrayItem(endpoints, 0), "data");
            CHECK_EQ(7, (int)member(data, "depth")->valuedouble);
        }
    }
    snprintf(other, sizeof other, "$SRV.PING.somebody");
    CHECK(transport_request(&m, asker, other, bytes_of(NULL, 0), 200 * MS) != OK);
    service_close(&s);
    CHECK(transport_request(&m, asker, "$SRV.PING", bytes_of(NULL, 0), 200 * MS) != OK);
    CHECK_ERR(E_FORMAT, service_open(&s, t, &(struct service_config){.name = "a.b"}));
    leave(asker);
    leave(t);
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"the nine discovery subjects answer the three shapes", claim_nine_subjects},
    };
    int code = check_main(argc, argv, claims, COUNT_OF(claims));
    world_end();
    return code;
}
