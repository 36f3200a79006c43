"""The source tree as the checks see it: paths and texts, from the disk or made up by a self-test."""

import os
import re

GENERATED = {".git", ".carry", "__pycache__", "node_modules"}
BINARY = re.compile(r"\.(zkey|wtns|r1cs|params|vk|bin|png|ptau|wasm|sym|proof|zst)$")


class Tree:
    """Files by path from the root, with forward slashes."""

    def __init__(self, texts=None, root=None):
        self.root = root
        self.texts = dict(texts or {})
        self.paths = sorted(self.texts) if root is None else sorted(self._walk(root))

    @staticmethod
    def _walk(root):
        for folder, folders, names in os.walk(root):
            at_root = os.path.samefile(folder, root)
            folders[:] = [
                f
                for f in folders
                if f not in GENERATED and not (at_root and f.startswith("build"))
            ]
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    yield os.path.relpath(path, root).replace(os.sep, "/")

    def text(self, path):
        if path not in self.texts:
            with open(os.path.join(self.root, path), "rb") as f:
                self.texts[path] = f.read().decode("utf-8", "replace")
        return self.texts[path]

    def select(self, *suffixes, under=()):
        """Paths with one of the endings, below one of the folders (all, if none is named)."""
        return [
            p
            for p in self.paths
            if p.endswith(suffixes) and (not under or p.startswith(tuple(u + "/" for u in under)))
        ]

    def readable(self):
        """All texts that people write: no test vectors, nothing binary."""
        return [
            p
            for p in self.paths
            if not BINARY.search(p) and not p.startswith(("tests/vectors/", "tests/fuzz/corpus/"))
        ]


C_LIKE = (".c", ".h", ".cu", ".cuh")

_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.DOTALL
)


def code_only(text):
    """C without comments and without the insides of quotes; lines keep their numbers."""

    def blank(match):
        token = match.group(0)
        if token[0] in "\"'":
            return token[0] + token[0]
        return "\n" * token.count("\n") or " "

    return _TOKEN.sub(blank, text)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def listed(text):
    """Entries of an exception list: first words, then a reason, which must be there."""
    entries = {}
    for line in text.splitlines():
        line = line.strip()
        if line and not line.startswith("#"):
            name, _, reason = line.partition(" ")
            entries[name] = reason.strip()
    return entries
