/* The error's name travels, so its class and exit code are here what they were where it happened. */
#include "node/submit/outcome.h"

#include "node/base/mem.h"

enum err outcome_of(const result_message *r) {
    enum err code = E_INTERNAL;
    switch (r->status) {
    case BELLOWS__V1__STATUS__STATUS_OK:
        return OK;
    case BELLOWS__V1__STATUS__STATUS_CANCELLED:
        code = E_CANCELLED;
        break;
    case BELLOWS__V1__STATUS__STATUS_EXPIRED:
        code = E_DEADLINE;
        break;
    default:
        if (r->error) {
            (void)err_from_name(&code, r->error->name);
        }
    }
    FAIL(code, "job %s %s: %s", r->job_id, status_name(r->status),
         r->error ? r->error->detail : "no reason given");
}

static enum err read_part(struct proof *proof, struct scalar **publics, size_t *publics_count,
                          const result_message *r, size_t idx) {
    const struct curve *c = curve_by_id((enum curve_id)r->curve);
    ASSERT(idx < r->n_partitions);
    REQUIRE(c, E_FORMAT, "the result is on curve %d, which this program does not know",
            (int)r->curve);
    REQUIRE(r->partitions[idx]->proof, E_FORMAT, "the result holds no proof of partition %zu", idx);
    return proof_from_message(proof, publics, publics_count, c, r->partitions[idx]->proof);
}

enum err outcome_part_json(struct text *proof_text, struct text *public_text,
                           const result_message *r, size_t idx) {
    struct proof proof;
    AUTO(mem_free_ptr) struct scalar *publics = NULL;
    size_t publics_count = 0;
    TRY(read_part(&proof, &publics, &publics_count, r, idx));
    TRY(proof_write_json(proof_text, &proof));
    return public_write_json(public_text, publics, publics_count);
}

enum err outcome_part_bellman(uint8_t out[PROOF_BELLMAN_BYTES_MAX], size_t *len,
                              const result_message *r, size_t idx) {
    struct proof proof;
    AUTO(mem_free_ptr) struct scalar *publics = NULL;
    size_t publics_count = 0;
    TRY(read_part(&proof, &publics, &publics_count, r, idx));
    proof_write_bellman(out, &proof);
    *len = proof_bellman_bytes(proof.curve);
    return OK;
}
