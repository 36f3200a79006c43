"""What pages and scripts name is there: links between pages, and shell that parses."""

import os
import re
import shutil
import subprocess

from tree import line_of

NAME = "links in pages lead somewhere, scripts parse"
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")


def shell_scripts(tree):
    return [p for p in tree.readable() if re.match(r"#!.*\b(ba)?sh\b", tree.text(p).split("\n", 1)[0])]


def check(tree):
    found, folders = [], {os.path.dirname(p) for p in tree.paths}
    for path in tree.select(".md"):
        text = tree.text(path)
        for match in LINK.finditer(text):
            target = match.group(1)
            if re.match(r"[a-z]+:", target):
                continue
            full = os.path.normpath(os.path.join(os.path.dirname(path), target)).replace(os.sep, "/")
            if full not in tree.paths and not any(f == full or f.startswith(full + "/") for f in folders):
                found.append((path, line_of(text, match.start()), f"{target} is not there"))
    bash = shutil.which("bash")
    for path in shell_scripts(tree) if bash else []:
        done = subprocess.run([bash, "-n"], input=tree.text(path), capture_output=True, text=True)
        if done.returncode:
            found.append((path, 0, done.stderr.strip().split("\n")[0]))
    return found


BAD = [{"README.md": "see [it](absent.md)\n"}, {"test": "#!/usr/bin/env bash\nif true; then\n"}]
GOOD = [{"README.md": "see [it](docs/a.md#x), [that](https://x.org), [this](docs)\n", "docs/a.md": "", "t": "#!/bin/sh\ntrue\n"}]
