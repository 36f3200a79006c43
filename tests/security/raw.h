/* A NATS client of a few lines, over TLS: it sends what it is told, and shows what the server says of it, word for word.
 *
 * For what a well-behaved client never sends: a request whose answer is to go to somebody else's subject.
 *
 * Threads  the claim's.
 */
#pragma once
#include "tests/check/check.h"

#include <openssl/ssl.h>

enum { RAW_TEXT_BYTES = 64 * 1024 };

struct raw {
    SSL_CTX *context; /* owned */
    SSL *tls;         /* owned */
    int fd;
    char text[RAW_TEXT_BYTES]; /* what the server has said since the last request */
    unsigned asked;
};

/* Connects as the holder of DIR/NAME.pem; name NULL: without a certificate. Fails the claim unless the server takes it,
 * or, with `refused`, if it does. */
void raw_open(struct raw *out, unsigned port, const char *dir, const char *name, bool refused);
void raw_close(struct raw *r); /* for AUTO too */
/* Sends and waits until the server has dealt with it: r->text is all it said meanwhile. */
void raw_publish(struct raw *r, const char *subject, const char *reply, const char *body);
void raw_subscribe(struct raw *r, const char *subject);
/* Waits wait_ms for what comes by itself; it is appended. */
void raw_listen(struct raw *r, int wait_ms);
