/* Dashboard: serves the built web page of deploy/dashboard on loopback, for `bellows dev`.
 *
 *     GET / /app.js /app.css /icon.svg    the page, as it was when it was opened
 *     GET /config.json                    {"server": "ws://127.0.0.1:PORT", "prefix": "bellows"}
 *
 * These names and no others: files are read once into memory and found by comparing whole names, so no path of a request ever reaches the
 * file system. Requests that name another host than loopback are refused, so a foreign page cannot have its own name point here.
 *
 * Owner    `bellows dev`.
 * Threads  one, of the HTTP library, from dashboard_serve() to dashboard_close(); it reads only.
 * Errors   E_IO when a file cannot be read or no port be had; E_LIMIT for a file above DASHBOARD_FILE_BYTES_MAX.
 */
#pragma once
#include "node/base/err.h"

struct dashboard; /* opaque */

enum { DASHBOARD_FILE_BYTES_MAX = 8 << 20, DASHBOARD_CLIENTS_MAX = 32 };

/* Where the page was built or installed: beside the running program (deploy/dashboard in a build's folder) or in ../share/bellows/dashboard. False:
 * it was not built. */
bool dashboard_find(char *out, size_t out_bytes);
/* Reads the page and takes a free port of 127.0.0.1, without answering yet. On OK *out is the caller's, to dashboard_close(). */
FALLIBLE dashboard_open(struct dashboard **out, const char *folder);
/* Answers from now on; pages connect to `server`, as "ws://127.0.0.1:40123". */
FALLIBLE dashboard_serve(struct dashboard *d, const char *server);
void dashboard_close(struct dashboard **d); /* for AUTO */
unsigned dashboard_port(const struct dashboard *d);
