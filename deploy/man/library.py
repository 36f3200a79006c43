#!/usr/bin/env python3
"""libbellows(3) of the library's header: library.py HEADER VERSION MAN3.

The header is the contract; the page is the same text in the form that man shows. Its head gives the description, each function its prototype
and what the comment beside it says, structs and enums stand as they are. All functions are in the page's NAME, by which man finds it.
"""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from make import empty, full, head, paragraph, roff, see_also, tagged, today, write

COMMENT = r"/\*(?P<comment>.*?)\*/"
FUNCTION = r"^BELLOWS_API (?P<function>[^;]*);"
BLOCK = r"(?P<block>(?:struct|enum)\b[^;{]*\{[^{}]*\};)"
PIECE = re.compile(f"{COMMENT}|{FUNCTION}|{BLOCK}", re.DOTALL | re.MULTILINE)


def plain(comment):
    """A comment's text in one line."""
    return " ".join(re.sub(r"\n\s*\*", " ", comment).split())


def verbatim(text):
    return ".EX\n" + "\n".join(roff(line) for line in text.split("\n")) + "\n.EE"


def head_of(text):
    """Name and text of each paragraph of the header's first comment, and its example."""
    lines = [re.sub(r"^ \*( |$)", "", line) for line in text.split("\n")]
    example, paragraphs = [], []
    for line in lines:
        named = re.match(r"([A-Z]\w+) +(\S.*)", line)
        if named and len(named.group(0)) > 9 and line[8:9] == " ":
            paragraphs.append([named.group(1), named.group(2)])
        elif paragraphs and line.startswith("         "):
            paragraphs[-1][1] += " " + line.strip()
        elif line.startswith("    "):
            example.append(line[4:])
    return example, paragraphs


def prototype(text):
    text = " ".join(text.split())
    return re.sub(r"\( ", "(", re.sub(r" \)", ")", text)) + ";"


def pieces_of(text):
    """(kind, text, comment) of each declaration, in order; a comment on a declaration's own last line is its own."""
    found, waiting, end = [], "", 0
    for m in PIECE.finditer(text):
        kind, content = m.lastgroup, m.group(m.lastgroup)
        if kind != "comment":
            found.append([kind, content, waiting])
            waiting = ""
        elif content.strip().startswith("---"):
            found.append(["title", content.strip(" -"), ""])
        elif found and found[-1][0] == "function" and "\n" not in text[end : m.start()]:
            found[-1][2] = content
        else:
            waiting = content
        end = m.end()
    return found


def declarations(text):
    """Functions without a word of their own stand with the one before them."""
    out, names, open_tag, first = [], [], False, True
    for kind, content, comment in pieces_of(text):
        if kind == "title":
            out.append(f".SS {roff(content)}")
        elif kind == "block":
            out += [] if first else [".PP"]
            out += [paragraph(full(plain(comment))), ".PP"] if comment else []
            out.append(verbatim(re.sub(r"^(struct|enum)\n\s+", r"\1 ", content)))
        else:
            names.append(re.search(r"(\w+)\(", content).group(1))
            tag = f"\\fB{roff(prototype(content))}\\fR"
            out.append((".TQ\n" if open_tag and not comment else ".TP\n") + tag)
            if comment:
                out.append(paragraph(full(plain(comment))))
        first = kind == "title"
        open_tag = kind == "function" and not comment
    return out, names


def main():
    source, version, man3 = sys.argv[1:4]
    with open(source, encoding="utf-8") as f:
        text = f.read()
    first, rest = re.match(r"/\*(.*?)\*/(.*)", text, re.DOTALL).groups()
    example, paragraphs = head_of(first)
    functions, names = declarations(rest)
    out = head("libbellows", 3, "send witnesses to a fleet of Groth16 provers, verify proofs", today(), version)
    out[2:] = [",\n".join(["libbellows", *map(roff, names)]), out[2].removeprefix("libbellows ")]
    out += [".SH LIBRARY", roff("cc program.c $(pkg-config --cflags --libs bellows)"), ".SH SYNOPSIS", ".B #include <bellows/bellows.h>"]
    out.append(verbatim("\n".join(example)))
    out.append(".SH DESCRIPTION")
    out += [tagged(name, None, words) for name, words in paragraphs if name != "Build"]
    out += [".SH DECLARATIONS", *functions]
    out += see_also([("bellows", 1), ("bellows-submit", 1), ("bellows-verify", 1)])
    empty(man3)
    write(man3, "libbellows.3", out)


if __name__ == "__main__":
    main()
