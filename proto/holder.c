/* Names are short and few: roles are searched in order. */
#include "proto/holder.h"

#include <stdio.h>
#include <string.h>

static const char *const words[ROLES_COUNT] = {"submitter", "worker", "coordinator", "operator",
                                               "dashboard"};

const char *role_word(enum role role) {
    return words[role];
}

enum err role_holder_parse(struct role_holder *out, const char *text) {
    struct role_holder h = {0};
    const char *dot = strchr(text, '.');
    size_t len = dot ? (size_t)(dot - text) : strlen(text), role = 0;
    while (role < ROLES_COUNT && (strlen(words[role]) != len || strncmp(words[role], text, len))) {
        role++;
    }
    REQUIRE(role < ROLES_COUNT && dot, E_FORMAT,
            "\"%.80s\" is no role's name: want submitter.TENANT.USER, worker.NODE, "
            "coordinator.NAME, operator.NAME or dashboard.NAME",
            text);
    REQUIRE(strlen(text) < ROLE_TEXT_BYTES, E_FORMAT,
            "\"%.80s\" has %zu characters, a certificate's name at most %d", text, strlen(text),
            ROLE_TEXT_BYTES - 1);
    const char *name = dot + 1;
    h.role = (enum role)role;
    if (h.role == ROLE_SUBMITTER) {
        const char *second = strchr(name, '.');
        REQUIRE(second, E_FORMAT, "\"%s\" wants a tenant and a user: submitter.TENANT.USER", text);
        snprintf(h.tenant, sizeof h.tenant, "%.*s", (int)(second - name), name);
        TRY(id_check(h.tenant, "tenant"));
        name = second + 1;
    }
    snprintf(h.name, sizeof h.name, "%s", name);
    TRY(id_check(h.name, "name"));
    *out = h;
    return OK;
}

void role_holder_text(char out[ROLE_TEXT_BYTES], const struct role_holder *h) {
    char text[2 * ID_BYTES_MAX + 32];
    snprintf(text, sizeof text, "%s.%s%s%s", words[h->role], h->tenant, h->tenant[0] ? "." : "",
             h->name);
    size_t len = strnlen(text, ROLE_TEXT_BYTES - 1); /* no more, as it was parsed */
    memcpy(out, text, len);
    out[len] = 0;
}
