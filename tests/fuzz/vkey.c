/* Verifying keys, JSON and bellman: what was taken is written and read again, and comes out the same. */
#include <string.h>

#include "node/key/vkey.h"
#include "tests/fuzz/targets.h"

void fuzz_vkey(struct bytes input) {
    struct vkey vk, again;
    if (vkey_read_json(&vk, input, "fuzz.json") != OK) {
        return;
    }
    struct text json = {0};
    enum err e = vkey_write_json(&json, &vk);
    ASSERT(e == OK);
    e = vkey_read_json(&again, text_bytes(&json), "again.json");
    ASSERT(e == OK && again.public_count == vk.public_count);
    ASSERT(!memcmp(again.ic, vk.ic, ((size_t)vk.public_count + 1) * vk.curve->g1_bytes));
    text_free(&json);
    vkey_done(&again);
    vkey_done(&vk);
}

void fuzz_vk(struct bytes input) {
    struct vkey vk;
    if (vkey_read_bellman(&vk, curve_by_id(CURVE_BLS12_381), input, "fuzz.vk") == OK) {
        ASSERT(!g1_is_infinity(&vk.alpha1) && !g2_is_infinity(&vk.gamma2));
        vkey_done(&vk);
    }
}
