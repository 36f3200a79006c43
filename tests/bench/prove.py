#!/usr/bin/env python3
"""Times whole `bellows prove` processes: files read, tables built, proof made, verified and written.

    tests/bench/prove.py DIR... [--tiers ifma,adx,portable] [--runs 5] [--bellows build/bellows]

Each DIR holds circuit.zkey and witness.wtns. One JSON line a case and tier (median and spread of wall time, median CPU time, peak
memory and its ratio to key plus witness), then a table. Run it on a quiet machine: it says the load it found.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def once(bellows, case, tier, out):
    """Wall seconds, CPU seconds and peak bytes of one process."""
    args = [bellows, "prove", f"{case}/circuit.zkey", f"{case}/witness.wtns", f"{out}/proof.json", f"{out}/public.json",
            "--backend", "cpu", "--cpu-tier", tier, "--allow-insecure-keys"]
    start = time.monotonic()
    process = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - start
    if process.returncode:
        sys.exit(f"{' '.join(args)}: exit {process.returncode}: {errors.decode(errors='replace')}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dirs", nargs="+")
    parser.add_argument("--tiers", default="ifma,adx,portable")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--bellows", default="build/bellows")
    args = parser.parse_args()
    version = subprocess.run([args.bellows, "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[0]
    rows = []
    with tempfile.TemporaryDirectory() as out:
        for case in args.dirs:
            input_bytes = os.path.getsize(f"{case}/circuit.zkey") + os.path.getsize(f"{case}/witness.wtns")
            for tier in args.tiers.split(","):
                once(args.bellows, case, tier, out)
                runs = [once(args.bellows, case, tier, out) for _ in range(args.runs)]
                walls = sorted(run[0] for run in runs)
                peak = max(run[2] for run in runs)
                row = {"bench": "prove process", "case": os.path.basename(os.path.normpath(case)), "tier": tier, "runs": args.runs,
                       "wall_s_median": round(statistics.median(walls), 4), "wall_s_min": round(walls[0], 4),
                       "wall_s_max": round(walls[-1], 4), "cpu_s_median": round(statistics.median(run[1] for run in runs), 4),
                       "peak_mib": round(peak / 2**20, 1), "input_mib": round(input_bytes / 2**20, 1),
                       "peak_allowed_mib": round(1.5 * input_bytes / 2**20 + 64, 1),
                       "load": round(os.getloadavg()[0], 2), "cores": os.cpu_count(), "version": version}
                print(json.dumps(row), flush=True)
                rows.append(row)
    print(f"\n{'case':24} {'tier':9} {'wall s':>8} {'min':>8} {'CPU s':>8} {'peak MiB':>9} {'allowed':>8}")
    for row in rows:
        print(f"{row['case']:24} {row['tier']:9} {row['wall_s_median']:8.3f} {row['wall_s_min']:8.3f} {row['cpu_s_median']:8.3f}"
              f" {row['peak_mib']:9.1f} {row['peak_allowed_mib']:8.1f}")


if __name__ == "__main__":
    main()
