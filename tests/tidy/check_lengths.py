"""Files of at most 800 lines, functions of at most 70; longer ones are listed, with a reason, and may not grow."""

import re

from tree import C_LIKE, code_only, listed

NAME = "files and functions are short, or argued for in tests/tidy/lengths.txt"
LIST = "tests/tidy/lengths.txt"
FILE_LINES_MAX, FUNCTION_LINES_MAX = 800, 70

# The line that a function's name stands on, at the left margin: `FALLIBLE key_open(…`.
SIGNATURE = re.compile(r"^[A-Za-z_][\w \t*<>,:&]*?\b([A-Za-z_]\w*)\s*\(", re.ASCII)
NOT_FUNCTIONS = {"if", "for", "while", "switch", "return", "sizeof", "__attribute__", "__launch_bounds__", "alignas"}


def functions(text):
    """(name, first line, lines) of every function whose closing brace stands at the left margin."""
    lines = code_only(text).splitlines()
    name = start = None
    for number, line in enumerate(lines, 1):
        if line.startswith("#"):
            continue
        match = SIGNATURE.match(line)
        if match and start is None or match and not line.startswith((" ", "\t", "}")):
            words = re.findall(r"([A-Za-z_]\w*)\s*\(", line)
            words = [w for w in words if w not in NOT_FUNCTIONS]
            if words:
                name, start = words[0], number
                # CURVE_FN(ntt_forward)(…): the name is inside
                inner = re.search(r"\b[A-Z_]+FN\((\w+)\)\s*\(", line)
                name = inner.group(1) if inner else name
        if line.rstrip().endswith(";") and not line.startswith((" ", "\t", "}")):
            start = None  # a declaration
        if line.startswith("}"):
            if start is not None and line.rstrip() == "}":
                yield name, start, number - start + 1
            start = None


def lengths(tree):
    """{entry: (path, line, length, limit)} of all that is too long."""
    found = {}
    for path in tree.select(*C_LIKE, ".py", ".mjs", under=("node", "proto", "cuda", "tests", "deploy")):
        if path.startswith("tests/vectors/"):
            continue
        text = tree.text(path)
        count = text.count("\n")
        if count > FILE_LINES_MAX:
            found[path] = (path, 0, count, FILE_LINES_MAX)
        if path.endswith(C_LIKE):
            for name, line, length in functions(text):
                if length > FUNCTION_LINES_MAX:
                    found[f"{path}:{name}"] = (path, line, length, FUNCTION_LINES_MAX)
    return found


def check(tree):
    allowed = listed(tree.text(LIST)) if LIST in tree.paths else {}
    too_long, found = lengths(tree), []
    for entry, (path, line, length, limit) in sorted(too_long.items()):
        granted, _, reason = allowed.get(entry, "").partition(" ")
        if not granted.isdigit():
            found.append((path, line, f"{entry}: {length} lines, at most {limit}"))
        elif length > int(granted):
            found.append((path, line, f"{entry}: {length} lines, {granted} were argued for in {LIST}"))
        elif len(reason) < 10:
            found.append((LIST, 0, f"{entry} has no reason"))
    for entry in sorted(set(allowed) - set(too_long)):
        found.append((LIST, 0, f"{entry} is short by now, or gone: take its line out"))
    return found


def _function(lines):
    return "static int long_one(int x,\n                    int y) {\n" + "    x++;\n" * (lines - 3) + "}\n"


BAD = [
    {"node/key/a.c": _function(71)},
    {"node/key/a.c": "enum err CURVE_FN(ntt)(fr *x) {\n" + "    x++;\n" * 80 + "}\n"},
    {"node/key/a.c": "int x;\n" * 801},
    {"node/key/a.c": _function(90), LIST: "node/key/a.c:long_one 80 a straight-line formula\n"},
    {"node/key/a.c": _function(75), LIST: "node/key/a.c:long_one 80\n"},
    {"node/key/a.c": _function(20), LIST: "node/key/a.c:long_one 80 a straight-line formula\n"},
]
GOOD = [
    {"node/key/a.c": _function(70)},
    {"node/key/a.c": _function(75), LIST: "node/key/a.c:long_one 80 a straight-line formula\n"},
    {"node/key/a.c": "static const int table[] = {\n" + "    1,\n" * 200 + "};\n"},
    {"node/key/a.c": "struct x {\n" + "    int y;\n" * 100 + "};\n" + _function(10)},
]
