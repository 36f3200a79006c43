#!/usr/bin/env python3
"""Runs one check: run.py CHECK ROOT.

A check is a module with

    NAME         what it claims about the tree
    check(tree)  a list of (path, line, message); line 0 when the whole file is meant
    BAD, GOOD    made-up trees: in each of BAD the check must find something, in each of GOOD nothing

The made-up trees come first: a check that cannot fail proves nothing. Exit 77 when the check raises Skip.
"""

import importlib
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tree import Tree  # noqa: E402

SHOWN_MAX = 40


class Skip(Exception):
    """This machine cannot run the check."""


def claim(name, problems, counts):
    if problems:
        counts["failed"] += 1
        print(f"FAILED   {name}")
        for problem in problems[:SHOWN_MAX]:
            print(f"         {problem}")
        if len(problems) > SHOWN_MAX:
            print(f"         and {len(problems) - SHOWN_MAX} more")
    else:
        counts["passed"] += 1
        print(f"passed   {name}")


def main():
    name, root = sys.argv[1], sys.argv[2]
    module = importlib.import_module("check_" + name)
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    try:
        blind = [f"bad tree {i} was not noticed" for i, t in enumerate(module.BAD) if not module.check(Tree(t))]
        for i, texts in enumerate(module.GOOD):
            blind += [f"good tree {i}: {p}:{l}: {m}" for p, l, m in module.check(Tree(texts))]
        claim(f"{name}: the check notices what it is for", blind, counts)
        found = module.check(Tree(root=root))
        claim(module.NAME, [f"{p}:{l}: {m}" if l else f"{p}: {m}" for p, l, m in found], counts)
    except Skip as why:
        counts["skipped"] += 1
        print(f"skipped  {name}: {why}")
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return 1 if counts["failed"] else 77 if not counts["passed"] else 0


if __name__ == "__main__":
    sys.modules["run"] = sys.modules["__main__"]  # checks import Skip from here
    sys.exit(main())
