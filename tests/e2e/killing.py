#!/usr/bin/env python3
"""A job that kills whoever proves it: killing.py BELLOWS VECTORS.

A lane is killed whenever the record of one job says that it runs, as a proof would do that crosses a fault of the driver. Other jobs start ahead
of their turn beside it, and what had started when a worker dies is suspected, too. They must not be given up with it.
"""

import json
import os
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../check"))
from claims import main
from watching import Fleet, nats_server, until

KILLS = 5
OTHERS = ["a", "b", "c", "d", "e", "f"]


def lane_pid(fleet):
    """Of lane 0, by its command line and the folder that it was given; 0: there is none now."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as line, open(f"/proc/{pid}/environ", "rb") as environ:
                if b"--lane=0" in line.read().split(b"\0") and f"XDG_RUNTIME_DIR={fleet.dir}".encode() in environ.read().split(b"\0"):
                    return int(pid)
        except OSError:
            continue
    return 0


def status(fleet, job):
    return json.loads(fleet.run("status", job, "--json").stdout)


def tries(fleet, job):
    return [part["tries"] for part in status(fleet, job)["partitions"]][0]


def claim_others_live(fleet):
    fleet.run("drain", "dev/1")
    files = (f"{fleet.dir}/circuit.zkey", f"{fleet.dir}/witness.wtns")
    fleet.run("key", "synth", "--log2", "16", *files)
    for job in ["killer", *OTHERS]:
        fleet.run("submit", *files, "--job", job, "--allow-insecure-keys")
    kills, end = 0, time.monotonic() + 100
    while kills < KILLS:
        assert time.monotonic() < end, f"{kills} kills: {status(fleet, 'killer')}"
        time.sleep(0.05)  # of a proof that takes several times as long
        pid = lane_pid(fleet)
        if not pid:
            continue
        os.kill(pid, signal.SIGSTOP)
        runs = status(fleet, "killer")["state"] == "running"
        os.kill(pid, signal.SIGKILL if runs else signal.SIGCONT)
        if runs:
            kills += 1
            until(lambda: len(tries(fleet, "killer")) == kills, f"death {kills} is noted")
    for job in OTHERS:
        count = len(tries(fleet, job))
        assert count <= 3, f"{job} was there {count} times when the killer struck, alone it should have been from the third time on"
    for job in ["killer", *OTHERS]:
        fleet.run("wait", job, "--out", f"{fleet.dir}/proofs")
        assert status(fleet, job)["state"] == "done"


CLAIMS = [("a job that kills its lane takes no other job with it", claim_others_live)]

if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if not nats_server():
        print(f"0 passed, 0 failed, {len(CLAIMS)} skipped")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="bellows-killing") as folder:
        own = Fleet(sys.argv[1], sys.argv[2], folder, "--backend", "cpu")
        try:
            main(CLAIMS, own)
        finally:
            own.close()
