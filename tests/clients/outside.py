"""outside.py ROOT BUILD: libbellows as a stranger finds it: installed, through pkg-config, with a plain compiler, shared and static, C and C++."""

import os
import re
import subprocess
import sys
import tempfile

root, build = (os.path.abspath(path) for path in sys.argv[1:])
case = f"{root}/tests/vectors/bn128/mul-contrib"
passed = failed = 0


def run(*argv, **more):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240, **more)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(argv)[:200]} ended with {done.returncode}:\n{done.stdout[-1500:]}")
    return done.stdout


def claim(sentence, function, *arguments):
    global passed, failed
    try:
        function(*arguments)
        passed += 1
        print(f"passed   {sentence}")
    except (AssertionError, subprocess.TimeoutExpired, OSError) as why:
        failed += 1
        print(f"FAILED   {sentence}\n{why}")


def header_names(where):
    header = open(f"{where}/include/bellows/bellows.h", encoding="utf-8").read()
    return sorted(re.findall(r"BELLOWS_API[^;]*?\b(bellows_\w+)\(", header))


def symbols(*argv):
    lines = run("nm", "--defined-only", *argv).splitlines()
    words = [line.split() for line in lines if len(line.split()) == 3]
    return sorted(name.split("@")[0] for _, kind, name in words if kind != "A")


def only_its_names(where, libdir):
    names = header_names(where)
    assert len(names) > 10, names
    found = symbols("-D", f"{libdir}/libbellows.so.0")
    assert found == names, f"the shared library exports {set(found) ^ set(names)}"
    found = symbols("-g", f"{libdir}/libbellows.a")
    assert found == names, f"the static library exports {set(found) ^ set(names)}"


def no_program_parts(libdir):
    shown = run("readelf", "-d", f"{libdir}/libbellows.so.0")
    assert "Library soname: [libbellows.so.0]" in shown, shown
    for other in ("mimalloc", "microhttpd", "ncurses", "cuda", "stdc++"):
        assert other not in shown, f"the library needs {other}"


def config(libdir, scratch, *words):
    env = dict(os.environ, PKG_CONFIG_PATH=f"{libdir}/pkgconfig", PKG_CONFIG_SYSROOT_DIR=scratch)
    return run("pkg-config", *words, "bellows", env=env).split()


def proves(program, libdir):
    env = dict(os.environ, LD_LIBRARY_PATH=libdir)
    command = (
        f"'{program}' \"$BELLOWS_SERVER\" {case}/circuit.zkey {case}/witness.wtns "
        f"{case}/verification_key.json"
    )
    shown = run(f"{build}/bellows", "dev", "--backend", "cpu", "--log-level", "warn", "--run", command, env=env)
    assert '"pi_a"' in shown, shown


def shared(libdir, scratch):
    program = f"{scratch}/shared"
    source = f"{root}/deploy/examples/c/prove.c"
    flags = config(libdir, scratch, "--cflags", "--libs")
    run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", source, "-o", program, *flags)
    assert "libbellows.so.0" in run("readelf", "-d", program)
    proves(program, libdir)


def static(libdir, scratch):
    program = f"{scratch}/static"
    flags = config(libdir, scratch, "--static", "--cflags", "--libs")
    flags = [f"-l:libbellows.a" if flag == "-lbellows" else flag for flag in flags]
    run("cc", f"{root}/deploy/examples/c/prove.c", "-o", program, *flags)
    assert "libbellows" not in run("readelf", "-d", program)
    proves(program, "")


def from_cpp(libdir, scratch):
    source = f"{scratch}/version.cpp"
    with open(source, "w", encoding="utf-8") as out:
        out.write("#include <bellows/bellows.h>\nint main() { return bellows_version()[0] == 0; }\n")
    flags = config(libdir, scratch, "--cflags", "--libs")
    run("g++", "-Wall", "-Wextra", "-Wpedantic", "-Werror", source, "-o", f"{scratch}/cpp", *flags)
    run(f"{scratch}/cpp", env=dict(os.environ, LD_LIBRARY_PATH=libdir))


with tempfile.TemporaryDirectory(prefix="bellows-outside") as scratch:
    run("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--tags", "devel,runtime", "--destdir", scratch)
    found = run("find", scratch, "-name", "libbellows.so.0").split()
    assert len(found) == 1, found
    libdir = os.path.dirname(found[0])
    where = run("find", scratch, "-name", "bellows.h").split()[0].removesuffix("/include/bellows/bellows.h")
    claim("both libraries export the header's functions and nothing else", only_its_names, where, libdir)
    claim("the library has its soname and nothing that only the program needs", no_program_parts, libdir)
    claim("a plain compiler builds the example, which gets a proof from a fleet", shared, libdir, scratch)
    claim("the same, linked statically", static, libdir, scratch)
    claim("the header is fit for C++", from_cpp, libdir, scratch)
print(f"{passed} passed, {failed} failed, 0 skipped")
sys.exit(1 if failed else 0)
