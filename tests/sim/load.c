/* Each descriptor is made from a template per key; only names differ. A send that meets a full stream or a lost connection is repeated
 * under its message id.
 */
#include "tests/sim/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/base/clock.h"
#include "node/base/mem.h"
#include "node/transport/fleet.h"
#include "proto/body.h"

static const uint64_t PAUSE_NS = UINT64_C(50000000);
enum { SEND_TRIES = 200 };
const char *const sim_cases[SIM_KEYS] = {"bn128/mul", "bn128/nopub", "bn128/unused", "bn128/min"};

struct sender {
    struct load *load; /* lent */
    struct transport *link;
    pthread_t thread;
    bool runs;
    unsigned idx;
    struct fault fault;
};
struct load {
    struct subject_space space;
    uint64_t *sent_ns; /* lent */
    struct sha256 digests[SIM_KEYS];
    struct bytes_mut frames[SIM_KEYS];   /* owned */
    Bellows__V1__Body *bodies[SIM_KEYS]; /* owned: mem_free */
    struct load_plan plan;
    uint64_t started_ns;
    _Atomic uint64_t next, sent;
    struct sender senders[LOAD_THREADS];
};

unsigned load_tenant_of(uint64_t number) {
    unsigned turn = (unsigned)(number % LOAD_TURN);
    return turn < LOAD_LOUD ? 0 : 1 + turn - LOAD_LOUD;
}

bool load_number_of(uint64_t *number, const char *job_id) {
    char *end = NULL;
    if (job_id[0] != 's') {
        return false;
    }
    *number = strtoull(job_id + 1, &end, 10);
    return *end == 0;
}

static enum err make_template(struct load *l, unsigned idx) {
    AUTO(witness_close) struct witness w = {0};
    struct frame_layout layout;
    struct body_summary summary;
    struct file_map key = {0};
    char tail[128];
    snprintf(tail, sizeof tail, "%s/circuit.zkey", sim_cases[idx]);
    TRY(file_map_open(&key, check_vectors(tail)));
    enum err code = sha256_of(&l->digests[idx], key.bytes);
    file_map_close(&key);
    TRY(code);
    snprintf(tail, sizeof tail, "%s/witness.wtns", sim_cases[idx]);
    TRY(witness_open(&w, check_vectors(tail)));
    struct bytes data = bytes_of(w.values, w.count * SCALAR_BYTES);
    TRY(body_layout_of(&layout, &(struct frame_section){SECTION_WITNESS_RAW, w.count, data.len},
                       1));
    TRY(body_write_inline(&summary, &l->frames[idx], &layout, &data, JOB_INLINE_BYTES_MAX));
    struct body_place place = {.inline_frames = bytes_of(l->frames[idx].ptr, l->frames[idx].len)};
    return body_describe(&l->bodies[idx], &summary, place);
}

static enum err send_once(const struct load *l, struct transport *link, uint64_t number) {
    char job_id[32], tenant[16];
    unsigned key = (unsigned)(number / LOAD_TURN % SIM_KEYS);
    job_message m = BELLOWS__V1__JOB__INIT;
    Bellows__V1__Partition partition = BELLOWS__V1__PARTITION__INIT;
    Bellows__V1__Partition *partitions[JOB_PARTITIONS_MAX];
    struct bytes_mut packed = {0};
    struct publish_ack ack;
    snprintf(job_id, sizeof job_id, "s%llu", (unsigned long long)number);
    snprintf(tenant, sizeof tenant, "s%u", load_tenant_of(number));
    partition.body = l->bodies[key];
    m.version = WIRE_VERSION;
    m.job_id = job_id;
    m.tenant = tenant;
    m.key_digest = (ProtobufCBinaryData){SHA256_BYTES, (uint8_t *)(uintptr_t)l->digests[key].b};
    m.curve = (Bellows__V1__Curve)CURVE_BN254;
    m.priority = 2;
    m.generation = 1;
    m.submitted_unix_ms = clock_unix_ns() / 1000000;
    for (unsigned i = 0; i < l->plan.partitions; i++) {
        partitions[i] = &partition;
    }
    m.n_partitions = l->plan.partitions;
    m.partitions = partitions;
    struct job_name name = {tenant, job_id};
    struct subject subject = subject_job(&l->space, m.priority, l->digests[key].b, name);
    struct subject id = message_id_of_job(name, 1);
    TRY(job_pack(&packed, &m));
    enum err code = transport_publish(&ack, link, subject.text, bytes_of(packed.ptr, packed.len),
                                      &(struct publish_options){.message_id = id.text});
    mem_free(packed.ptr);
    return code;
}

static enum err send_job(struct load *l, struct transport *link, uint64_t number) {
    l->sent_ns[number] = clock_ns();
    enum err code = send_once(l, link, number);
    for (int n = 0; n < SEND_TRIES && (code == E_QUEUE || code == E_NET || code == E_TIMEOUT);
         n++) {
        clock_sleep_ns(PAUSE_NS);
        code = send_once(l, link, number);
    }
    TRY(code);
    atomic_fetch_add(&l->sent, 1);
    return OK;
}

static void *sender_main(void *ctx) {
    struct sender *s = ctx;
    struct load *l = s->load;
    for (;;) {
        uint64_t n = atomic_fetch_add(&l->next, 1), now_ns = clock_ns();
        if (n >= l->plan.count) {
            return NULL;
        }
        uint64_t due_ns = l->started_ns;
        if (l->plan.jobs_per_second > 0) {
            due_ns += (uint64_t)((double)n * 1e9 / l->plan.jobs_per_second);
        }
        if (due_ns > now_ns) {
            clock_sleep_ns(due_ns - now_ns);
        }
        enum err code = send_job(l, s->link, l->plan.first + n);
        if (code != OK) {
            s->fault = fault_of(code);
            return NULL;
        }
    }
}

enum err load_open(struct load **out, const char *url, uint64_t *sent_ns) {
    AUTO(load_close) struct load *l = NULL;
    TRY(mem_new(&l, 1, sizeof *l));
    l->sent_ns = sent_ns;
    TRY(subject_space_init(&l->space, NULL));
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        TRY(make_template(l, i));
    }
    for (unsigned i = 0; i < LOAD_THREADS; i++) {
        struct transport_options options = {.url = url, .name = "simulated submitter"};
        l->senders[i] = (struct sender){.load = l, .idx = i};
        TRY(transport_open(&l->senders[i].link, &options));
    }
    *out = TAKE(l);
    return OK;
}

enum err load_start(struct load *l, const struct load_plan *plan) {
    l->plan = *plan;
    l->started_ns = clock_ns();
    atomic_store(&l->next, 0);
    for (unsigned i = 0; i < LOAD_THREADS; i++) {
        struct sender *s = &l->senders[i];
        int rc = pthread_create(&s->thread, NULL, sender_main, s);
        REQUIRE(rc == 0, E_LIMIT, "no thread for a submitter: %s", strerror(rc));
        s->runs = true;
    }
    return OK;
}

uint64_t load_sent_count(const struct load *l) {
    return atomic_load(&l->sent);
}

void load_cut(struct load *l) {
    atomic_store(&l->next, l->plan.count);
}

enum err load_stop(struct load *l) {
    enum err code = OK;
    for (unsigned i = 0; i < LOAD_THREADS; i++) {
        struct sender *s = &l->senders[i];
        if (s->runs) {
            pthread_join(s->thread, NULL);
            s->runs = false;
        }
        code = code == OK && s->fault.code != OK ? fault_raise(&s->fault) : code;
    }
    return code;
}

void load_close(struct load **load) {
    struct load *l = *load;
    if (!l) {
        return;
    }
    IGNORE(load_stop(l));
    for (unsigned i = 0; i < LOAD_THREADS; i++) {
        transport_close(&l->senders[i].link);
    }
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        mem_free(l->bodies[i]);
        mem_free(l->frames[i].ptr);
    }
    mem_free_ptr(load);
}
