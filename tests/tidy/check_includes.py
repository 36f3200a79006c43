"""The include law: a file includes only from its own folder or a lower one, and names the file from the root."""

import re

from tree import C_LIKE, line_of

NAME = "a file includes only from its own folder or a lower one"

# Lower first; folders of one line do not see each other, except as ALSO says.
LAYERS = [
    {"base"},
    {"telemetry"},
    {"proto", "curve"},
    {"key", "witness"},
    {"groth16"},
    {"cpu", "cuda"},
    {"staging"},
    {"transport"},
    {"job"},
    {"daemon", "coordinator", "submit"},
    {"cli", "lib"},
]
ALSO = {("witness", "key")}  # a witness is read against its key
GPU_HEADER = "cuda/gpu.h"  # all that the host sees of cuda/

RANK = {folder: rank for rank, folders in enumerate(LAYERS) for folder in folders}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)


def folder_of(path):
    parts = path.split("/")
    return parts[1] if parts[0] == "node" and len(parts) > 2 else parts[0]


def problem(tree, path, target):
    own, other = folder_of(path), folder_of(target)
    if own not in RANK:
        return f"folder {own} has no place in the include law (tests/tidy/check_includes.py)"
    if "/" not in target or target.startswith("."):
        return f'"{target}" is not written from the root'
    generated = target.endswith(".pb-c.h") or target + ".in" in tree.paths
    if target not in tree.paths and not generated:
        return f'"{target}" does not exist'
    if own == other:
        return None
    if other not in RANK:
        return f'"{target}" is outside of node, proto and cuda'
    if other == "cuda" and target != GPU_HEADER:
        return f'"{target}": the host sees only {GPU_HEADER}'
    if RANK[other] < RANK[own] or (own, other) in ALSO:
        return None
    return f'{own} may not include from {other}: "{target}"'


def check(tree):
    found = []
    for path in tree.select(*C_LIKE, under=("node", "proto", "cuda")):
        text = tree.text(path)
        for match in INCLUDE.finditer(text):
            message = problem(tree, path, match.group(1))
            if message:
                found.append((path, line_of(text, match.start()), message))
    return found


def _tree(path, target):
    return {path: f'#include "{target}"\n', target: "\n"}


BAD = [
    _tree("node/base/a.c", "node/key/key.h"),
    _tree("node/cpu/a.c", "cuda/gpu.h"),
    _tree("node/daemon/a.c", "cuda/field.cuh"),
    _tree("node/key/a.c", "node/witness/witness.h"),
    _tree("proto/a.c", "node/curve/curve.h"),
    _tree("node/unknown/a.c", "node/base/err.h"),
    _tree("node/cli/a.c", "tests/check/check.h"),
    {"node/base/a.c": '#include "err.h"\n', "node/base/err.h": ""},
    {"node/base/a.c": '#include "node/base/absent.h"\n'},
]
GOOD = [
    _tree("node/cli/a.c", "node/base/err.h"),
    _tree("node/witness/a.c", "node/key/key.h"),
    _tree("node/daemon/a.c", "cuda/gpu.h"),
    _tree("node/key/a.c", "node/key/key.h"),
    {"proto/a.c": '#include "proto/job.pb-c.h"\n#include <string.h>\n'},
    {"node/cli/a.c": '#include "node/base/version.h"\n', "node/base/version.h.in": ""},
]
