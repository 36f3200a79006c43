#!/usr/bin/env python3
"""Adds up what the test programs of one build say: count.py BUILD LABEL TOTALS.

Every program ends with `N passed, N failed` or `N passed, N failed, N skipped`, and exits 77 when it could not run at
all. A program that is killed, runs out of time, fails without saying so, or says nothing counts as one failure: silence is
not success. Prints one line per program, the whole output of those that failed, and the reason of each skip; appends
`PASSED FAILED SKIPPED` to the file TOTALS.
"""

import json
import re
import sys

CLOSING = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$")
REASON = re.compile(r"^skipped +(.*)$", re.MULTILINE)
OUTPUT_LINES_MAX = 400


def counts_of(test):
    """(passed, failed, skipped, remark) of one program."""
    lines = [line.strip() for line in (test.get("stdout") or "").splitlines() if line.strip()]
    match = CLOSING.match(lines[-1]) if lines else None
    passed, failed, skipped = (int(n or 0) for n in match.groups()) if match else (0, 0, 0)
    code, result = test.get("returncode", 0), test["result"]
    if code == 77 or result == "SKIP":
        return passed, failed, max(skipped, 1), ""
    if result == "TIMEOUT":
        return passed, failed + 1, skipped, "ran out of time"
    if code != 0 or result not in ("OK", "EXPECTEDFAIL"):
        died = f"was ended by signal {-code}" if code < 0 else f"exited with {code}"
        return passed, max(failed, 1), skipped, died
    if not match:
        return 0, 1, 0, "said nothing about what it tested"
    return passed, failed, skipped, ""


def show(label, test, counts):
    passed, failed, skipped, remark = counts
    word = "FAILED" if failed else "skipped" if not passed else "ok"
    details = ", ".join(
        text
        for text in (
            f"{passed} passed" if passed else "",
            f"{failed} failed" if failed else "",
            f"{skipped} skipped" if skipped else "",
            remark,
        )
        if text
    )
    name = test["name"].rpartition(" / ")[2]
    print(f"{word:8}{label} {name}: {details} ({test.get('duration', 0):.1f} s)")
    if failed:
        output = (test.get("stdout") or "") + (test.get("stderr") or "")
        lines = output.splitlines()
        if len(lines) > OUTPUT_LINES_MAX:
            lines = lines[: OUTPUT_LINES_MAX // 2] + ["…"] + lines[-OUTPUT_LINES_MAX // 2 :]
        print("\n".join("    | " + line for line in lines))
    elif skipped:
        for reason in REASON.findall(test.get("stdout") or ""):
            print(f"        {reason}")


def main():
    build, label, totals_path = sys.argv[1:4]
    totals = [0, 0, 0]
    try:
        with open(f"{build}/meson-logs/testlog.json", encoding="utf-8") as log:
            tests = [json.loads(line) for line in log if line.strip()]
    except OSError:
        tests = []
    for test in tests:
        counts = counts_of(test)
        show(label, test, counts)
        totals = [a + b for a, b in zip(totals, counts)]
    if not tests:
        print(f"FAILED  {label}: no test ran")
        totals[1] += 1
    with open(totals_path, "a", encoding="utf-8") as f:
        print(*totals, file=f)


if __name__ == "__main__":
    main()
