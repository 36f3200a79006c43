#!/usr/bin/env python3
"""The chart without helm: charts.py ROOT BELLOWS. Packages from npm are kept beside this test's other files in the build folder.

Templates are rendered with Go's own engine and sprig (render.go), as helm does; what comes out is held against the program and against itself.
Skipped where Go or its packages are missing.
"""

import glob
import json
import os
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../check"))
from claims import Skipped, main, need, npm_folder, read, run

CHART = "deploy/helm/bellows"
SOURCES = "/usr/share/gocode"
PACKAGES = "golang-go golang-github-masterminds-sprig-dev golang-k8s-sigs-yaml-dev"
PORT = 9464


class Chart:
    """The chart, rendered in several ways."""

    def __init__(self, root, program, folder):
        self.root, self.program, self.folder = root, program, folder
        self.build = f"{os.path.dirname(program)}/tests/ship"
        self.settings = {row["name"]: row for row in json.loads(run(program, "help", "--json"))["settings"]}
        self.examples = sorted(glob.glob(f"{root}/deploy/helm/examples/*.yaml"))
        self.rendered = None

    def yaml(self):
        try:
            import yaml  # pylint: disable=import-outside-toplevel
        except ImportError as missing:
            raise Skipped("python3 has no yaml: apt-get install python3-yaml") from missing
        return yaml

    def render(self, *words, ok=True):
        """Objects of the chart with these values files; what was said when it must not work."""
        go, program = need("go", PACKAGES), f"{self.folder}/render"
        if not os.path.isdir(f"{SOURCES}/src/github.com/Masterminds/sprig"):
            raise Skipped(f"Go's packages are not installed: apt-get install {PACKAGES}")
        if not os.path.exists(program):
            env = {**os.environ, "GO111MODULE": "off", "GOPATH": SOURCES, "GOCACHE": f"{self.folder}/cache", "GOFLAGS": ""}
            run(go, "build", "-o", program, f"{self.root}/tests/ship/render.go", env=env)
        text = run(program, f"{self.root}/{CHART}", "fleet", "prod", *words, ok=ok)
        return [o for o in self.yaml().safe_load_all(text) if o] if ok else text

    def each(self):
        """(name, objects by kind) of every example and of the dependency's variant."""
        if self.rendered is None:
            own = f"{self.folder}/nats.yaml"
            with open(own, "w", encoding="utf-8") as f:
                f.write("nats: {enabled: true}\ncoordinator: {settings: {tenant_jobs: 1048576}}\n")
            self.rendered = {os.path.basename(path): self.render(path) for path in [own, *self.examples]}
        return self.rendered.items()


def values(chart, text):
    path = f"{chart.folder}/values.yaml"
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def pods(objects):
    for o in objects:
        if o["kind"] in ("Deployment", "StatefulSet"):
            yield o["kind"], o["spec"]["template"]["spec"], o


def claim_renders(chart):
    for name, objects in chart.each():
        kinds = {o["kind"] for o in objects}
        assert {"ConfigMap", "Deployment", "StatefulSet", "Service", "PodDisruptionBudget"} <= kinds, f"{name}: {kinds}"
        names = [(o["kind"], o["metadata"]["name"]) for o in objects]
        assert len(names) == len(set(names)), names
    kinds = {name: {o["kind"] for o in objects} for name, objects in chart.each()}
    assert "ScaledObject" in kinds["keda.yaml"] and "HorizontalPodAutoscaler" in kinds["hpa.yaml"]


def claim_refuses(chart):
    for text, said in (("{}", "name a NATS server"), ("server: x\nautoscaling: {kind: magic}", "one of none, keda, hpa"),
                       ("server: x\nnode: {settings: {drain: 1h}}", "a number of seconds")):
        assert said in chart.render(values(chart, text), ok=False), text


def claim_settings(chart):
    """What the ConfigMap holds the program takes, each file with its own command's settings."""
    for name, objects in chart.each():
        config = next(o for o in objects if o["kind"] == "ConfigMap")
        for file, text in config["data"].items():
            path = f"{chart.folder}/{file}"
            with open(path, "w", encoding="utf-8") as f:
                f.write(text.replace("/certs/", "/dev/null/"))
            shown = run(chart.program, "config", "--config", path, env={"PATH": "/usr/bin"})
            assert "# file\nserver = tls://" in shown and "# file\nlog_format = json" in shown, f"{name}: {shown}"
            for setting in re.findall(r"^(\w+) =", text, re.MULTILINE):
                assert file.split(".")[0] in chart.settings[setting]["commands"], f"{name}: {setting} in {file}"


def claim_fits(chart):
    """Selectors find their pods, mounts have volumes, ports have names, secrets and settings are those of the values."""
    for name, objects in chart.each():
        labels = {}
        for kind, spec, o in pods(objects):
            labels[kind] = o["spec"]["template"]["metadata"]["labels"]
            wanted = o["spec"]["selector"]["matchLabels"]
            assert wanted.items() <= labels[kind].items(), f"{name}: {kind}"
            volumes = {v["name"] for v in spec["volumes"]} | {c["metadata"]["name"] for c in o["spec"].get("volumeClaimTemplates", [])}
            container = spec["containers"][0]
            assert {m["name"] for m in container["volumeMounts"]} == volumes, f"{name}: {kind}"
            assert container["ports"] == [{"name": "metrics", "containerPort": PORT}]
            mounted = {m["mountPath"] for m in container["volumeMounts"]}
            assert os.path.dirname(container["args"][2]) in mounted and {"/certs", "/tmp"} <= mounted
            assert spec["securityContext"]["runAsNonRoot"] and container["securityContext"]["readOnlyRootFilesystem"]
        assert labels["Deployment"]["app.kubernetes.io/component"] != labels["StatefulSet"]["app.kubernetes.io/component"]
        for o in objects:
            if o["kind"] == "Service":
                assert o["spec"]["selector"].items() <= labels["StatefulSet"].items()
            if o["kind"] == "PodDisruptionBudget":
                assert o["spec"]["selector"]["matchLabels"].items() <= labels["Deployment"].items()


def claim_drain(chart):
    """The kubelet waits longer than a drain may take; the coordinator has a stand-by."""
    for name, objects in chart.each():
        config = next(o for o in objects if o["kind"] == "ConfigMap")["data"]["node.conf"]
        drain = int(re.search(r"^drain = (\d+)s$", config, re.MULTILINE).group(1))
        for kind, spec, o in pods(objects):
            if kind == "StatefulSet":
                assert spec["terminationGracePeriodSeconds"] > drain, name
                assert "kill -TERM 1" in spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][2]
                limits = spec["containers"][0]["resources"]["limits"]
                assert ("nvidia.com/gpu" in limits) == ("backend = cuda" in config), f"{name}: {limits}"
            else:
                assert o["spec"]["replicas"] == 2, name


def claim_backlog(chart):
    """What scales asks for a metric that is there, and changes the set of nodes."""
    table = read(f"{chart.root}/node/telemetry/metric_table.h")
    for name, objects in chart.each():
        for o in objects:
            if o["kind"] in ("ScaledObject", "HorizontalPodAutoscaler"):
                text, spec = json.dumps(o["spec"]), o["spec"]
                for metric in re.findall(r"bellows_\w+_seconds", text):
                    assert f'"{metric}"' in table, metric
                assert "bellows_backlog_seconds" in text
                assert spec["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "fleet-node"}
                node = next(o for o in objects if o["kind"] == "StatefulSet")
                assert "replicas" not in node["spec"], f"{name}: two want to say how many"


def typed(folder, objects, ok=True):
    """Held against the types, which know of names that do not exist; the schemas let those pass."""
    packages = {"keda.sh": "@kubernetes-models/keda", "monitoring.coreos.com": "@kubernetes-models/prometheus-operator"}
    with open(f"{folder}/objects.ts", "w", encoding="utf-8") as f:
        for n, o in enumerate(objects):
            package = packages.get(o["apiVersion"].split("/")[0], "kubernetes-models")
            f.write(f"import {{ I{o['kind']} as Type{n} }} from '{package}/{o['apiVersion']}/{o['kind']}';\nexport const o{n}: Type{n} = {json.dumps(o)};\n")
    return run("node_modules/.bin/tsc", "--noEmit", "--strict", "--module", "node16", "--skipLibCheck", "objects.ts", cwd=folder, ok=ok)


def claim_schemas(chart):
    """Kubernetes, KEDA and the Prometheus operator know every object, each name in it and each value's kind."""
    folder = npm_folder(f"{chart.root}/tests/ship/schemas", f"{chart.build}/schemas")
    for name, objects in chart.each():
        shown = run("node", "validate.js", cwd=folder, input=json.dumps(objects))
        assert shown.count(" is well\n") == len(objects), f"{name}: {shown}"
        typed(folder, objects)
    assert '"replica"\' does not exist' in typed(folder, [{"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replica": 2}}], ok=False)
    broken = [{**o, "spec": {**o["spec"], "replicas": "two"}} for _, objects in chart.each() for o in objects if o["kind"] == "Deployment"]
    assert "replicas must be integer" in run("node", "validate.js", cwd=folder, input=json.dumps(broken), ok=False)


def tls_of(given):
    """What the official chart makes of a `tls` of its values."""
    assert set(given) <= {"enabled", "secretName", "dir", "cert", "key", "merge", "patch"}, f"the official chart knows no {set(given)}"
    return {"cert_file": f"{given['dir']}/{given['cert']}", "key_file": f"{given['dir']}/{given['key']}", **given["merge"]}


def server_config(given):
    """The nats.conf that the official chart makes: JSON with our `merge` over it, `$include` keys as directives, what stands in << >> bare."""
    cluster, stream = given["cluster"], given["jetstream"]
    routes = [f"tls://fleet-nats-{i}.fleet-nats-headless:6222" for i in range(cluster["replicas"])]
    config = {
        "server_name": "<< $POD_NAME >>", "lame_duck_grace_period": "10s", "lame_duck_duration": "30s", "pid_file": "/var/run/nats/nats.pid",
        "port": 4222, "http_port": 8222, "tls": tls_of(given["nats"]["tls"]),
        "cluster": {"name": "fleet-nats", "port": 6222, "no_advertise": True, "routes": routes, "tls": tls_of(cluster["tls"])},
        "jetstream": {
            "max_memory_store": f"<< {stream['memoryStore']['maxSize']} >>",
            "max_file_store": f"<< {stream['fileStore']['pvc']['size']} >>",
            "store_dir": "/data",
        },
        **given["merge"],
    }
    text = json.dumps(config, indent=2, sort_keys=True)
    return re.sub(r'"<<\s+(.*)\s+>>"', r"\1", re.sub(r'".*\$include": "(.*)",?', r"include \1;", text))


def claim_server(chart):
    """The dependency is given the limits of the fleet's own server configuration, and nats-server takes what the official chart makes of it."""
    given = chart.yaml().safe_load(read(f"{chart.root}/{CHART}/values.yaml"))["nats"]["config"]
    fleet = read(f"{chart.root}/deploy/nats/fleet.conf")
    limits = re.findall(r'^(max_\w+|write_deadline): "?(\w+)"?$', fleet, re.MULTILINE)
    assert len(limits) == 6, limits
    for name, value in limits:
        assert value == str(given["merge"][name]).strip("<> "), name
    page = read(f"{chart.root}/deploy/helm/README.md")
    certs = f"{chart.folder}/certs"
    commands = re.findall(r"^ {4}((?:bellows certs|for i in) .*)$", page, re.MULTILINE)
    assert len(commands) == 6, commands
    env = {**os.environ, "PATH": f"{os.path.dirname(chart.program)}:{os.environ['PATH']}"}
    run("bash", "-euc", "\n".join(commands), cwd=chart.folder, env=env)
    for host in ("fleet-nats", "fleet-nats-2.fleet-nats-headless"):
        run(need("openssl", "openssl"), "verify", "-CAfile", f"{certs}/ca.pem", "-verify_hostname", host, f"{certs}/server.pem")
    secret = re.search(r"generic bellows-nats \$\(for f in (.*?);", page).group(1).split()
    for tls in (given["nats"]["tls"], given["cluster"]["tls"]):
        assert tls["enabled"] and tls["secretName"] == "bellows-nats" and given["cluster"]["replicas"] == 3
        os.makedirs(chart.folder + tls["dir"])
        for name in secret:
            shutil.copy(f"{certs}/{name}", chart.folder + tls["dir"])
    assert given["nats"]["tls"]["merge"]["verify_and_map"] is True and given["cluster"]["tls"]["merge"]["verify"] is True
    os.makedirs(f"{chart.folder}/etc/nats-config")
    config = f"{chart.folder}/etc/nats-config/nats.conf"
    with open(config, "w", encoding="utf-8") as f:
        f.write(re.sub('"/(etc|var|data)', rf'"{chart.folder}/\1', server_config(given)))
    server, env = need("nats-server", "nats-server"), {**os.environ, "POD_NAME": "fleet-nats-0"}
    run(server, "-t", "-c", config, env=env)
    os.remove(f"{chart.folder}/etc/nats-certs/nats/accounts.conf")
    assert "accounts.conf" in run(server, "-t", "-c", config, env=env, ok=False)


def claim_version(chart):
    yaml = chart.yaml()
    chart_file = yaml.safe_load(read(f"{chart.root}/{CHART}/Chart.yaml"))
    version = re.search(r"version: '([\d.]+)'", read(f"{chart.root}/meson.build")).group(1)
    assert chart_file["version"] == chart_file["appVersion"] == version


CLAIMS = [
    ("the chart and its examples render", claim_renders),
    ("values that make no sense are refused with a sentence", claim_refuses),
    ("the program takes the rendered settings", claim_settings),
    ("selectors, volumes, ports and accounts fit each other", claim_fits),
    ("a pod has the time to drain, GPUs go with the backend", claim_drain),
    ("scaling asks for the backlog and steers the set of nodes", claim_backlog),
    ("the objects are what Kubernetes, KEDA and the Prometheus operator take", claim_schemas),
    ("nats-server takes what the official chart makes of the values, with the fleet's limits", claim_server),
    ("the chart has the program's version", claim_version),
]

if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="bellows-charts") as scratch:
        main(CLAIMS, Chart(sys.argv[1], os.path.abspath(sys.argv[2]), scratch))
