/* Names of roles, and the rights that follow from them. */
#include "node/cli/roles.h"

#include <string.h>

#include "tests/check/check.h"

static void claim_names(void) {
    static const struct {
        const char *text;
        enum role role;
        const char *tenant, *name;
    } good[] = {
        {"worker.w1", ROLE_WORKER, "", "w1"},
        {"submitter.acme.ada", ROLE_SUBMITTER, "acme", "ada"},
        {"coordinator.C-1_x", ROLE_COORDINATOR, "", "C-1_x"},
        {"operator.op", ROLE_OPERATOR, "", "op"},
        {"dashboard.wall", ROLE_DASHBOARD, "", "wall"},
    };
    static const char *const bad[] = {
        "",          "worker",     "worker.",           "worker.a.b",      "worker.a b",
        "Worker.w1", "work.w1",    "submitter.acme",    "submitter..ada",  "submitter.acme.",
        "worker.*",  "operator.>", "submitter.a.b.c",   "dashboard.a/b",   "worker.\xc3\xbc",
        ".w1",       "nobody.w1",  "submitter.ac me.a", "worker.w1\nuser", "worker.\"",
    };
    struct role_holder h;
    char text[ROLE_TEXT_BYTES];
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        CHECK_OK(role_holder_parse(&h, good[i].text));
        CHECK_EQ(good[i].role, h.role);
        CHECK_STR(good[i].tenant, h.tenant);
        CHECK_STR(good[i].name, h.name);
        role_holder_text(text, &h);
        CHECK_STR(good[i].text, text);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        CHECK_MSG(role_holder_parse(&h, bad[i]) == E_FORMAT, "\"%s\" is accepted", bad[i]);
    }
    char longest[80] = "worker.";
    memset(longest + 7, 'x', 57);
    CHECK_OK(role_holder_parse(&h, longest)); /* 64 characters: all that X.509 allows */
    longest[64] = 'x';
    CHECK_ERR(E_FORMAT, role_holder_parse(&h, longest));
}

static bool has_line(const struct text *t, const char *line) {
    size_t len = strlen(line);
    for (const char *at = t->ptr; at && (at = strstr(at, line)); at += len) {
        if ((at == t->ptr || at[-1] == '\n') && at[len] == '\n') {
            return true;
        }
    }
    return false;
}

static void claim_rights(void) {
    struct role_holder holders[3];
    struct role_fleet fleet = {.holders = holders, .holders_count = 3, .lanes_count = 2};
    AUTO(text_free) struct text worker = {0}, submitter = {0}, keys = {0}, accounts = {0};
    CHECK_OK(subject_space_init(&fleet.space, "farm"));
    CHECK_OK(role_holder_parse(&holders[0], "submitter.acme.ada"));
    CHECK_OK(role_holder_parse(&holders[1], "submitter.acme.bea"));
    CHECK_OK(role_holder_parse(&holders[2], "worker.w1"));
    role_publishes(&worker, &fleet, &holders[2]);
    CHECK_OK(text_done(&worker));
    CHECK(has_line(&worker, "$JS.ACK.FARM_LANES.L_w1_0.>")); /* each of its lanes, no more */
    CHECK(has_line(&worker, "$JS.ACK.FARM_LANES.L_w1_1.>"));
    CHECK(!has_line(&worker, "$JS.ACK.FARM_LANES.L_w1_2.>"));
    CHECK(has_line(&worker, "$JS.API.DIRECT.GET.OBJ_farm-in-acme"));
    CHECK(has_line(&worker, "_INBOX.worker.w1.>"));
    CHECK(!strchr(worker.ptr, '{'));
    role_publishes(&submitter, &fleet, &holders[0]);
    CHECK_OK(text_done(&submitter));
    CHECK(has_line(&submitter, "farm.job.*.*.acme.*"));
    CHECK(!has_line(&submitter, "$O.farm-keys.>"));
    fleet.tenants_push_keys = true;
    role_publishes(&keys, &fleet, &holders[0]);
    CHECK_OK(text_done(&keys));
    CHECK(has_line(&keys, "$O.farm-keys.>"));
    role_accounts(&accounts, &fleet);
    CHECK_OK(text_done(&accounts));
    const char *tenant = strstr(accounts.ptr, "\n  \"farm-tenant-acme\": {");
    CHECK(tenant &&
          !strstr(tenant + 1, "\n  \"farm-tenant-acme\": {")); /* one for both of its users */
    CHECK(strstr(tenant, "CN=submitter.acme.ada") && strstr(tenant, "CN=submitter.acme.bea"));
}

int main(int argc, char **argv) {
    static const struct check_claim claims[] = {
        {"a role's name is role.name, a submitter's role.tenant.user, and nothing else",
         claim_names},
        {"rights hold the holder's own names and no others", claim_rights},
    };
    return check_main(argc, argv, claims, COUNT_OF(claims));
}
