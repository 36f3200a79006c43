#!/usr/bin/env python3
"""Makes the web page: make.py ROOT OUT, or make.py --packages ROOT OUT.

Installs the locked npm packages into OUT/npm (once per lock file), packs proto/*.proto into one descriptor set, and bundles the page into
OUT. This is the only step of a build that downloads something, and it runs only where it is asked for. With --packages it ends after the
packages, to find out whether they can be had. Exit status 77: they cannot be had here.
"""

import os
import subprocess
import sys

sys.dont_write_bytecode = True  # nothing of a build lies among the sources
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from npm_packages import NotInstalled, install

PROTOS = ("proto/telemetry.proto", "proto/fleet.proto", "proto/job.proto")


def describe(root, path):
    """One descriptor set of all messages; what is printed is protoc-c's own complaint."""
    subprocess.run(["protoc-c", f"--proto_path={root}", f"--descriptor_set_out={path}", *(f"{root}/{name}" for name in PROTOS)], check=True)


def make(root, out):
    source = f"{root}/deploy/dashboard"
    install(source, f"{out}/npm")
    describe(root, f"{out}/fleet.binpb")
    subprocess.run(["node", f"{source}/build.js", f"{out}/npm", f"{out}/fleet.binpb", out], check=True)


def main():
    words = sys.argv[1:]
    only_packages = words[:1] == ["--packages"]
    if len(words) - only_packages != 2:
        sys.exit(__doc__)
    root, out = map(os.path.abspath, words[only_packages:])
    try:
        if only_packages:
            install(f"{root}/deploy/dashboard", f"{out}/npm")
        else:
            make(root, out)
    except NotInstalled as why:
        print(why, file=sys.stderr)
        sys.exit(77)


if __name__ == "__main__":
    main()
