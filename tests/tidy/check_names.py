"""A file is named after its noun, in lower case."""

import re

NAME = "files and folders are named after what they hold"
VAGUE = re.compile(r"(^|_)(" + "|".join(("utils?", "common", "misc", "helpers?", "managers?", "stuff")) + r")(_|$)")
PLAIN = re.compile(r"^[a-z][a-z0-9_]*$")


def check(tree):
    found = []
    for path in tree.select(".c", ".h", ".cu", ".cuh", ".proto", ".py", under=("node", "proto", "cuda", "tests")):
        if path.startswith("tests/vectors/"):
            continue
        for word in path.split("/"):
            stem = word.split(".")[0]
            if VAGUE.search(stem):
                found.append((path, 0, f'"{stem}" names no noun'))
            elif not PLAIN.match(stem):
                found.append((path, 0, f'"{stem}" is not in snake_case'))
    return found


BAD = [{"node/base/util.c": ""}, {"node/common/a.c": ""}, {"node/key/key_helper.h": ""}, {"node/key/readKey.c": ""}]
GOOD = [{"node/key/key.c": "", "tests/unit/key/key.c": "", "cuda/msm_digits.cu": "", "node/cli/cmd_uncommon.c": ""}]
