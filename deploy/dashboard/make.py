#!/usr/bin/env python3
"""Makes the web page: make.py ROOT OUT.

Installs the locked npm packages into OUT/npm (once per lock file), packs proto/*.proto into one descriptor set, and bundles the page into
OUT. This is the only step of a build that downloads something, and it runs only where it is asked for. Exit status 77: the packages cannot
be had here.
"""

import os
import shutil
import subprocess
import sys

PROTOS = ("proto/telemetry.proto", "proto/fleet.proto", "proto/job.proto")


def install(source, packages):
    """The packages of SOURCE/package-lock.json in PACKAGES/node_modules. False: npm could not."""
    lock, mark = f"{source}/package-lock.json", f"{packages}/installed"
    os.makedirs(packages, exist_ok=True)
    with open(lock, "rb") as f:
        wanted = f.read()
    if os.path.exists(mark):
        with open(mark, "rb") as f:
            if f.read() == wanted:
                return True
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(f"{source}/{name}", f"{packages}/{name}")
    done = subprocess.run(
        ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=packages, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr.strip()[-600:], file=sys.stderr)
        return False
    with open(mark, "wb") as f:
        f.write(wanted)
    return True


def describe(root, path):
    """One descriptor set of all messages; what is printed is protoc-c's own complaint."""
    subprocess.run(["protoc-c", f"--proto_path={root}", f"--descriptor_set_out={path}", *(f"{root}/{name}" for name in PROTOS)], check=True)


def make(root, out):
    """Everything; False: no packages."""
    source = f"{root}/deploy/dashboard"
    if not install(source, f"{out}/npm"):
        return False
    describe(root, f"{out}/fleet.binpb")
    subprocess.run(["node", f"{source}/build.js", f"{out}/npm", f"{out}/fleet.binpb", out], check=True)
    return True


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(0 if make(*(os.path.abspath(word) for word in sys.argv[1:])) else 77)
