"""Every source is built and every test runs: each is named in a meson.build at or above its folder."""

import os
import re

NAME = "every source and every test is named in a meson.build"


def texts_above(tree, path):
    folder = os.path.dirname(path)
    while True:
        at = f"{folder}/meson.build" if folder else "meson.build"
        if at in tree.paths:
            yield tree.text(at), folder
        if not folder:
            return
        folder = os.path.dirname(folder)


def is_named(tree, path):
    stem = os.path.basename(path)
    bare = stem.rsplit(".", 1)[0]
    for text, folder in texts_above(tree, path):
        inside = os.path.relpath(path, folder or ".").replace(os.sep, "/")
        built = re.sub(r"#[^\n]*|subdir\([^)]*\)", "", text)
        quoted = set(re.findall(r"'([^']*)'", built))
        if quoted & {inside, stem, bare, re.sub("^check_", "", bare)}:
            return True
    return False


def check(tree):
    found = []
    sources = tree.select(".c", ".cu", under=("node", "proto", "cuda", "tests"))
    scripts = [p for p in tree.select(".py", ".sh", ".mjs", under=("tests",))
               if re.match(r"(test_|check_|.*_test\.)", os.path.basename(p))]
    for path in sources + scripts:
        if not path.startswith("tests/vectors/") and not is_named(tree, path):
            found.append((path, 0, "is in no meson.build: nobody builds or runs it"))
    return found


def _meson(text):
    return {"tests/unit/key/meson.build": text, "tests/meson.build": "", "meson.build": ""}


BAD = [
    {**_meson("unit_tests += {'key': files('key.c')}\n"), "tests/unit/key/key.c": "", "tests/unit/key/vkey.c": ""},
    {**_meson("# 'key.c'\n"), "tests/unit/key/key.c": ""},
    {"node/key/key.c": "", "node/meson.build": "subdir('key')\n", "node/key/meson.build": "files()\n"},
]
GOOD = [
    {**_meson("unit_tests += {'key': files('key.c')}\n"), "tests/unit/key/key.c": ""},
    {**_meson("foreach name : ['key']\n"), "tests/unit/key/key.c": "", "tests/unit/key/claims.h": ""},
    {"tests/check/check.c": "", "tests/meson.build": "static_library('check', 'check/check.c')\n"},
]
