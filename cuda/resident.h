/* A key in device memory, as the layout says where everything lies.
 *
 * Owner    the caller, to resident_drop. It keeps a reference to the key: points that are streamed stay in its file.
 * Threads  the loader's; a key may be loaded while another thread proves with others.
 * Errors   E_FORMAT for a key that cannot be proved with on a GPU, with the cure; E_LIMIT for too many coefficients; those of gpu.h.
 */
#pragma once
#include "node/groth16/backend.h"

#include "cuda/layout.h"
#include "cuda/loader.h"

struct backend_key {
    struct gpu_backend *backend; /* lent; the backend's to fill in */
    struct key *key;             /* shared (ref) */
    struct gpu_layout layout;
    char *memory; /* owned: device */
    struct gpu_matrix matrix[2];
    struct gpu_domain domain;
    struct load_times times;
    unsigned sift_rounds[KEY_POINTS_COUNT]; /* of MSMs over them: sample.h */
};
/* Returns when everything has arrived. */
FALLIBLE resident_load(struct backend_key **out, struct key *key, const struct gpu_layout *layout,
                       struct gpu_loader *loader);
void resident_drop(struct backend_key **key);
const struct gpu_group *resident_group(const struct gpu_layout *l, enum key_points which);
/* Bytes of L that stand for public wires, which the file leaves out. */
size_t resident_skipped_bytes(const struct backend_key *k, enum key_points which);
