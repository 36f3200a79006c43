#!/usr/bin/env python3
"""The chart without helm: charts.py ROOT BELLOWS.

Templates are rendered with Go's own engine and sprig (render.go), as helm does; what comes out is held against the program and against itself.
Skipped where Go or its packages are missing.
"""

import glob
import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../check"))
from claims import Skipped, main, need, read, run

CHART = "deploy/helm/bellows"
SOURCES = "/usr/share/gocode"
PACKAGES = "golang-go golang-github-masterminds-sprig-dev golang-k8s-sigs-yaml-dev"
PORT = 9464


class Chart:
    """The chart, rendered in several ways."""

    def __init__(self, root, program, folder):
        self.root, self.program, self.folder = root, program, folder
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


def claim_server(chart):
    """The dependency is given the limits of the fleet's own server configuration."""
    yaml = chart.yaml()
    given = yaml.safe_load(read(f"{chart.root}/{CHART}/values.yaml"))["nats"]["config"]
    fleet = read(f"{chart.root}/deploy/nats/fleet.conf")
    for name in ("max_payload", "max_pending", "write_deadline"):
        value = re.search(rf'^{name}: "?(\w+)"?$', fleet, re.MULTILINE).group(1)
        assert value == given["merge"][name].strip("<> "), name
    tls = given["nats"]["tls"]
    assert tls["merge"]["verify_and_map"] is True and given["cluster"]["replicas"] == 3
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
    ("the NATS dependency has the fleet's limits", claim_server),
]

if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="bellows-charts") as scratch:
        main(CLAIMS, Chart(sys.argv[1], os.path.abspath(sys.argv[2]), scratch))
