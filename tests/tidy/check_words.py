"""Nothing unfinished, and nothing that is true on one machine only."""

import re

from tree import line_of

NAME = "no marks of unfinished work, no paths of one machine, no registry hosts"

# Put together from pieces, so that this file does not find itself.
RULES = [
    (re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3, "HA" + "CK")) + r")\b"), "unfinished work"),
    (re.compile(r"(?<![\w.~])/" + r"(?:ro" + r"ot|wo" + r"rk|home/\w+)/"), "a path of one machine"),
    (re.compile(r"\.\./" + "shared"), "a folder outside of the tree"),
    (
        re.compile("|".join((
            r"registry\.npm" + r"js\.org", r"py" + r"pi\.org", r"proxy\.go" + r"lang\.org",
            r"deb\.deb" + r"ian\.org", r"crates" + r"\.io/api", r"files\.python" + r"hosted\.org"))),
        "a registry's host: clients are configured outside of the tree",
    ),
    (re.compile(r"^(<{7} |>{7} |={7}$)", re.MULTILINE), "a merge conflict"),
]


def check(tree):
    found = []
    for path in tree.readable():
        text = tree.text(path)
        for pattern, message in RULES:
            for match in pattern.finditer(text):
                found.append((path, line_of(text, match.start()), f'"{match.group(0)}": {message}'))
    return found


BAD = [
    {"a.c": "/* TO" + "DO: later */\n"},
    {"a.md": "see /ro" + "ot/bellows/x\n"},
    {"a.md": "see /home/" + "ada/x\n"},
    {"tests/package-lock.json": '"resolved": "https://registry.npm' + 'js.org/x"\n'},
    {"a.c": "<<<<<<" + "< HEAD\n"},
]
GOOD = [{"a.c": "/* todo lists are fine; so are ~/wo" + "rk/ and node/home/ada */\n"}]
