#!/usr/bin/env python3
"""Every command that the pages show is run as it stands: pages.py ROOT BUILD.

A page's commands are its indented blocks. Each claim knows how many there are and runs them in order, in one shell, in a folder with the files that
they name; so a command that is added to a page is run, too, and a block that is added fails the claim until somebody says what it needs. Sizes are
made small, names are made those of the vectors; what cannot run here is excepted by name, with the reason.
"""

import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../check"))
from claims import Skipped, main, need, read, run

# Not run here, by the line's beginning.
EXCEPT = {
    "./test": "it runs this",
    "deploy/install-packages": "it would install; ./test and ./quickstart call it",
    "deploy/debian/": "deploy/debian/try runs the page of operators on a Debian of its own",
    "apt-get install": "deploy/debian/try does",
    "docker ": "needs an engine; ship containers holds it against the program",
    "kubectl ": "needs a cluster; ship charts holds it against the chart",
    "helm ": "needs helm; ship charts renders",
    "meson setup build-": "another build: ./test --all makes those of its own",
    "CC=clang meson setup": "likewise",
    "meson setup build ": "the build that is tested",
    "tests/sim/run": "ten minutes; its own test runs it smaller",
    "BELLOWS_STRICT=1 tests/sim/run": "likewise",
    "tests/chaos/run": "likewise",
}
SMALL = [(r"--log2 (?:18|20|27)\b", "--log2 10"), (r"--log2 24\b", "--log2 10 --native"), (r"--quota 100GiB", "--quota 100MiB")]
VECTORS = "tests/vectors"


class Shown:
    """The tree, and a folder for each page."""

    def __init__(self, root, build, folder):
        self.root, self.build, self.folder = root, build, folder
        self.program = f"{build}/bellows"
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("BELLOWS_")}
        self.env |= {"PATH": f"{build}:{os.environ['PATH']}", "XDG_CACHE_HOME": f"{folder}/cache", "XDG_RUNTIME_DIR": folder, "TMPDIR": folder}

    def blocks(self, page, count):
        """The indented blocks of a page outside of lists and fences, comments at the end of lines taken off."""
        found, before = [], ""
        for line in re.sub(r"^```.*?^```", "", read(f"{self.root}/{page}"), flags=re.MULTILINE | re.DOTALL).split("\n"):
            if line.startswith("    "):
                if not before.startswith("    "):
                    found.append([])
                found[-1].append(re.sub(r"(^| {2,})#.*$", "", line[4:]).rstrip())
            before = line
        found = [[line for line in block if line] for block in found]
        assert len(found) == count, f"{page} has {len(found)} blocks of commands, {count} are known here:\n{found}"
        return found

    def place(self, name, *files):
        """A folder with these vectors: "bn128/mul/circuit.zkey as circuit_final.zkey"."""
        folder = f"{self.folder}/{name}"
        os.makedirs(folder, exist_ok=True)
        for file in files:
            source, _, target = file.partition(" as ")
            shutil.copy(f"{self.root}/{VECTORS}/{source}", f"{folder}/{target or os.path.basename(source)}")
        return folder

    def shell(self, folder, lines, swaps=(), before="", **env):
        """Runs lines of a page; what was said. Each is shown before it is run, so that an error has its line."""
        script = ["set -euo pipefail", before]
        for line in lines:
            if any(line.startswith(start) for start in EXCEPT):
                continue
            script.append(f"echo {shlex.quote('+ ' + line)}")
            for pattern, text in [*SMALL, *swaps]:
                line = re.sub(pattern, text, line)
            script.append(line)
        return self.run(folder, "\n".join(script), **env)

    def run(self, folder, script, **env):
        done = subprocess.run(["bash", "-c", script], cwd=folder, env=self.env | env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=240, check=False)
        assert done.returncode == 0, f"exit code {done.returncode}:\n{done.stdout[-3000:]}"
        return done.stdout


CASE = "bn128/mul-contrib"
CIRCUIT = [f"{CASE}/circuit.zkey as circuit_final.zkey", f"{CASE}/circuit.r1cs", f"{CASE}/witness.wtns", f"{CASE}/verification_key.json"]
IMPORT = [f"bls12381/bits/circuit.{kind} as x.{kind}" for kind in ("params", "r1cs")] + [f"bls12381/bits/witness.{kind} as x.{kind}" for kind in ("wtns", "evaluations")]


def claim_first(shown):
    """README: one proof, keys made up, benches."""
    start, proof, made, *_ = shown.blocks("README.md", 5)
    assert start[0].startswith("./quickstart"), start
    said = shown.shell(shown.root, start, BELLOWS_BUILD=shown.build)
    assert said.count("proof is valid") == 2 or said.count("OK") >= 2, said
    folder = shown.place("first", *CIRCUIT, *IMPORT)
    with open(f"{folder}/circuit.sym", "w", encoding="utf-8") as f:
        f.writelines(f"{i},{i},0,main.s{i}\n" for i in range(1, 4))
    said = shown.shell(folder, proof)
    assert '["0x' in said, said
    shown.shell(folder, ["bellows verify verification_key.json public.json proof.json"])
    assert os.path.getsize(f"{folder}/proof.bin") == 192
    proves = [line for line in made if "codec" not in line and "feed" not in line]
    assert len(made) - len(proves) == 2
    shutil.copy(f"{folder}/circuit_final.zkey", f"{folder}/circuit.key")
    said = shown.shell(folder, proves, [(r"bench prove", "bench prove --backend cpu --runs 1 --warmups 0")])
    assert os.path.exists(f"{folder}/synth.zkey") and os.path.exists(f"{folder}/synth.native"), said
    # To be measured, a backlog must last for some reports of its lanes, one a second.
    shown.shell(folder, ["bellows key synth --log2 14 circuit.zkey witness.wtns"])
    rest = [line for line in made if line not in proves]
    inner = "\n".join(re.sub(r"--backlog", "--backlog --allow-insecure-keys --jobs 48", line) for line in rest)
    said = shown.run(folder, f"bellows dev --backend cpu --log-level warn --run {shlex.quote('set -e; ' + inner)}")
    assert said.count("{") >= 2, said


FLEET = """
bellows() { command bellows "$@" && return 0; local code=$?; [ "$1 $code" = "cancel 2" ] || [ "$1" = doctor -a $code -le 3 ] || return $code; }
stop() { kill -TERM "$dev" 2>/dev/null; wait "$dev" || true; }
"""


def claim_fleet(shown):
    """README: a fleet on this machine, jobs, what operators have."""
    _, _, _, jobs, operators = shown.blocks("README.md", 5)
    folder = shown.place("fleet", *CIRCUIT, *[f"{CASE}/witness.wtns as {name}.wtns" for name in "abc"])
    swaps = [
        ("/tmp/fleet", f"{folder}/state"),
        # exec, as the name is also a function here: what is ended is to be the program and not a shell around it
        (r"^(bellows dev .*)$", r"(exec \1 --backend cpu --log-level warn >dev.log 2>&1) & dev=$!; trap stop EXIT; until [ -s state/url ]; do sleep 0.1; kill -0 $dev; done"),
        (r"^(bellows submit \S+ a\.wtns .*)$", r"job=$(\1); echo $job"),
        (r"\bJOB\b", "$job"),
        (r"fetch \$job", "fetch $job"),
        (r"^bellows top$", "bellows top --once --json"),
        (r"--tenant T\b", "--tenant default"),
        (r"\bgpu-7\b", "$(bellows nodes --json | grep -o '\"node\": *\"[^\"]*\"' | head -n 1 | cut -d '\"' -f 4)"),
    ]
    said = shown.shell(folder, jobs + operators, swaps, FLEET)
    for file in ("proof.json", "public.json"):
        assert os.path.getsize(f"{folder}/proofs/{file}") > 4, said
    assert "drain" in said and "\nhost\n" in said and "\nnetwork\n" in said, said


def claim_examples(shown):
    """The examples' README: the shell with a fleet in it, and each language's line."""
    (shell,) = shown.blocks("deploy/examples/README.md", 1)
    folder = shown.place("examples", *CIRCUIT)
    shown.shell(folder, shell, [("bellows dev ", "bellows dev --backend cpu --log-level warn ")])
    run("meson", "install", "-C", shown.build, "--no-rebuild", "--quiet", "--tags", "devel,runtime", "--destdir", f"{folder}/root")
    libdir = os.path.dirname(run("find", f"{folder}/root", "-name", "libbellows.so.0").split()[0])
    env = {"PKG_CONFIG_PATH": f"{libdir}/pkgconfig", "PKG_CONFIG_SYSROOT_DIR": f"{folder}/root", "LD_LIBRARY_PATH": libdir, "GOCACHE": f"{folder}/go-cache"}
    page = read(f"{shown.root}/deploy/examples/README.md")
    rows = re.findall(r"^\| \[(\w+)/\S+\]\(\S+\) \| [^|]* \| `([^`]*)` \|$", page, re.MULTILINE)
    tools = {"c": "cc", "go": "go", "rust": "rustc", "js": "npm", "python": "python3"}
    assert [language for language, _ in rows] == list(tools), rows
    for language, line in rows:
        if language == "js" or not shutil.which(tools[language]):
            continue  # clients examples runs it where npm reaches its registry
        shutil.copytree(f"{shown.root}/deploy/examples/{language}", f"{folder}/{language}")
        if language == "python":
            line = "cd python; " + line.replace("…", '"$@"') + "; cd .."
        else:
            line = f"cd {language}; {line}; ./prove \"$@\"; cd .."
        arguments = 'set -- "$BELLOWS_SERVER" ../circuit_final.zkey ../witness.wtns ../verification_key.json; '
        script = "bellows key push circuit_final.zkey; " + arguments + line
        said = shown.run(folder, f"bellows dev --backend cpu --log-level warn --run {shlex.quote('set -e; ' + script)}", **env)
        proof = '"pi_a"' in said or (language == "python" and os.path.exists(f"{folder}/python/proof.json"))
        assert proof, f"{language}: {said}"


def claim_security(shown):
    """SECURITY.md: certificates made, a node started with them, certificates renewed."""
    make, node, tenant, renew = shown.blocks("deploy/SECURITY.md", 4)
    folder = shown.place("security")
    swaps = [(r"10\.0\.0\.7", "127.0.0.1")]
    shown.shell(folder, make, swaps)
    shutil.copytree(f"{shown.root}/deploy/nats", f"{folder}/nats")
    shutil.copytree(f"{folder}/certs", f"{folder}/nats/certs")
    for name in glob.glob(f"{folder}/certs/*"):
        shutil.copy(name, folder)
    text = read(f"{folder}/nats/server.conf").replace('"0.0.0.0:4222"', '"127.0.0.1:-1"').replace("/var/lib/bellows/nats", f"{folder}/store")
    with open(f"{folder}/nats/server.conf", "w", encoding="utf-8") as f:
        f.write(text)
    need("nats-server", "nats-server")
    before = """
stop() { kill -TERM ${node:-} ${coordinator:-} $server 2>/dev/null; wait || true; }
cd nats; nats-server -c server.conf --ports_file_dir .. 2>../nats.log & server=$!; cd ..; trap stop EXIT
until ls nats-server_*.ports >/dev/null 2>&1; do sleep 0.1; kill -0 $server; done
url=tls://127.0.0.1:$(grep -o '://[^"]*' nats-server_*.ports | head -n 1 | sed 's/.*://')
as() { echo --server $url --tls-ca ca.pem --tls-cert $1.pem --tls-key $1.key; }
bellows coordinator $(as coordinator.c1) --metrics '' >coordinator.log 2>&1 & coordinator=$!
until bellows nodes $(as operator.eve) >/dev/null 2>&1; do sleep 0.2; kill -0 $coordinator; done
"""
    swaps = [(r"tls://nats-1:4222", "$url"), (r"^(bellows node .*)$", r"\1 --backend cpu --metrics '' >node.log 2>\&1 & node=$!"),
             (r"^(bellows tenant .*)$", r"\1 $(as operator.eve)")]
    after = ["for n in $(seq 100); do bellows nodes $(as operator.eve) | grep gpu-7 && break; sleep 0.2; done",
             "bellows nodes $(as operator.eve) | grep -q gpu-7"]
    shown.shell(folder, node + tenant + after, swaps, before)
    renewed = [line for line in renew if "list" not in line]
    shown.shell(folder, ["bellows certs list certs || [ $? = 2 ]", *renewed], [(r"10\.0\.0\.7", "127.0.0.1")])
    assert len(renew) - len(renewed) == 1


def claim_filecoin(shown):
    """FILECOIN.md: the key imported, checked and stored; partitions proved here and by a fleet."""
    key, jobs = shown.blocks("deploy/FILECOIN.md", 2)
    parts = [f"bls12381/bits/witness.evaluations as {name}.evaluations" for name in ["partition", *[f"p{i}" for i in range(10)]]]
    folder = shown.place("filecoin", *[f"bls12381/bits/circuit.{kind} as porep.{kind}" for kind in ("params", "r1cs")], *parts)
    swaps = [("…", " ".join(f"p{i}.evaluations" for i in range(2, 9)))]
    lines = [re.sub(*swaps[0], line) for line in key + jobs]
    shown.run(folder, f"bellows dev --backend cpu --log-level warn --run {shlex.quote('set -e; ' + '; '.join(lines))}")
    assert os.path.getsize(f"{folder}/proof.bin") == 192
    assert os.path.getsize(f"{folder}/sector-7/proof.bin") == 10 * 192
    assert os.path.exists(f"{folder}/sector-7/public_9.json"), os.listdir(f"{folder}/sector-7")


STUB = """
#![allow(dead_code)]
use std::{fs::File, io::{self, BufWriter, Write}, path::Path};
pub struct Scalar(u64);
impl Scalar { fn to_repr(&self) -> [u8; 32] { let mut out = [0; 32]; out[..8].copy_from_slice(&self.0.to_le_bytes()); out } }
struct ProvingAssignment<S> { a: Vec<S>, b: Vec<S>, input_assignment: Vec<S>, aux_assignment: Vec<S> }
"""
CALL = """
fn main() {
    let p = ProvingAssignment { a: vec![Scalar(6), Scalar(1)], b: vec![Scalar(7), Scalar(0)], input_assignment: vec![Scalar(1)], aux_assignment: vec![Scalar(6), Scalar(7), Scalar(42)] };
    write_evaluations(Path::new("out"), &p).unwrap();
}
"""


def claim_rust(shown):
    """FILECOIN.md's function, with stand-ins for bellperson's types, writes what proto/evaluations.h draws."""
    rustc = shutil.which("rustc")
    if not rustc:
        raise Skipped("rustc is not installed: apt-get install rustc")
    (code,) = re.findall(r"^```rust\n(.*?)^```", read(f"{shown.root}/deploy/FILECOIN.md"), re.MULTILINE | re.DOTALL)
    folder = shown.place("rust")
    with open(f"{folder}/main.rs", "w", encoding="utf-8") as f:
        f.write(STUB + code + CALL)
    run(rustc, "-D", "warnings", "main.rs", cwd=folder)
    run("./main", cwd=folder)
    with open(f"{folder}/out", "rb") as f:
        got = f.read()
    values = [6, 1, 7, 0, 1, 6, 7, 42]
    head = b"BELLOWSE" + (1).to_bytes(4, "little") + (2).to_bytes(4, "little") + (2).to_bytes(8, "little") + (4).to_bytes(8, "little") + bytes(32)
    assert got == head + b"".join(v.to_bytes(32, "little") for v in values), got


def claim_contributing(shown):
    """CONTRIBUTING.md: programs and options that it names are there."""
    shown.blocks("CONTRIBUTING.md", 2)
    page = read(f"{shown.root}/CONTRIBUTING.md")
    programs = re.findall(r"build/tests/([\w-]+)( --list| --only \"[^\"]*\")?", page)
    assert len(programs) >= 3, programs
    for name, options in programs:
        path = f"{shown.build}/tests/{name}"
        assert os.access(path, os.X_OK), f"{path} is not there"
        if options.startswith(" --only"):
            run(path, "--only", options.split('"')[1])
        elif options:
            assert len(run(path, "--list").split("\n")) > 3, name
    for path in re.findall(r"`((?:tests|node|proto|deploy|cuda)/[\w./]+)`", page):
        assert "NAME" in path or os.path.exists(f"{shown.root}/{path}"), f"CONTRIBUTING.md names {path}"


def check_leaf(shown, lines):
    """The settings of a centre and of a leaf, side by side, are such that the server takes them."""
    server = need("nats-server", "nats-server")
    for side in zip(*(re.split(r" {2,}", line.strip()) for line in lines), strict=True):
        path = f"{shown.place('leaf')}/server.conf"
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(side))
        run(server, "-t", "-c", path)


def claim_rest(shown):
    """Every block of the other pages is one that cannot run here, or is no command."""
    *scale, leaf = shown.blocks("deploy/SCALE.md", 2)
    pages = {page: shown.blocks(page, count) for page, count in (("deploy/compose/README.md", 3), ("docker/README.md", 1), ("deploy/dashboard/README.md", 2))}
    for page, blocks in (pages | {"deploy/SCALE.md": scale}).items():
        for line in (line for block in blocks for line in block):
            known = any(line.startswith(start) for start in EXCEPT) or re.match(r'(cd |install -d |build/bellows dev$|openssl |    openssl|\{")', line)
            assert known, f"{page}: nobody runs {line}"
    check_leaf(shown, leaf)


CLAIMS = [
    ("README: first steps", claim_first),
    ("README: a fleet and its operators", claim_fleet),
    ("the examples' README, in each language that is here", claim_examples),
    ("SECURITY: certificates, a node, renewal", claim_security),
    ("FILECOIN: key, jobs, proofs", claim_filecoin),
    ("FILECOIN: the function in Rust", claim_rust),
    ("CONTRIBUTING: programs and files", claim_contributing),
    ("the other pages show nothing that could have been run", claim_rest),
]

if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="bellows-pages") as scratch:
        main(CLAIMS, Shown(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), scratch))
