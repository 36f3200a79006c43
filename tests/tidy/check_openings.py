"""Every file says first what it is for; every header is included once."""

import re

from tree import C_LIKE

NAME = "every source file opens with a comment, every header with #pragma once after it"
ONCE_EXEMPT = re.compile(r"(_tmpl\.h|_adx\.h|_ifma\.h|_claims\.h|/params/[^/]+\.h)$")  # included once for each curve, tier or group
WORDS_MIN = 4


def opening(text):
    match = re.match(r"\s*(?:/\*(.*?)\*/|((?:[ \t]*//[^\n]*\n)+))", text, re.DOTALL)
    return (match.group(1) or match.group(2)) if match else ""


def check(tree):
    found = []
    for path in tree.select(*C_LIKE, under=("node", "proto", "cuda", "tests")):
        if path.startswith("tests/vectors/"):
            continue
        text = tree.text(path)
        if len(re.findall(r"\w+", opening(text))) < WORDS_MIN:
            found.append((path, 1, "does not open with a comment that says what it is for"))
        once = re.search(r"^#pragma once$", text, re.MULTILINE)
        if path.endswith((".h", ".cuh")) and not once and not ONCE_EXEMPT.search(path):
            found.append((path, 1, "has no #pragma once"))
    for path in tree.select(".py", under=("node", "tests", "deploy")):
        if not path.startswith("tests/vectors/") and not re.match(r'(#![^\n]*\n)?(#[^\n]*\n)*"""|(#![^\n]*\n)?# \w', tree.text(path)):
            found.append((path, 1, "does not open with a text that says what it is for"))
    return found


_OK = "/* Says what it is for. */\n"
BAD = [
    {"node/base/a.c": "int x;\n"},
    {"node/base/a.c": "/* Short. */\nint x;\n"},
    {"node/base/a.h": _OK + "int f(void);\n"},
    {"cuda/a.cuh": "#pragma once\n"},
    {"tests/tidy/a.py": "import os\n"},
]
GOOD = [
    {"node/base/a.c": _OK, "node/base/a.h": _OK + "#pragma once\n", "node/curve/group_tmpl.h": _OK},
    {"tests/a.py": '#!/usr/bin/env python3\n"""Says."""\n', "cuda/a.cu": "// Says what it is for.\n"},
]
