"""Lines end where their text ends."""

import re

NAME = "no trailing blanks, no carriage returns, one newline at the end, tabs only where make wants them"


def check(tree):
    found = []
    for path in tree.readable():
        if path.endswith((".json", ".md")) and "node_modules" in path:
            continue
        text = tree.text(path)
        for number, line in enumerate(text.split("\n"), 1):
            if line.endswith((" ", "\t")):
                found.append((path, number, "trailing blanks"))
            if "\r" in line:
                found.append((path, number, "a carriage return"))
            if "\t" in line and re.search(r"\.(c|h|cu|cuh|py|proto|md)$|meson\.build$", path):
                found.append((path, number, "a tab"))
        if text and not text.endswith("\n"):
            found.append((path, 0, "does not end with a newline"))
        if text.endswith("\n\n"):
            found.append((path, 0, "ends with empty lines"))
    return found


BAD = [{"a.c": "int x; \n"}, {"a.md": "x\r\n"}, {"a.py": "if x:\n\ty\n"}, {"a.c": "int x;"}, {"a.c": "int x;\n\n"}]
GOOD = [{"a.c": "int x;\n\nint y;\n", "empty": "", "Makefile": "a:\n\tb\n"}]
