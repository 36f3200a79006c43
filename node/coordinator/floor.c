/* The oldest open records are named, so that one job that stays for hours holds up nothing. Cost: a walk over the open jobs. */
#include "node/coordinator/floor.h"

#include <string.h>

#include "node/base/mem.h"
#include "proto/unpack.h"

static void bytes_free(struct bytes_mut *b) {
    mem_free(b->ptr);
}

enum err floor_read(Bellows__V1__RecordFloor **out, struct transport *t,
                    const struct subject_space *space) {
    struct subject bucket = kv_bucket_name(space, "jobs");
    AUTO(kv_entry_done) struct kv_entry entry = {0};
    bool found = false;
    TRY(kv_get(&entry, &found, t, bucket.text, FLOOR_KEY));
    return found ? message_unpack(out, &bellows__v1__record_floor__descriptor, entry.value,
                                  MESSAGE_BYTES_MAX, "floor of the records")
                 : OK;
}

struct oldest { /* sorted; one more than can be named */
    const struct job_view *jobs[FLOOR_NAMED_MAX + 1];
    size_t count;
};

static void put(struct oldest *o, const struct job_view *job) {
    size_t at = o->count;
    if (at == COUNT_OF(o->jobs)) {
        if (o->jobs[--at]->revision <= job->revision) {
            return;
        }
    } else {
        o->count++;
    }
    for (; at > 0 && o->jobs[at - 1]->revision > job->revision; at--) {
        o->jobs[at] = o->jobs[at - 1];
    }
    o->jobs[at] = job;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

enum err floor_write(struct transport *t, const struct subject_space *space,
                     const struct backlog *b, uint64_t read, uint64_t clean) {
    Bellows__V1__RecordFloor m = BELLOWS__V1__RECORD_FLOOR__INIT;
    struct oldest oldest = {.count = 0};
    struct subject names[FLOOR_NAMED_MAX], bucket = kv_bucket_name(space, "jobs");
    char *name_ptrs[FLOOR_NAMED_MAX];
    AUTO(bytes_free) struct bytes_mut packed = {0};
    uint64_t revision;
    for (size_t i = 0; i < b->count; i++) {
        put(&oldest, b->jobs[i]);
    }
    m.version = WIRE_VERSION;
    m.revision = least(read, clean) + 1;
    if (oldest.count == COUNT_OF(oldest.jobs)) {
        m.revision = least(m.revision, oldest.jobs[FLOOR_NAMED_MAX]->revision);
    }
    for (size_t i = 0; i < oldest.count && oldest.jobs[i]->revision < m.revision; i++) {
        names[i] = key_of_job(job_name_of(oldest.jobs[i]));
        name_ptrs[m.n_open_below++] = names[i].text;
    }
    m.open_below = name_ptrs;
    TRY(message_pack(&packed, &m, MESSAGE_BYTES_MAX, "floor of the records"));
    return kv_put(&revision, t, bucket.text, FLOOR_KEY, bytes_of(packed.ptr, packed.len));
}
