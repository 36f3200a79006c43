/* JSON or not is told by the first character, bellman's verifying key by its length; so a proving key does where a verifying key is
 * asked for. */
#include "node/cli/statement.h"

#include <string.h>

#include "node/base/file.h"
#include "node/base/json.h"
#include "node/base/mem.h"
#include "node/key/key.h"

static bool looks_like_json(struct bytes data) {
    size_t i = 0;
    while (i < data.len && strchr(" \t\r\n", data.ptr[i]) && data.ptr[i]) {
        i++;
    }
    return i < data.len && (data.ptr[i] == '{' || data.ptr[i] == '[' || data.ptr[i] == 0xef);
}

enum err statement_vkey(struct vkey *out, const char *path, bool allow_insecure) {
    AUTO(file_map_close) struct file_map map = {0};
    TRY(file_map_open_small(&map, path, JSON_BYTES_MAX));
    if (looks_like_json(map.bytes)) {
        TRY(vkey_read_json(out, map.bytes, map.path));
    } else if (vkey_is_bellman(map.bytes)) {
        TRY(vkey_read_bellman(out, curve_by_id(CURVE_BLS12_381), map.bytes, map.path));
    } else {
        REQUIRE(strcmp(path, "-") != 0, E_FORMAT,
                "standard input is not a verification key in JSON; a proving key must be a file");
        AUTO(key_unref) struct key *key = NULL;
        TRY(key_open(&key, path, (struct key_options){.allow_insecure = true}));
        TRY(vkey_copy(out, key_vkey(key)));
        TRY(vkey_check(out));
    }
    return allow_insecure ? OK : vkey_check_secure(out, map.path);
}

enum err statement_read(struct statement *s, const struct curve *curve, bool bellman) {
    AUTO(file_map_close) struct file_map public_map = {0};
    AUTO(file_map_close) struct file_map proof_map = {0};
    TRY(file_map_open_small(&public_map, s->public_path, JSON_BYTES_MAX));
    TRY(public_read_json(&s->publics, &s->publics_count, curve, public_map.bytes, public_map.path));
    TRY(file_map_open_small(&proof_map, s->proof_path, JSON_BYTES_MAX));
    if (bellman) {
        return proof_read_bellman(&s->proof, curve, proof_map.bytes, proof_map.path);
    }
    return proof_read_json(&s->proof, curve, proof_map.bytes, proof_map.path);
}

void statement_done(struct statement *s) {
    mem_free(s->publics);
    s->publics = NULL;
}
