#!/usr/bin/env python3
"""Dockerfile and compose file without an engine: containers.py ROOT BELLOWS.

What they name is there and is what they say: stages, files, images, volumes, commands, options, settings. Their scripts run here, and nats-server
reads the configuration that compose puts together.
"""

import http.server
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../check"))
from claims import Skipped, main, need, read, run

DOCKERFILE, COMPOSE = "docker/Dockerfile", "deploy/compose"
INSTRUCTIONS = {"FROM", "ARG", "RUN", "COPY", "ENV", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD", "USER"}
TARGETS = ("cpu", "cuda", "dashboard")
PINNED = re.compile(r"^[\w./-]+:[\w.-]*\d[\w.-]*$")


class Shipped:
    """The tree, the program's tables, and a folder to work in."""

    def __init__(self, root, program, folder):
        self.root, self.program, self.folder = root, program, folder
        self.tables = json.loads(run(program, "help", "--json"))
        self.commands = {c["name"]: c for c in self.tables["commands"]}
        self.variables = {row["variable"] for row in self.tables["settings"]} | {"BELLOWS_CONFIG"}
        self.variables |= {o["variable"] for c in self.commands.values() for o in c["options"] if o["variable"]}
        self.stages = stages_of(read(f"{root}/{DOCKERFILE}"))

    def compose(self):
        try:
            import yaml  # pylint: disable=import-outside-toplevel
        except ImportError as missing:
            raise Skipped("python3 has no yaml: apt-get install python3-yaml") from missing
        return yaml.safe_load(read(f"{self.root}/{COMPOSE}/compose.yaml"))

    def check_words(self, words, where):
        """A command line of the program: command and options exist."""
        name = next((n for n in (" ".join(words[:2]), words[0]) if n in self.commands), None)
        assert name, f"{where}: {words} is no command"
        command = self.commands[name]
        known = {o["name"] for o in command["options"]} | set(command["settings"]) | {"config", "help"}
        for word in words:
            if word.startswith("--"):
                assert word[2:].split("=")[0] in known, f"{where}: {word}"


def stages_of(text):
    """Name → (parent, [(instruction, rest)]), continued lines joined, values of ARG filled in."""
    arguments, stages, name = {}, {}, None
    text = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE)
    for line in re.sub(r"\\\n\s*", "", text).split("\n"):
        if not line.strip():
            continue
        instruction, _, rest = line.strip().partition(" ")
        assert instruction in INSTRUCTIONS, f"{instruction} is no instruction that is used here"
        if instruction == "ARG" and name is None:
            key, _, value = rest.partition("=")
            arguments[key] = value
        elif instruction == "FROM":
            parent, _, name = re.sub(r"\$\{(\w+)\}", lambda m: arguments[m.group(1)], rest).partition(" AS ")
            assert name, f"a stage without a name: {rest}"
            stages[name] = (parent, [])
        else:
            stages[name][1].append((instruction, rest))
    return stages


def chain(stages, name):
    """All instructions of a target, those of its parents first."""
    parent, own = stages[name]
    return (chain(stages, parent) if parent in stages else []) + own


def claim_stages(ship):
    """Images from elsewhere have versions; what is copied is there; shell parses."""
    for name, (parent, instructions) in ship.stages.items():
        assert parent in ship.stages or PINNED.match(parent), f"{name}: {parent} has no version"
        for instruction, rest in instructions:
            if instruction == "RUN":
                run("bash", "-n", "-c", re.sub(r"--mount=\S+ ", "", rest))
                for stage in re.findall(r"from=([\w-]+)", rest):
                    assert stage in ship.stages, f"{name}: {stage}"
            if instruction == "COPY" and rest.startswith("--from="):
                assert rest[7:].split(" ")[0] in ship.stages, rest
            elif instruction == "COPY":
                for path in rest.split(" ")[:-1]:
                    assert os.path.exists(f"{ship.root}/{path}"), f"{name}: {path}"


def claim_targets(ship):
    """Not root, with a health check; packages without recommendations, their lists gone."""
    for name in TARGETS:
        all_of = chain(ship.stages, name)
        users = [rest for instruction, rest in all_of if instruction == "USER"]
        assert users and re.match(r"[1-9]\d*", users[-1]), f"{name} runs as {users}"
        assert all_of[-1][0] == "USER", f"{name}: something comes after USER"
        assert any(instruction == "HEALTHCHECK" for instruction, _ in all_of), name
        for instruction, rest in all_of:
            if instruction == "RUN" and "apt-get install" in rest:
                assert "--no-install-recommends" in rest and "rm -rf /var/lib/apt/lists" in rest, rest
            for variable in re.findall(r"\b(BELLOWS_\w+)=", rest if instruction == "ENV" else ""):
                assert variable in ship.variables, variable


def claim_snapshot(ship):
    """The line that turns the image's list of sources to its own day."""
    command = next(rest for _, rest in ship.stages["base"][1] if rest.startswith("sed"))
    script = re.match(r"sed -i '([^']*)'", command).group(1)
    sources = "Types: deb\n# http://snapshot.debian.org/archive/debian/20250520T000000Z\nURIs: http://mirror/debian\nSuites: bookworm\n"
    turned = run("sed", script, input=sources)
    assert turned == "Types: deb\nURIs: http://snapshot.debian.org/archive/debian/20250520T000000Z\nSuites: bookworm\n", turned


def claim_health(ship):
    """The health check tells answers apart."""

    class Pages(http.server.BaseHTTPRequestHandler):
        """Healthy, not ready."""

        def do_GET(self):
            self.send_response(200 if self.path == "/healthz" else 503)
            self.end_headers()

        def log_message(self, format, *args):  # pylint: disable=redefined-builtin
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    env = {**os.environ, "BELLOWS_METRICS": f"0.0.0.0:{server.server_port}"}
    script = f"{ship.root}/docker/health"
    run(script, env=env)
    run(script, "readyz", env=env, ok=False)
    server.shutdown()
    server.server_close()
    run(script, env=env, ok=False)


def claim_compose(ship):
    """Everything that is named is declared, everything that is declared is used."""
    compose = ship.compose()
    services, used = compose["services"], {"volumes": set(), "configs": set()}
    assert {"nats", "coordinator", "node", "node-gpu", "dashboard"} <= set(services)
    for name, service in services.items():
        image = service["image"]
        assert image in {f"bellows:{target}" for target in TARGETS} or PINNED.match(image), f"{name}: {image}"
        assert service["cap_drop"] == ["ALL"] and service["read_only"], f"{name} may do more than it must"
        for other in service.get("depends_on", {}):
            assert other in services, f"{name} waits for {other}"
        for volume in service.get("volumes", []):
            if not volume.startswith("."):
                used["volumes"].add(volume.split(":")[0])
        used["configs"] |= {config["source"] for config in service.get("configs", [])}
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), f"{name}: {port} is open to other machines"
    for kind, names in used.items():
        assert names == set(compose[kind]), f"{kind}: {names ^ set(compose[kind])}"
    for config in compose["configs"].values():
        assert os.path.exists(f"{ship.root}/{COMPOSE}/{config['file']}"), config
    assert services["node-gpu"]["ulimits"]["memlock"] == -1 and services["node-gpu"]["image"] == "bellows:cuda"
    assert services["node"]["profiles"] == ["cpu"] and services["node-gpu"]["profiles"] == ["gpu"]


def claim_commands(ship):
    """Commands, options and settings of the compose file and of the pages beside it are the program's."""
    for name, service in ship.compose()["services"].items():
        if service["image"].startswith("bellows:") and service.get("command"):
            ship.check_words(service["command"], name)
        for variable in service.get("environment", {}):
            assert variable in ship.variables, f"{name}: {variable}"
    pages = [read(f"{ship.root}/{path}/README.md") for path in (COMPOSE, "deploy/helm")]
    for words in re.findall(r"docker compose run --rm (?:submit|operate) (.*?)(?:  +#.*)?\n", pages[0]):
        ship.check_words(words.split(" "), "README")
    for words in re.findall(r"\bbellows (certs .*?)(?:  +#.*|;.*)?\n", pages[1] + read(f"{ship.root}/{COMPOSE}/make-certs")):
        ship.check_words(words.split(" "), "README")


def claim_certificates(ship):
    """make-certs may run twice, keeps keys to their owner, and nats-server takes what it made."""
    env = {**os.environ, "OUT": f"{ship.folder}/out", "OWNER": f"{os.getuid()}:{os.getgid()}", "PATH": f"{os.path.dirname(ship.program)}:{os.environ['PATH']}"}
    script = f"{ship.root}/{COMPOSE}/make-certs"
    run("bash", script, env=env)
    before = read(f"{ship.folder}/out/node/holder.pem")
    run("bash", script, env=env)
    assert before == read(f"{ship.folder}/out/node/holder.pem")
    for folder in ("nats", "coordinator", "node", "submitter", "operator", "dashboard"):
        assert not os.path.exists(f"{ship.folder}/out/{folder}/ca.key")
        for name in os.listdir(f"{ship.folder}/out/{folder}"):
            mode = os.stat(f"{ship.folder}/out/{folder}/{name}").st_mode
            assert stat.S_IMODE(mode) == 0o400, f"{folder}/{name}: {oct(mode)}"
    compose, folder = ship.compose(), f"{ship.folder}/nats"
    os.makedirs(folder)
    for config in compose["services"]["nats"]["configs"]:
        shutil.copy(f"{ship.root}/{COMPOSE}/{compose['configs'][config['source']]['file']}", f"{folder}/{os.path.basename(config['target'])}")
    os.symlink(f"{ship.folder}/out/nats", f"{folder}/certs")
    run(need("nats-server", "nats-server"), "-t", *compose["services"]["nats"]["entrypoint"][1:], cwd=folder)


CLAIMS = [
    ("every stage stands on a version, copies what is there, and its shell parses", claim_stages),
    ("images do not run as root and say how they are", claim_targets),
    ("packages come from the snapshot of the image's day", claim_snapshot),
    ("the health check tells healthy, not ready and gone apart", claim_health),
    ("the compose file is whole, and opens nothing to other machines", claim_compose),
    ("its commands, options and settings exist", claim_commands),
    ("its certificates are made once, and its server reads them", claim_certificates),
]

if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="bellows-containers") as scratch:
        main(CLAIMS, Shipped(sys.argv[1], os.path.abspath(sys.argv[2]), scratch))
