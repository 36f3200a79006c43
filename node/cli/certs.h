/* A private authority for one fleet: certificates for the server and for each role's holder, in one folder.
 *
 *   ca.pem ca.key            the authority; ca.key is what everything rests on, and belongs on no other machine
 *   server.pem server.key    the NATS server
 *   worker.w1.pem .key       a holder's; the name is what the server permits by (roles.h)
 *
 * Keys are EC P-256, made here and never read by anybody but their owner: files 0600, the folder 0700. A key is written before its
 * certificate, and both appear whole or not at all.
 *
 * Threads  one.
 * Errors   E_IO for files, E_USAGE for what is there already or missing, E_INTERNAL when OpenSSL fails.
 */
#pragma once
#include "node/cli/roles.h"

enum { CERTS_CA_DAYS = 3650, CERTS_DAYS = 365, CERTS_HOSTS_MAX = 32 };

struct certs_wish {
    const char *dir;
    uint64_t days;
    bool replace; /* a certificate of this name is there: make a new one, with a new key */
};
FALLIBLE certs_make_ca(const struct certs_wish *wish);
/* Valid for these host names and addresses. */
FALLIBLE certs_make_server(const struct certs_wish *wish, const char *const *hosts,
                           size_t hosts_count);
FALLIBLE certs_make_client(const struct certs_wish *wish, const struct role_holder *holder);

/* Whom the folder's certificates name, in order of name. *holders is the caller's: mem_free. */
FALLIBLE certs_holders(struct role_holder **holders, size_t *count, const char *dir);
/* Whose certificate it is. E_FORMAT when its common name is no role's, E_USAGE when it cannot be read. */
FALLIBLE certs_holder_of(struct role_holder *out, const char *cert_path);
/* Days until the certificate ends, one that has begun counted whole; 0 and less: it has ended. */
FALLIBLE certs_days_left(int *out, const char *cert_path);
