#!/usr/bin/env python3
"""examples.py ROOT BUILD: the examples of deploy/examples against a fleet, as their README says. A language whose tool is missing is skipped."""

import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../check"))
from claims import in_scratch, main, need, npm_folder, run

root, build = (os.path.abspath(path) for path in sys.argv[1:])
examples, bellows = f"{root}/deploy/examples", f"{build}/bellows"
JS = f"{build}/tests/clients/js"  # the example beside what it imports


def environment(**more):
    return dict(os.environ, VECTORS=f"{root}/tests/vectors", BELLOWS=bellows, ROOT=root, **more)


def fleet(folder, script, **env):
    """Runs a script beside a fleet; $VECTORS, $CASE, $PROVE… as given."""
    command = [bellows, "dev", "--backend", "cpu", "--log-level", "warn", "--run", f"set -e; cd '{folder}'; {script}"]
    return run(*command, env=environment(**env))


def secured(folder, script, **env):
    """The same beside a fleet with TLS, roles and accounts, as a user of tenant acme."""
    need("nats-server", "nats-server")
    os.makedirs(f"{folder}/fleet")
    return run(f"{root}/tests/clients/secured", f"{folder}/fleet", f"cd '{folder}'; {script}", env=environment(**env))


# Both curves; a body of bits that packs well, and one that is an object.
CASES = "bn128/bits bls12381/chain200"
EACH = f'for CASE in {CASES}; do set -- "$BELLOWS_SERVER" "$VECTORS/$CASE/circuit.zkey" "$VECTORS/$CASE/witness.wtns" "$VECTORS/$CASE/verification_key.json"; '
PUSH = '"$BELLOWS" key push "$2" >/dev/null; '


def installed(scratch):
    run("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--tags", "devel,runtime", "--destdir", f"{scratch}/root")
    found = run("find", f"{scratch}/root", "-name", "libbellows.so.0").split()
    libdir = os.path.dirname(found[0])
    return libdir, {
        "PKG_CONFIG_PATH": f"{libdir}/pkgconfig",
        "PKG_CONFIG_SYSROOT_DIR": f"{scratch}/root",
        "LD_LIBRARY_PATH": libdir,
    }


def proves_by_library(folder, env, code=1):
    shown = fleet(folder, f"{EACH} ./prove \"$@\"; done", **env)
    assert shown.count('"pi_a"') == 2, shown
    shown = fleet(folder, './prove "$BELLOWS_SERVER" absent.zkey w "$VECTORS/bn128/bits/verification_key.json" 2>&1 || echo "code $?"', **env)
    assert "E_IO: " in shown and "absent.zkey" in shown and f"code {code}" in shown, shown
    shown = secured(folder, f"{EACH} {PUSH} ./prove \"$@\"; done", **env)
    assert shown.count('"pi_a"') == 2, shown


def c(scratch):
    need("cc", "gcc")
    _, env = installed(scratch)
    flags = run("pkg-config", "--cflags", "--libs", "bellows", env=dict(os.environ, **env)).split()
    run("cc", f"{examples}/c/prove.c", "-o", f"{scratch}/prove", *flags)
    proves_by_library(scratch, env, code=2)


def rust(scratch):
    need("rustc", "rustc")
    libdir, env = installed(scratch)
    run("rustc", "-O", "-D", "warnings", f"{examples}/rust/prove.rs", "-o", f"{scratch}/prove", "-L", libdir, "-l", "bellows", cwd=scratch)
    proves_by_library(scratch, env)


def go(scratch):
    need("go", "golang-go")
    _, env = installed(scratch)
    shutil.copytree(f"{examples}/go", f"{scratch}/go")
    more = dict(os.environ, GOFLAGS="-mod=mod", GOPROXY="off", GOCACHE=f"{build}/tests/clients/go", CGO_CFLAGS="-O1", **env)
    run("go", "vet", "prove.go", cwd=f"{scratch}/go", env=more)
    run("go", "build", "prove.go", cwd=f"{scratch}/go", env=more)
    proves_by_library(f"{scratch}/go", env)


def python(scratch):
    tool = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    verify = '"$BELLOWS" verify "$4" public.json proof.json; '
    shown = fleet(scratch, f"{EACH} {PUSH} $PYTHON {examples}/python/prove.py \"$@\"; {verify} done", PYTHON=f"{tool} -B")
    assert shown.count("OK\n") == 2, shown
    # More wires than a job has room for: an object.
    make = '"$BELLOWS" key synth --log2 13 --shape dense big.zkey big.wtns >/dev/null; '
    steps = f'$PYTHON {examples}/python/prove.py "$BELLOWS_SERVER" big.zkey big.wtns vkey.json; "$BELLOWS" verify vkey.json public.json proof.json --allow-insecure-keys'
    shown = fleet(scratch, make + '"$BELLOWS" key push big.zkey --allow-insecure-keys >/dev/null; "$BELLOWS" key export-vkey big.zkey vkey.json --allow-insecure-keys; ' + steps, PYTHON=f"{tool} -B")
    assert "OK\n" in shown, shown
    shown = fleet(scratch, f"{EACH} $PYTHON {examples}/python/prove.py \"$@\" 2>&1 || echo \"code $?\"; done", PYTHON=f"{tool} -B")
    assert shown.count("is not stored in this fleet") == 2 and shown.count("code 1") == 2, shown


# Inline and as an object, from a tenant's own account. Keys are pushed by it, too.
LARGE = (
    '"$BELLOWS" key synth --log2 13 --shape dense big.zkey big.wtns >/dev/null; "$BELLOWS" key push big.zkey --allow-insecure-keys >/dev/null; '
    '"$BELLOWS" key export-vkey big.zkey vkey.json --allow-insecure-keys; set -- "$BELLOWS_SERVER" big.zkey big.wtns vkey.json; '
)


def python_secured(scratch):
    tool = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    prove = f'$PYTHON {examples}/python/prove.py "$@"; "$BELLOWS" verify "$4" public.json proof.json --allow-insecure-keys; '
    shown = secured(scratch, f"{EACH} {PUSH} {prove} done; {LARGE} {prove}", PYTHON=f"{tool} -B")
    assert shown.count("OK\n") == 3, shown


def javascript_secured(scratch):
    folder = npm_folder(f"{examples}/js", JS)
    prove = f"node {folder}/prove.js \"$@\" \"$ROOT/proto\"; "
    shown = secured(scratch, f"{EACH} {PUSH} {prove} done; {LARGE} {prove}")
    assert shown.count('"publicSignals"') == 3, shown


def javascript(_):
    folder = npm_folder(f"{examples}/js", JS)
    shown = fleet(folder, f"{EACH} {PUSH} node prove.js \"$@\" \"$ROOT/proto\"; done")
    assert shown.count('"publicSignals"') == 2, shown


CLAIMS = [
    ("Python, from the standard library alone: inline, from an object, and refused", in_scratch(python)),
    ("JavaScript, with the official clients, verified by snarkjs", javascript),
    ("Python, over TLS from a tenant's account: inline and from an object", in_scratch(python_secured)),
    ("JavaScript, the same", in_scratch(javascript_secured)),
    ("C over the library, in the clear and over TLS", in_scratch(c)),
    ("Rust, the same", in_scratch(rust)),
    ("Go, the same", in_scratch(go)),
]

if __name__ == "__main__":
    main(CLAIMS, None)
