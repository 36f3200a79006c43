"""Every row of the option table is read somewhere; every BELLOWS_ variable and every --option that a text names is known."""

import re

from tree import C_LIKE, line_of

NAME = "every option is read, every variable and option that is named exists"
TABLE = "node/base/config_table.h"
SUFFIX = {"BYTES": "_bytes", "SPAN": "_ns"}
FOREIGN = {"help", "version", "gpus", "ulimit", "allow-direct"}  # of the program itself, docker and nats
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
    flags = {name.replace("_", "-") for _, name in rows(text)} | FOREIGN | {"config"}
    for path in tree.select(".c", ".h", under=("node/cli",)):
        flags |= set(re.findall(r'\.name = "([a-z][a-z0-9-]*)"', tree.text(path)))
    for path in tree.select(".c", under=("node", "cuda", "proto")):
        for literal in re.finditer(r'"(?:[^"\\\n]|\\.)*"', tree.text(path)):
            for flag in re.findall(r"(?<![\w-])--([a-z][a-z0-9-]+)", literal.group(0)):
                if flag not in flags:
                    found.append((path, line_of(tree.text(path), literal.start()), f"no command has the option --{flag}"))
    return found


_TABLE = {TABLE: '#define CONFIG_TABLE(TEXT, BYTES) \\\n    TEXT(server, "x") \\\n    BYTES( memory, "0")\n'
                 '#define CONFIG_OTHER_VARIABLES "ROOT"\n'}
BAD = [
    {**_TABLE, "node/daemon/a.c": "f(c->server);\n"},
    {**_TABLE, "node/daemon/a.c": "f(c->server, c.memory);\n"},
    {**_TABLE, "node/daemon/a.c": 'f(c->server, c.memory_bytes, getenv("BELLOWS_OTHER"));\n'},
    {**_TABLE, "node/daemon/a.c": 'f(c->server, c.memory_bytes, "the option is --memori");\n'},
]
GOOD = [
    {**_TABLE, "node/daemon/a.c": 'f(c->server, c.memory_bytes, getenv("BELLOWS_ROOT"), "BELLOWS_SERVER");\n'},
    {**_TABLE, "node/cli/a.c": '{.name = "out"}; f(c->server, c.memory_bytes, "--memory, --out"); /* --memori */\n'},
]
