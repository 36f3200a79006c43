/* Key files of a node: fetched by digest, kept on disk, opened for whoever needs them.
 *
 *   bellows-keys (object bucket) ──fetch──▶ DIR/keys/<digest>.part ──digest right──▶ DIR/keys/<digest> ──open──▶ struct key
 *
 * A key has no name but its digest, so a changed key is another key. What lies in the folder is trusted only after its digest was
 * computed in this process (or remembered for the unchanged file): a file that was cut, or left empty by a crash, is removed and
 * fetched again. Lanes of one node share a folder; a lock file per key lets one fetch while the others wait. Keys that nobody used
 * for longest leave the disk first when the folder outgrows its limit.
 *
 * A key that was pushed in our own layout is checked, mapped and used as it came.
 *
 * With `native` a .zkey is turned into our own layout once, DIR/keys/<digest>.native, which takes its place: it is mapped and used as
 * it lies, and a later start neither parses nor hashes it again while the file is unchanged.
 *
 * Every point of a large key takes minutes to check, and a proof under a key with a bad point fails its own check anyway: so the points
 * are looked at when there is time (keyfiles_check_idle), or when such a proof has failed (keyfiles_check). A key that was found bad is
 * refused from then on, with the point's name, instead of blaming witness or machine.
 *
 * Owner    the lane.
 * Threads  keyfiles_get one at a time, the checks one at a time; keyfiles_list and keyfiles_bytes any.
 * Errors   E_RANGE: no such key in the fleet, with the command that registers it; E_IO, E_NET, E_TIMEOUT: could not be fetched or
 *          kept; those of key_open and key_check for a key that is not sound.
 */
#pragma once
#include "node/key/check.h"
#include "node/transport/transport.h"
#include "proto/subjects.h"

struct keyfiles;

struct keyfiles_options {
    const char *dir;        /* made if it is not there */
    uint64_t bytes_max;     /* of the folder; 0: no limit. A single larger key is E_LIMIT */
    bool allow_insecure;    /* gamma = delta */
    unsigned check_threads; /* for key_check; 0: all usable cores */
    bool native;            /* keep .zkeys in the native layout, see node/key/native.h */
};
FALLIBLE keyfiles_open(struct keyfiles **out, const struct keyfiles_options *options);
void keyfiles_close(struct keyfiles **k);

struct keyfile_times { /* 0 where nothing had to be done */
    uint64_t fetch_ns, fetch_bytes, open_ns;
};
/* *out is the caller's: key_unref. Fetches over `bulk` when the folder has not got it; E_CANCELLED when *cancel (may be NULL) is set
 * meanwhile. */
FALLIBLE keyfiles_get(struct key **out, struct keyfile_times *times, struct keyfiles *k,
                      const struct bulk_links *bulk, const struct subject_space *space,
                      const struct sha256 *digest, const _Atomic int *cancel);
/* Points on the curve and in the subgroup, once per digest. Signs of life go to *progress_ns (may be NULL). */
FALLIBLE keyfiles_check(struct keyfiles *k, struct key *key, _Atomic uint64_t *progress_ns);
/* An opened key whose points nobody has looked at in this process; false: none. *key is the caller's. */
bool keyfiles_next_unchecked(struct key **key, struct sha256 *digest, struct keyfiles *k);
/* The same check on the calling thread alone, at `pace` (key_check_paced); E_CANCELLED when that ends it. */
FALLIBLE keyfiles_check_idle(struct key_report *report, struct keyfiles *k, struct key *key,
                             key_pace *pace, void *pace_ctx);
/* Digests of the keys on disk, at most `digests_max`; returns how many. */
size_t keyfiles_list(struct sha256 *digests, size_t digests_max, struct keyfiles *k);
uint64_t keyfiles_bytes(struct keyfiles *k); /* of the keys on disk */
