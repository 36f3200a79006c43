/* All reads together, then all writes: a round costs two round trips, whether it changes one record or two hundred. Records whose newest bytes
 * are kept in the backlog are not read.
 */
#include "node/coordinator/round.h"

#include "node/base/clock.h"
#include "node/base/mem.h"

static const size_t ROUND_BYTES_MAX = (size_t)16 << 20; /* of records in flight */

void round_done(struct round *r) {
    for (size_t i = 0; i < r->jobs_count; i++) {
        record_slot_done(&r->jobs[i].slot);
        if (r->jobs[i].packed.ptr) {
            mem_wipe(r->jobs[i].packed.ptr, r->jobs[i].packed.len);
        }
        mem_free(r->jobs[i].packed.ptr);
    }
    mem_free(r->jobs);
    mem_free(r->parts);
}

enum err round_init(struct round *r, struct coordinator *c) {
    *r = (struct round){.c = c};
    TRY(mem_new(&r->jobs, ROUND_PARTS_MAX, sizeof *r->jobs));
    return mem_new(&r->parts, ROUND_PARTS_MAX, sizeof *r->parts);
}

struct round_part *round_add(struct round *r, const struct part_view *part) {
    size_t j = 0;
    while (j < r->jobs_count && r->jobs[j].view != part->job) {
        j++;
    }
    if (r->parts_count == ROUND_PARTS_MAX ||
        (j == r->jobs_count && j > 0 && r->bytes + part->job->packed_bytes > ROUND_BYTES_MAX)) {
        return NULL;
    }
    if (j == r->jobs_count) {
        r->jobs[r->jobs_count++] = (struct round_job){.view = part->job};
        r->bytes += part->job->packed_bytes;
    }
    struct round_part *added = &r->parts[r->parts_count++];
    *added =
        (struct round_part){.job_idx = j, .idx = part->item.partition_idx, .request = SIZE_MAX};
    return added;
}

/* --- Reading --- */

static void ask_record(struct round *r, struct round_job *job) {
    struct job_view *view = job->view;
    struct subject bucket = kv_bucket_name(&r->c->space, "jobs");
    struct subject key = key_of_job(job_name_of(view));
    job->request = SIZE_MAX;
    if (view->packed.len > 0 &&
        record_unpack(&job->slot.record, bytes_of(view->packed.ptr, view->packed.len)) == OK) {
        job->slot.revision = view->revision;
        job->slot.loaded = true;
        return;
    }
    job->request = batch_count(r->c->batch);
    if (batch_kv_get(r->c->batch, bucket.text, key.text) != OK) {
        job->view = NULL;
    }
}

/* The watch may be behind, or the record gone: aged out, or lost with the server's storage. Then the view follows here, or no round would
 * ever get rid of it. */
static void follow_record(struct round *r, struct round_job *job, bool found) {
    struct coordinator *c = r->c;
    struct job_view *view = job->view;
    const struct record *record = &job->slot.record;
    bool older = found && job->slot.revision < view->revision;
    if (!found || (!older && !job_state_is_open(record->state))) {
        if (!found) {
            log_error("record.gone", "job=%s tenant=%s", view->job, view->tenant);
        }
        job->view = NULL;
        ending_forget(c, view, found && record->state == JOB_DONE);
    } else if (job->slot.revision > view->revision &&
               backlog_put(&job->view, &c->backlog, job_name_of(view), record, (struct bytes){0},
                           job->slot.revision, clock_ns()) != OK) {
        job->view = NULL;
    } else if (older) {
        job->view = NULL;
    }
}

static void take_record(struct round *r, struct round_job *job) {
    const struct batch_answer *a = batch_answer(r->c->batch, job->request);
    if (a->fault.code != OK ||
        (a->found && record_unpack(&job->slot.record, a->message.data) != OK)) {
        job->view = NULL;
        return;
    }
    job->slot.revision = a->found ? a->message.sequence : 0;
    job->slot.loaded = a->found;
    follow_record(r, job, a->found);
}

void round_read(struct round *r) {
    for (size_t i = 0; i < r->jobs_count; i++) {
        ask_record(r, &r->jobs[i]);
    }
    batch_wait(r->c->batch, 0);
    for (size_t i = 0; i < r->jobs_count; i++) {
        if (r->jobs[i].view && r->jobs[i].request != SIZE_MAX) {
            take_record(r, &r->jobs[i]);
        }
    }
    batch_clear(r->c->batch);
}

/* --- Writing --- */

static void change_records(struct round *r, round_change *change) {
    for (size_t i = 0; i < r->parts_count; i++) {
        struct round_part *part = &r->parts[i];
        struct round_job *job = &r->jobs[part->job_idx];
        part->moved =
            job->view && part->idx < job->view->parts_count &&
            change(&job->slot.record, r, part, &job->view->parts[part->idx]) == RECORD_MOVED;
    }
}

static bool has_moved(const struct round *r, size_t job_idx) {
    for (size_t i = 0; i < r->parts_count; i++) {
        if (r->parts[i].job_idx == job_idx && r->parts[i].moved) {
            return true;
        }
    }
    return false;
}

static void ask_write(struct round *r, struct round_job *job) {
    struct subject bucket = kv_bucket_name(&r->c->space, "jobs");
    struct subject key = key_of_job(job_name_of(job->view));
    job->request = batch_count(r->c->batch);
    if (record_pack(&job->packed, &job->slot.record) != OK ||
        batch_kv_write(r->c->batch, bucket.text, key.text,
                       bytes_of(job->packed.ptr, job->packed.len), job->slot.revision) != OK) {
        job->view = NULL;
    }
}

/* A job whose write was lost to somebody else, or whose fate is unknown, drops out of the round. */
static void take_write(struct round *r, struct round_job *job) {
    const struct batch_answer *a = batch_answer(r->c->batch, job->request);
    struct job_view *view = job->view;
    if (a->fault.code != OK || a->ack.outcome == PUBLISH_CONFLICT) {
        backlog_drop_record(&r->c->backlog, view); /* so that it is read the next time */
        job->view = NULL;
        return;
    }
    job->slot.revision = a->ack.sequence;
    if (backlog_put(&job->view, &r->c->backlog, job_name_of(view), &job->slot.record,
                    bytes_of(job->packed.ptr, job->packed.len), job->slot.revision,
                    clock_ns()) != OK) {
        job->view = NULL; /* and is gone from the backlog */
    }
}

void round_write(struct round *r, round_change *change) {
    change_records(r, change);
    for (size_t i = 0; i < r->jobs_count; i++) {
        struct round_job *job = &r->jobs[i];
        if (job->view && has_moved(r, i)) {
            ask_write(r, job);
        } else {
            job->view = NULL;
        }
    }
    batch_wait(r->c->batch, 0);
    for (size_t i = 0; i < r->jobs_count; i++) {
        if (r->jobs[i].view) {
            take_write(r, &r->jobs[i]);
        }
    }
    batch_clear(r->c->batch);
}
