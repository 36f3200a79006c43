"""clang-format 14 decides. Other versions lay some lines out differently, so they are not asked."""

import os
import shutil
import subprocess
import tempfile

from run import Skip
from tree import C_LIKE

NAME = "clang-format would change nothing"
BATCH = 64


def tool():
    for name in ("clang-format-14", "clang-format"):
        path = shutil.which(name)
        if path:
            version = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
            if "version 14." in version:
                return path
    raise Skip("clang-format 14 is not installed")


def style_file():
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".clang-format")


def run_on(root, paths):
    found = []
    for at in range(0, len(paths), BATCH):
        command = [tool(), f"--style=file:{style_file()}", "--dry-run", "-Werror"]
        done = subprocess.run(
            command + paths[at : at + BATCH], cwd=root, capture_output=True, text=True
        )
        for line in done.stderr.splitlines():
            parts = line.split(":")
            if len(parts) > 4 and parts[1].isdigit():
                found.append((parts[0], int(parts[1]), "clang-format would change this line"))
    return sorted(set(found))


def check(tree):
    paths = tree.select(*C_LIKE, under=("node", "proto", "cuda", "tests"))
    if tree.root is not None:
        return run_on(tree.root, paths)
    with tempfile.TemporaryDirectory(prefix="bellows-tidy.") as folder:
        for path in paths:
            os.makedirs(os.path.join(folder, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(folder, path), "w", encoding="utf-8") as f:
                f.write(tree.text(path))
        return run_on(folder, paths)


BAD = [{"node/base/a.c": "int  x( void ){return 1;}\n"}]
GOOD = [{"node/base/a.c": "int x(void) {\n    return 1;\n}\n"}]
