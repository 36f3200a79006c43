#!/usr/bin/env python3
"""outside.py ROOT BUILD: libbellows as a stranger finds it: installed, through pkg-config, with a plain compiler, shared and static, C and C++."""

import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../check"))
from claims import main, read, run


class Library:
    """What `meson install` lays down for developers, in a folder of its own."""

    def __init__(self, root, build, folder):
        self.folder, self.program = folder, f"{build}/bellows"
        self.source, self.case = f"{root}/deploy/examples/c/prove.c", f"{root}/tests/vectors/bn128/mul-contrib"
        run("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--tags", "devel,runtime", "--destdir", folder)
        self.header = run("find", folder, "-name", "bellows.h").split()[0]
        self.shared, *others = run("find", folder, "-name", "libbellows.so.0").split()
        assert not others, others
        self.dir = os.path.dirname(self.shared)

    def config(self, *words):
        env = dict(os.environ, PKG_CONFIG_PATH=f"{self.dir}/pkgconfig", PKG_CONFIG_SYSROOT_DIR=self.folder)
        return run("pkg-config", *words, "bellows", env=env).split()

    def proves(self, program, libdir):
        """A program of the example's words gets a proof from a fleet."""
        words = f"{self.case}/circuit.zkey {self.case}/witness.wtns {self.case}/verification_key.json"
        script = f"'{program}' \"$BELLOWS_SERVER\" {words}"
        env = dict(os.environ, LD_LIBRARY_PATH=libdir)
        shown = run(self.program, "dev", "--backend", "cpu", "--log-level", "warn", "--run", script, env=env)
        assert '"pi_a"' in shown, shown


def symbols(*words):
    """Names that a library defines for others."""
    lines = [line.split() for line in run("nm", "--defined-only", *words).splitlines()]
    return sorted(line[2].split("@")[0] for line in lines if len(line) == 3 and line[1] != "A")


def claim_names(library):
    names = sorted(re.findall(r"BELLOWS_API[^;]*?\b(bellows_\w+)\(", read(library.header)))
    assert len(names) > 10, names
    for words in (("-D", library.shared), ("-g", f"{library.dir}/libbellows.a")):
        found = symbols(*words)
        assert found == names, f"{words[1]} exports {set(found) ^ set(names)}"


def claim_needs(library):
    shown = run("readelf", "-d", library.shared)
    assert "Library soname: [libbellows.so.0]" in shown, shown
    for other in ("mimalloc", "microhttpd", "ncurses", "cuda", "stdc++"):
        assert other not in shown, f"the library needs {other}"


def claim_shared(library):
    program = f"{library.folder}/shared"
    flags = library.config("--cflags", "--libs")
    run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", library.source, "-o", program, *flags)
    assert "libbellows.so.0" in run("readelf", "-d", program)
    library.proves(program, library.dir)


def claim_static(library):
    program = f"{library.folder}/static"
    flags = library.config("--static", "--cflags", "--libs")
    flags = ["-l:libbellows.a" if flag == "-lbellows" else flag for flag in flags]
    run("cc", library.source, "-o", program, *flags)
    assert "libbellows" not in run("readelf", "-d", program)
    library.proves(program, "")


def claim_cpp(library):
    source, program = f"{library.folder}/version.cpp", f"{library.folder}/cpp"
    with open(source, "w", encoding="utf-8") as out:
        out.write("#include <bellows/bellows.h>\nint main() { return bellows_version()[0] == 0; }\n")
    flags = library.config("--cflags", "--libs")
    run("g++", "-Wall", "-Wextra", "-Wpedantic", "-Werror", source, "-o", program, *flags)
    run(program, env=dict(os.environ, LD_LIBRARY_PATH=library.dir))


CLAIMS = [
    ("both libraries export the header's functions and nothing else", claim_names),
    ("the library has its soname and nothing that only the program needs", claim_needs),
    ("a plain compiler builds the example, which gets a proof from a fleet", claim_shared),
    ("the same, linked statically", claim_static),
    ("the header is fit for C++", claim_cpp),
]

if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="bellows-outside") as scratch:
        main(CLAIMS, Library(*map(os.path.abspath, sys.argv[1:]), scratch))
