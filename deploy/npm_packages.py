"""Locked npm packages in a folder, installed once per lock file: for the dashboard's build and for tests that run peers from npm.

No script of a package runs. The folder's file `installed` is a copy of the lock file that it holds the packages of; it is away while npm works,
so what was broken off is installed again.
"""

import os
import shutil
import subprocess

MARK = "installed"


class NotInstalled(Exception):
    """npm could not; the text is the end of what it said."""


def install(source, folder):
    """The packages of SOURCE/package-lock.json in FOLDER/node_modules."""
    mark = f"{folder}/{MARK}"
    with open(f"{source}/package-lock.json", "rb") as f:
        wanted = f.read()
    os.makedirs(folder, exist_ok=True)
    if os.path.exists(mark):
        with open(mark, "rb") as f:
            if f.read() == wanted:
                return
        os.remove(mark)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(f"{source}/{name}", f"{folder}/{name}")
    words = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotInstalled((done.stdout + done.stderr).strip()[-600:])
    with open(mark, "wb") as f:
        f.write(wanted)
