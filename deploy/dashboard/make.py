#!/usr/bin/env python3
"""Makes the web page: make.py ROOT OUT, or make.py --packages ROOT OUT.

Installs the locked npm packages into OUT/npm (once per lock file), packs proto/*.proto into one descriptor set, and bundles the page into
OUT. This is the only step of a build that downloads something, and it runs only where it is asked for. With --packages it ends after the
packages, to find out whether they can be had. Exit status 77: they cannot be had here.
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


def main():
    words = sys.argv[1:]
    only_packages = words[:1] == ["--packages"]
    if len(words) - only_packages != 2:
        sys.exit(__doc__)
    root, out = map(os.path.abspath, words[only_packages:])
    done = install(f"{root}/deploy/dashboard", f"{out}/npm") if only_packages else make(root, out)
    sys.exit(0 if done else 77)


if __name__ == "__main__":
    main()
