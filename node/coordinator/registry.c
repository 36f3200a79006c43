/* What the key registry tells of the keys that open jobs are under: from a key's size `plan` says how much memory a CPU lane needs for it
 * at the least, and about how long a job takes until lanes have shown it. Looked at once for each key; one that is not registered
 * (yet) again after a while.
 */
#include <string.h>

#include "node/base/clock.h"
#include "node/coordinator/work.h"
#include "node/cpu/cpu.h"
#include "proto/fleet.pb-c.h"
#include "proto/unpack.h"

enum { LOOKS = 16 /* keys in one tick */ };
static const uint64_t AGAIN_NS = UINT64_C(10000000000);

/* The shape that a registered key must have. */
static bool shape_of(struct key_shape *out, const Bellows__V1__KeyRecord *m) {
    bool native = !strcmp(m->format, "native");
    if (m->domain_size == 0 || (m->domain_size & (m->domain_size - 1)) ||
        m->wires_count <= m->public_count) {
        return false;
    }
    *out = (struct key_shape){
        .curve = (enum curve_id)m->curve,
        .format = native ? KEY_FORMAT_NATIVE : KEY_FORMAT_ZKEY,
        .h_basis = H_COSET_LAGRANGE, /* or powers: as large and as long */
        .wires_count = m->wires_count,
        .public_count = m->public_count,
        .domain_size = m->domain_size,
        .domain_log2 = (unsigned)__builtin_ctzll(m->domain_size),
        .terms_count = {m->terms_a_count, m->terms_b_count},
        .points_count = {[KEY_A] = m->wires_count,
                         [KEY_B1] = m->wires_count,
                         [KEY_B2] = m->wires_count,
                         [KEY_L] = m->wires_count - m->public_count - 1,
                         [KEY_H] = m->domain_size},
        .file_bytes = m->file_bytes,
    };
    return true;
}

static void read_key(struct key_view *key, struct bytes value) {
    AUTO(message_free) Bellows__V1__KeyRecord *m = NULL;
    struct key_shape shape;
    struct plan plan;
    if (message_unpack(&m, &bellows__v1__key_record__descriptor, value, KEY_RECORD_BYTES_MAX,
                       "key record") == OK &&
        shape_of(&shape, m) && cpu_plan(&plan, &shape, 1, NULL) == OK) {
        key->need_bytes = plan.host_bytes + plan.pinned_bytes;
        key->guess_ns = plan.expected_ns;
    }
}

void registry_look(struct coordinator *c) {
    struct subject bucket = kv_bucket_name(&c->space, "keys");
    size_t asked[LOOKS], count = 0;
    uint64_t now_ns = clock_ns();
    for (size_t i = 0; i < c->estimates.keys_count && count < LOOKS; i++) {
        struct key_view *key = &c->estimates.keys[i];
        char hex[SHA256_HEX_BYTES];
        if (key->users == 0 || key->ask_at_ns > now_ns) {
            continue;
        }
        sha256_hex(hex, &key->digest);
        key->ask_at_ns = now_ns + AGAIN_NS;
        if (batch_kv_get(c->batch, bucket.text, hex) == OK) {
            asked[count++] = i;
        }
    }
    if (count == 0) {
        return;
    }
    batch_wait(c->batch, 0);
    for (size_t i = 0; i < count; i++) {
        const struct batch_answer *a = batch_answer(c->batch, i);
        if (a->fault.code == OK && a->found) {
            c->estimates.keys[asked[i]].ask_at_ns = UINT64_MAX;
            read_key(&c->estimates.keys[asked[i]], a->message.data);
        }
    }
    batch_clear(c->batch);
}
