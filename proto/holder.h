/* Whom a certificate names: its common name is a role and who holds it, "worker.w1", "submitter.acme.ada". What a role may do is in
 * node/cli/roles.h.
 *
 * Threads  any.
 * Errors   E_FORMAT when it is no role's name, with the rule.
 */
#pragma once
#include "proto/subjects.h"

enum role {
    ROLE_SUBMITTER,
    ROLE_WORKER,
    ROLE_COORDINATOR,
    ROLE_OPERATOR,
    ROLE_DASHBOARD,
    ROLES_COUNT
};
#define ROLE_WORDS "submitter|worker|coordinator|operator|dashboard"

struct role_holder {
    enum role role;
    char tenant[ID_BYTES_MAX + 1]; /* of a submitter, else "" */
    char name[ID_BYTES_MAX + 1];
};
/* X.509 allows a common name of 64 characters. */
enum { ROLE_TEXT_BYTES = 65 };
const char *role_word(enum role role);
/* "worker.w1", "submitter.acme.ada" and back. */
FALLIBLE role_holder_parse(struct role_holder *out, const char *text);
void role_holder_text(char out[ROLE_TEXT_BYTES], const struct role_holder *holder);
