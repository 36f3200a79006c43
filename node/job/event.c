/* Sent on the core, copied by the server into the telemetry stream. */
#include "node/job/event.h"

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "proto/fleet.pb-c.h"
#include "proto/unpack.h"

static char *lent(const char *text) {
    return (char *)(uintptr_t)(text ? text : "");
}

enum err job_event_pack(struct bytes_mut *packed, struct subject *subject,
                        const struct job_place *at, const struct job_event *event) {
    Bellows__V1__Event m = BELLOWS__V1__EVENT__INIT;
    const char *word = event->stage ? event->stage : job_state_name(event->state);
    m.version = WIRE_VERSION;
    m.tenant = lent(at->name.tenant);
    m.job_id = lent(at->name.job);
    m.generation = event->generation;
    m.epoch = event->epoch;
    m.state = (Bellows__V1__JobState)event->state;
    m.stage = lent(word);
    m.node = lent(event->lane.node);
    m.gpu = event->lane.gpu;
    m.partition_index = event->partition_index;
    m.reason = lent(event->reason);
    m.at_unix_ms = clock_unix_ns() / 1000000;
    m.error_name = lent(event->code == OK ? NULL : err_name(event->code));
    if (event->job) {
        m.key_digest = event->job->key_digest;
        m.priority = event->job->priority;
        m.partitions_count = (uint32_t)event->job->n_partitions;
        m.label = event->job->label;
        m.submitted_unix_ms = event->job->submitted_unix_ms;
    }
    TRY(message_pack(packed, &m, EVENT_BYTES_MAX, "event"));
    *subject = subject_event(at->space, at->name, word);
    return OK;
}

void job_event_send(const struct job_place *at, const struct job_event *event) {
    struct bytes_mut packed = {0};
    struct subject subject;
    if (job_event_pack(&packed, &subject, at, event) == OK) {
        IGNORE(transport_send(at->transport, subject.text, bytes_of(packed.ptr, packed.len)));
        mem_free(packed.ptr);
    }
}
