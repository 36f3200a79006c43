"""Every row of the option table is read somewhere; every BELLOWS_ variable in the code is known."""

import re

from tree import C_LIKE, line_of

NAME = "every option is read, every environment variable is known"
TABLE = "node/base/config_table.h"
SUFFIX = {"BYTES": "_bytes", "SPAN": "_ns"}
MACROS = {"MIMALLOC", "DEBUG", "VERSION", "COMMIT", "WRITE_SAMPLE"}  # of the compiler, and of one test


def rows(text):
    return re.findall(r"^\s+(TEXT|CHOICE|BYTES|SPAN|COUNT|SWITCH)\(\s*(\w+)", text, re.MULTILINE)


def check(tree):
    text, found = tree.text(TABLE), []
    sources = [p for p in tree.select(".c", under=("node",)) if not p.startswith("node/base/")]
    code = "\n".join(tree.text(p) for p in sources)
    for kind, name in rows(text):
        field = name + SUFFIX.get(kind, "")
        if not re.search(r"(\.|->)" + field + r"\b", code):
            found.append((TABLE, 0, f"nobody reads .{field}"))
    other = re.search(r"CONFIG_OTHER_VARIABLES((?:.*\\\n)*.*)", text)
    known = {name.upper() for _, name in rows(text)} | MACROS
    known |= set(re.findall(r'"([A-Z_]+)"', other.group(1) if other else ""))
    for path in tree.select(*C_LIKE, under=("node", "cuda")):
        for match in re.finditer(r'"BELLOWS_([A-Z_]+)"', tree.text(path)):
            if match.group(1) not in known:
                line = line_of(tree.text(path), match.start())
                found.append((path, line, f"BELLOWS_{match.group(1)} is not in {TABLE}"))
    return found


_TABLE = {TABLE: '#define CONFIG_TABLE(TEXT, BYTES) \\\n    TEXT(server, "x") \\\n    BYTES( memory, "0")\n'
                 '#define CONFIG_OTHER_VARIABLES "ROOT"\n'}
BAD = [
    {**_TABLE, "node/daemon/a.c": "f(c->server);\n"},
    {**_TABLE, "node/daemon/a.c": "f(c->server, c.memory);\n"},
    {**_TABLE, "node/daemon/a.c": 'f(c->server, c.memory_bytes, getenv("BELLOWS_OTHER"));\n'},
]
GOOD = [{**_TABLE, "node/daemon/a.c": 'f(c->server, c.memory_bytes, getenv("BELLOWS_ROOT"), "BELLOWS_SERVER");\n'}]
