#!/usr/bin/env python3
"""Runs the dashboard's tests: run.py WHAT ROOT BUILD PAGE, where WHAT is `modules` or `page` and PAGE is `built` or `unbuilt`.

`modules` needs Node only. `page` drives the real page in Chromium against a real nats-server and a real fleet: the page of the build, or where
that has none (-Ddashboard) one made here, in the same folder. What a machine lacks is said, and the test is skipped (exit status 77).
"""

import glob
import os
import re
import shutil
import subprocess
import sys

NODE_LEAST = 18
CHROMIUM = ("/usr/bin/chromium", "/usr/bin/chromium-browser")


def skip(reason):
    print(f"skipped  {reason}\n0 passed, 0 failed, 1 skipped")
    sys.exit(77)


def require_node():
    node = shutil.which("node")
    if not node:
        skip("Node is not installed: apt-get install nodejs")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    if int(re.match(r"v(\d+)", version).group(1)) < NODE_LEAST:
        skip(f"Node {version.strip()} is older than {NODE_LEAST}")


def prepare_page(root, build, built):
    """The page, and one folder of the build with the tests' scripts and packages; that folder."""
    sys.path.insert(0, f"{root}/deploy/dashboard")
    from make import NotInstalled, install, make

    if not shutil.which("npm"):
        skip("npm is not installed: apt-get install npm")
    if not any(map(os.path.exists, CHROMIUM)):
        skip("Chromium is not installed: apt-get install chromium")
    page, folder = f"{build}/deploy/dashboard", f"{build}/tests/dashboard/npm"
    if built:
        assert os.path.exists(f"{page}/app.js"), f"the build has made no page in {page}"
    try:
        if not built:
            make(root, page)
        install(f"{root}/tests/dashboard", folder)
    except NotInstalled as why:
        skip(f"npm cannot install the packages here: {why}")
    for script in glob.glob(f"{root}/tests/dashboard/*.js"):
        shutil.copy(script, folder)
    return folder


def main():
    what, root, build, built = sys.argv[1], *map(os.path.abspath, sys.argv[2:4]), sys.argv[4] == "built"
    require_node()
    folder = prepare_page(root, build, built) if what == "page" else f"{root}/tests/dashboard"
    names = ["page.test.js", "fleet.test.js", "site.test.js"] if what == "page" else \
        sorted(set(map(os.path.basename, glob.glob(f"{folder}/*.test.js"))) - {"page.test.js", "fleet.test.js", "site.test.js"})
    done = subprocess.run(
        ["node", "count.js", *names], cwd=folder, env={**os.environ, "BELLOWS_ROOT": root, "BELLOWS_BUILD": build, "BELLOWS_VECTORS": f"{root}/tests/vectors"}, check=False)
    sys.exit(done.returncode)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main()
