#!/usr/bin/env python3
"""What `meson install` lays down is whole and agrees with the program: install.py ROOT BUILD.

Installs into a folder of its own and looks at it with the tools that will read it: mandoc and groff, the shells, systemd-analyze, nats-server,
the C compiler. Each claim whose tool is missing is skipped.
"""

import glob
import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../check"))
from claims import main, need, read, run

UNITS = ("bellows-node.service", "bellows-coordinator.service", "bellows-nats.service")
# A unit on its own host: systemd-analyze's exposure, of 100.
EXPOSURE_MAX = {"bellows-node.service": 25, "bellows-coordinator.service": 15, "bellows-nats.service": 15}
SERVERS = ("server.conf", "cluster.conf", "dashboard.conf", "loopback.conf")


class Installed:
    """A tree made by `meson install`, and the tables of the program in it."""

    def __init__(self, root, build, folder):
        self.root, self.build, self.folder = root, build, folder
        options = {o["name"]: o["value"] for o in json.loads(run("meson", "introspect", "--buildoptions", build))}
        run("meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", f"{folder}/tree")
        self.prefix = options["prefix"]
        self.conf = os.path.join(self.prefix, options["sysconfdir"])
        self.bin = self.at(os.path.join(self.prefix, options["bindir"], "bellows"))
        self.share = os.path.join(self.prefix, options["datadir"])
        self.man = self.at(os.path.join(self.prefix, options["mandir"]))
        self.tables = json.loads(run(self.bin, "help", "--json"))

    def at(self, path):
        return self.folder + "/tree" + path

    def pages(self):
        return sorted(glob.glob(f"{self.man}/man[1-8]/*"))

    def unit(self, name):
        return self.at(f"{self.prefix}/lib/systemd/system/{name}")


def claim_there(tree):
    for path in [f"{tree.share}/bellows/bellows.conf", f"{tree.share}/bellows/job.proto", f"{tree.share}/bellows/fleet.proto",
                 f"{tree.share}/bellows/telemetry.proto", f"{tree.share}/bellows/prometheus/rules.yml", f"{tree.share}/bellows/grafana/bellows.json",
                 f"{tree.prefix}/include/bellows/packed.h", f"{tree.conf}/bellows/nats/server.conf"]:
        assert os.path.getsize(tree.at(path)) > 0, path
    assert run(tree.bin, "--version").startswith("bellows ")
    leftovers = [f for f in glob.glob(f"{tree.folder}/tree/**", recursive=True) if f.endswith((".in", ".py", ".o")) or "/tests" in f]
    assert not leftovers, leftovers


def claim_pages(tree):
    """Every command has a page with every option of its, and no option of the program's own."""
    for command in tree.tables["commands"]:
        page = read(f"{tree.man}/man1/bellows-{command['name'].replace(' ', '-')}.1").replace("\\-", "-")
        for option in command["options"]:
            shown = f"--{option['name']}\\fR" in page
            assert shown != option["text"].startswith("Internal:"), f"bellows {command['name']}: --{option['name']}"
        for flag in command["settings"]:
            assert f"--{flag}\\fR" in page, f"bellows {command['name']}: --{flag}"
    settings = read(f"{tree.man}/man5/bellows.conf.5").replace("\\-", "-")
    for row in tree.tables["settings"]:
        assert row["variable"] in settings and row["name"] in settings, row["name"]


def claim_library_page(tree):
    """libbellows(3) names every function of the header, and says what each is for."""
    header = read(tree.at(f"{tree.prefix}/include/bellows/bellows.h"))
    page = read(f"{tree.man}/man3/libbellows.3").replace("\\-", "-")
    functions = re.findall(r"^BELLOWS_API[^;]*?\b(bellows_\w+)\(", header, re.MULTILINE)
    assert len(functions) > 10, functions
    for name in functions:
        assert re.search(rf"^{name},?$", page, re.MULTILINE) and re.search(rf"\\fB.*\b{name}\(", page), name
    for kind, name in re.findall(r"^(struct|enum)\s+(bellows_\w+) \{", header, re.MULTILINE):
        assert f"{kind} {name} {{" in page, name
    for text in ("Zero means the default everywhere", "Outputs stay untouched", "The fleet has verified each proof", "forge proofs", "evaluations: a, b and"):
        assert text in page.replace("\n", " "), text


def claim_mandoc(tree):
    said = run(need("mandoc", "mandoc"), "-T", "lint", "-W", "warning", *tree.pages())
    assert not said, said


def claim_groff(tree):
    groff = need("groff", "groff-base")
    for page in tree.pages():
        run("sh", "-c", f'test -z "$({groff} -man -ww -z -Tutf8 "$0" 2>&1 | tee /dev/stderr)"', page)


def claim_bash(tree):
    script = tree.at(f"{tree.share}/bash-completion/completions/bellows")
    tries = [("su", "submit"), ("key imp", "import"), ("key import --cir", "--circuit"), ("node --backend c", "cuda cpu"), ("node --lane", "--lanes")]
    for typed, expected in tries:
        words = ["bellows", *typed.split(" ")]
        got = run("bash", "-c", 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _bellows; echo "${COMPREPLY[*]}"', script, *words)
        assert got.strip() == expected, f"{typed}: {got}"
    words = run("bash", "-c", 'source "$0"; COMP_WORDS=(bellows ""); COMP_CWORD=1; _bellows; echo "${COMPREPLY[*]}"', script).split()
    assert {c["name"].split()[0] for c in tree.tables["commands"]} <= set(words), words


def claim_zsh(tree):
    run(need("zsh", "zsh"), "-n", tree.at(f"{tree.share}/zsh/site-functions/_bellows"))


def claim_fish(tree):
    script = tree.at(f"{tree.share}/fish/vendor_completions.d/bellows.fish")
    home = {**os.environ, "HOME": tree.folder}
    got = run(need("fish", "fish"), "-c", f"source {script}; complete -C 'bellows key imp'; complete -C 'bellows submit --priority '", env=home)
    assert [line.split("\t")[0] for line in got.split("\n")][:5] == ["import", "high", "low", "normal", "urgent"], got


def claim_units(tree):
    """Each is accepted, with the program where the unit looks for it."""
    analyze = need("systemd-analyze", "systemd")
    copies = []
    for name in UNITS:
        text = read(tree.unit(name)).replace(f"{tree.prefix}/bin/bellows", tree.bin)
        if not os.path.exists("/usr/sbin/nats-server"):
            text = text.replace("=nats-server", "=/bin/true")
        copies.append(f"{tree.folder}/{name}")
        with open(copies[-1], "w", encoding="utf-8") as f:
            f.write(text)
    said = run(analyze, "verify", "--man=no", *copies)
    assert not said, said
    for copy in copies:
        run(analyze, "security", "--offline=true", f"--threshold={EXPOSURE_MAX[os.path.basename(copy)]}", copy)


def claim_configured(tree):
    """Each waits for its settings, keeps no core of a process that holds witnesses, and names options that exist."""
    commands = {c["name"]: c for c in tree.tables["commands"]}
    for name in UNITS:
        text = read(tree.unit(name))
        assert re.search(rf"^ConditionPathExists={tree.conf}/bellows/", text, re.MULTILINE), name
        assert "\nLimitCORE=0\n" in text and "\nUser=bellows\n" in text, name
        for command, words in re.findall(r"^ExecStart=\S+/bellows (\w+)(.*)$", text, re.MULTILINE):
            known = {"config"} | {o["name"] for o in commands[command]["options"]} | set(commands[command]["settings"])
            assert set(re.findall(r"--([\w-]+)", words)) <= known, words
    assert "\nLimitMEMLOCK=infinity\n" in read(tree.unit("bellows-node.service"))


def claim_sample(tree):
    """The sample is made from the option table, and is taken with every line in force."""
    sample = read(tree.at(f"{tree.share}/bellows/bellows.conf"))
    assert sample == run(tree.bin, "config", "--sample")
    path = f"{tree.folder}/all.conf"
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(line[1:] for line in sample.split("\n") if re.match(r"#\w+ = ", line)) + "\n")
    shown = run(tree.bin, "config", "--config", path, env={"PATH": "/usr/bin"})
    assert shown.count("# file\n") > 10, shown


def claim_servers(tree):
    server = need("nats-server", "nats-server")
    folder = tree.at(f"{tree.conf}/bellows/nats")
    run(tree.bin, "certs", "ca", f"{folder}/certs")
    run(tree.bin, "certs", "server", f"{folder}/certs", "nats-1")
    for holder in ("coordinator.c1", "worker.gpu-7", "submitter.acme.ada", "dashboard.wall"):
        run(tree.bin, "certs", "issue", f"{folder}/certs", holder)
    run(tree.bin, "certs", "accounts", f"{folder}/certs")
    shipped = {os.path.basename(path) for path in glob.glob(f"{tree.root}/deploy/nats/*.conf")}
    assert shipped == set(SERVERS) | {"fleet.conf", "websocket.conf"}, shipped
    for name in SERVERS:
        run(server, "-t", "-c", name, cwd=folder, env={**os.environ, "BELLOWS_NATS_NAME": "nats-1"})
    os.remove(f"{folder}/certs/accounts.conf")
    assert "accounts.conf" in run(server, "-t", "-c", "server.conf", cwd=folder, ok=False)


def claim_header(tree):
    """The public headers compile alone, in plain C, and the messages with protoc-c."""
    include = tree.at(f"{tree.prefix}/include")
    for header in glob.glob(f"{include}/**/*.h", recursive=True):
        outside = f"#include <{os.path.relpath(header, include)}>\n"
        run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{include}", "-fsyntax-only", "-x", "c", "-", input=outside)
    share = tree.at(f"{tree.share}/bellows")
    run("protoc-c", f"--proto_path={share}", f"--c_out={tree.folder}", *glob.glob(f"{share}/*.proto"))


def claim_no_drag(tree):
    """A build without tests has no place that the environment slows down, and no device that it makes lie."""
    for args, there in (([], False), (["-DBELLOWS_DRAG"], True)):
        run("cc", "-D_GNU_SOURCE", f"-I{tree.root}", *args, "-c", f"{tree.root}/node/base/drag.c", "-o", f"{tree.folder}/drag.o")
        with open(f"{tree.folder}/drag.o", "rb") as f:
            object_file = f.read()
        for variable in (b"BELLOWS_SLOW_DECODE", b"BELLOWS_LYING"):
            assert (variable in object_file) == there, f"{variable} with {args}"
    text = read(f"{tree.root}/meson.build")
    assert "if get_option('tests') or get_option('debug_checks')\n    add_project_arguments('-DBELLOWS_DRAG'" in text


def claim_packages(tree):
    """make.py asks npm once per lock file; again after a try that failed, even if the lock file is the old one once more."""
    fake, out = f"{tree.folder}/fake", f"{tree.folder}/page"
    npm, source = f"{fake}/bin/npm", f"{fake}/deploy/dashboard"
    os.makedirs(f"{fake}/bin")
    os.makedirs(source)
    with open(npm, "w", encoding="utf-8") as f:
        f.write(f"#!/bin/sh\necho \"$@\" >>{fake}/asked\ngrep -q absent package-lock.json || exit 0\necho no such package >&2\nexit 1\n")
    os.chmod(npm, 0o755)
    with open(f"{source}/package.json", "w", encoding="utf-8") as f:
        f.write("{}")
    words = (sys.executable, f"{tree.root}/deploy/dashboard/make.py", "--packages", fake, out)
    for lock, well, asked in (("one", True, 1), ("one", True, 1), ("absent", False, 2), ("one", True, 3), ("two", True, 4)):
        with open(f"{source}/package-lock.json", "w", encoding="utf-8") as f:
            f.write(lock)
        said = run(*words, env={**os.environ, "PATH": f"{fake}/bin:{os.environ['PATH']}"}, ok=well)
        assert well or "no such package" in said, said
        calls = read(f"{fake}/asked").split("\n")[:-1]
        assert len(calls) == asked and set(calls) == {"ci --ignore-scripts --no-audit --no-fund"}, calls


def claim_playbook(tree):
    """Each text of the playbook and of Filecoin's page, with anything for its dots, stands in the sources; so does each account that tuning names."""
    page = read(f"{tree.root}/deploy/README.md")
    sources = "\n".join(read(path) for path in glob.glob(f"{tree.root}/node/**/*.[ch]", recursive=True))
    said = re.sub(r'"\s*\n\s*"', "", re.sub(r'"\s*PRI[ux]\d+\s*"', "", sources))
    rows = page.split("## When something fails")[1] + read(f"{tree.root}/deploy/FILECOIN.md").split("## When it is refused")[1]
    first = [line.split(" | ")[0] for line in rows.split("\n") if line.startswith("| ")]
    quoted = re.findall(r"`([^`]+)`", "\n".join(first))
    assert len(quoted) > 25 and sum("`" not in cell for cell in first) == 2, first  # the heads of the two tables
    accounts = re.findall(r"^\| (`[^|]*) \|", page.split("## Tuning")[1].split("## ")[0], re.MULTILINE)
    for text in quoted + re.findall(r"`([^`]+)`", " ".join(accounts)):
        pattern = "[^\"]{0,30}".join(re.escape(part) for part in re.split(" ?… ?", text))
        assert re.search(pattern, said), f"nothing in node says: {text}"


CLAIMS = [
    ("everything is installed, and nothing else", claim_there),
    ("every command has a man page with its options, and no others", claim_pages),
    ("the library has a man page with all that its header says", claim_library_page),
    ("mandoc finds nothing in the man pages", claim_mandoc),
    ("groff warns of nothing in the man pages", claim_groff),
    ("bash completes commands, options and their words", claim_bash),
    ("zsh reads its completions", claim_zsh),
    ("fish completes commands and words", claim_fish),
    ("systemd accepts the units and finds them well shut in", claim_units),
    ("units start only when configured, with options that exist", claim_configured),
    ("the sample settings are the option table's, and valid", claim_sample),
    ("nats-server accepts every configuration", claim_servers),
    ("public headers and messages compile from outside", claim_header),
    ("packages have no slow places", claim_no_drag),
    ("the page's packages are asked for once per lock file", claim_packages),
    ("the playbook quotes what the program says", claim_playbook),
]

if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="bellows-install") as scratch:
        main(CLAIMS, Installed(sys.argv[1], sys.argv[2], scratch))
