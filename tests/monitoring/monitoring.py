#!/usr/bin/env python3
"""The alerts and the board ask for metrics that exist: monitoring.py ROOT.

Every metric, label and label value that deploy/prometheus/rules.yml, its test and deploy/grafana/bellows.json name is looked up in the tables that
/metrics is made from; promtool checks the rules and runs their tests. Where promtool is missing that claim is skipped.
"""

import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../check"))
from claims import main, need, read, run

TABLE = "node/telemetry/metric_table.h"
RULES, RULES_TEST, BOARD = "deploy/prometheus/rules.yml", "deploy/prometheus/rules_test.yml", "deploy/grafana/bellows.json"
# What a list of the table is called as a label, as node/telemetry/metric.c says.
LABELS = {
    "ACCOUNT": "account", "STEP": "step", "OUTCOME": "outcome", "LANE_STATE": "state", "MEMORY": "memory", "CLOCK": "clock", "DIRECTION": "direction",
    "LINK": "link", "PART_STATE": "state", "PRIORITY": "priority", "FLEET_LANES": "state", "DECISION": "decision", "STORE": "store",
}
LISTS = {
    "OUTCOME": "METRIC_OUTCOMES", "LANE_STATE": "METRIC_LANE_STATES", "MEMORY": "METRIC_MEMORIES", "CLOCK": "METRIC_CLOCKS", "DIRECTION": "METRIC_DIRECTIONS",
    "LINK": "METRIC_LINKS", "PART_STATE": "METRIC_PART_STATES", "PRIORITY": "METRIC_PRIORITIES", "FLEET_LANES": "METRIC_FLEET",
    "DECISION": "METRIC_DECISIONS", "STORE": "METRIC_STORES",
}
EVERYWHERE = {"job", "instance"}
# Of Grafana: what it fills in itself, and the names of its units, of its panels.
BUILT_IN = {"__rate_interval", "__interval", "__range"}
UNITS = {"short", "s", "percentunit", "Bps", "bytes", "joule", "watt", "celsius", None}
PANELS = {"stat", "timeseries", "row", "table", "bargauge"}


class Metrics:
    """The tables: name → (kind, labels, label → values)."""

    def __init__(self, metric_table, ledger_table, span_table):
        self.rows = {}
        row = re.compile(r'ROW\(\w+,\s*(COUNTER|GAUGE|HISTOGRAM),\s*(LANE|COORDINATOR),\s*"(\w+)",\s*\w+,\s*(\w+),')
        values = {
            "ACCOUNT": set(re.findall(r'ROW\(\w+,\s*"([\w.]+)"', ledger_table)),
            "STEP": set(re.findall(r'ROW\(\w+,\s*"([\w.]+)"', span_table)),
        }
        for name, macro in LISTS.items():
            line = re.search(rf"#define {macro}\(ROW\)(.*)", metric_table).group(1)
            values[name] = set(re.findall(r'"([^"]*)"', line))
        for kind, scope, name, label in row.findall(metric_table):
            labels = {"node": None, "gpu": None} if scope == "LANE" else {}
            if label != "NONE":
                labels[LABELS[label]] = values[label]
            for suffix in ("_bucket", "_sum", "_count") if kind == "HISTOGRAM" else ("",):
                self.rows[name + suffix] = {**labels, **({"le": None} if suffix == "_bucket" else {})}

    def complaints(self, expression):
        """What an expression names that does not exist."""
        found = []
        for name, selector in re.findall(r"\b(bellows_\w+)(?:\{([^}]*)\})?", expression):
            if name not in self.rows:
                found.append(f"{name} is no metric")
                continue
            for label, operator, value in re.findall(r'(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"', selector):
                allowed = self.rows[name].get(label, False)
                if label in EVERYWHERE or allowed is None or value.startswith("$"):
                    continue
                if allowed is False:
                    found.append(f"{name} has no label {label}")
                elif operator in ("=", "!=") and value not in allowed:
                    found.append(f'{name} has no {label} "{value}"')
                elif operator in ("=~", "!~") and not any(re.fullmatch(value, one) for one in allowed):
                    found.append(f"no {label} of {name} is like {value}")
        return found


def tables(root):
    return Metrics(*(read(f"{root}/{path}") for path in (TABLE, "node/telemetry/ledger_table.h", "node/telemetry/span_table.h")))


def targets_of(board):
    return [target for panel in board["panels"] for target in panel.get("targets", ())]


def complaints_of_model(board):
    """Where the board is not what Grafana imports: its JSON model, as far as that can be told without Grafana."""
    found = []
    variables = {v["name"]: v for v in board["templating"]["list"]}
    source = {"type": "prometheus", "uid": "${datasource}"}
    if not 36 <= board["schemaVersion"] <= 41:
        found.append(f"schemaVersion {board['schemaVersion']}")
    if not re.fullmatch(r"[\w-]{1,40}", board["uid"]):
        found.append(f"uid {board['uid']}")
    if variables.get("datasource", {}).get("type") != "datasource" or variables["datasource"].get("query") != "prometheus":
        found.append("no variable chooses the data source")
    for what in [v for v in variables.values() if v["type"] == "query"] + board["annotations"]["list"] + targets_of(board):
        if what.get("datasource") != source:
            found.append(f"{what.get('name', what.get('expr'))} does not ask the chosen data source")
    for panel in board["panels"]:
        title, row = panel["title"], panel["type"] == "row"
        unit = panel.get("fieldConfig", {}).get("defaults", {}).get("unit")
        references = [target["refId"] for target in panel.get("targets", ())]
        if panel["type"] not in PANELS or unit not in UNITS:
            found.append(f"{title}: {panel['type']} in {unit}")
        if len(references) != len(set(references)) or bool(references) == row:
            found.append(f"{title}: queries {references}")
        if not row and panel.get("datasource") != source:
            found.append(f"{title} does not ask the chosen data source")
    texts = [e for target in targets_of(board) for e in (target["expr"], target.get("legendFormat", ""))]
    for name in set(re.findall(r"\$\{?(\w+)", " ".join(texts))) - set(variables) - BUILT_IN:
        found.append(f"${name} is no variable")
    return found


def complaints_of_legends(board, metrics):
    """Labels in a legend that what it is drawn from does not have."""
    found = []
    for target in targets_of(board):
        expression = target["expr"]
        groups = [re.split(r"\s*,\s*", words) for words in re.findall(r"\bby \(([^)]*)\)", expression)]
        names = re.findall(r"\b(bellows_\w+)", expression)
        labels = set(groups[0]) if groups else set(metrics.rows.get(names[0], ()))
        wanted = set(re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", "")))
        found += [f"{expression}: no label {label}" for label in wanted - labels]
    return found


def expressions_of_board(board):
    """Every expression of the board, also of its variables and annotations."""
    for annotation in board["annotations"]["list"]:
        yield annotation["expr"]
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]
    for variable in board["templating"]["list"]:
        if isinstance(variable.get("query"), dict):
            yield variable["query"]["query"]


def claim_table(root):
    rows = tables(root).rows
    assert len(rows) > 40, f"{len(rows)} rows were read"
    assert "wait.decode" in rows["bellows_ledger_seconds_total"]["account"]
    assert "bellows_partition_duration_seconds_bucket" in rows


def claim_finds(root):
    metrics = tables(root)
    for bad in ("bellows_moon_phase", 'bellows_lane_state{state="asleep"}', 'bellows_lane_up{colour="red"}', 'bellows_ledger_seconds_total{account=~"wait[.]x.*"}', "bellows_partition_duration_seconds"):
        assert metrics.complaints(bad), f"{bad} was not found out"


def claim_rules(root):
    metrics = tables(root)
    for path in (RULES, RULES_TEST):
        found = metrics.complaints(read(f"{root}/{path}"))
        assert not found, f"{path}: {found}"


def claim_board(root):
    metrics, board = tables(root), json.loads(read(f"{root}/{BOARD}"))
    expressions = list(expressions_of_board(board))
    found = [text for expression in expressions for text in metrics.complaints(expression)]
    assert not found, found
    assert len(expressions) > 20
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids)), "two panels have one id"


def claim_model(root):
    board, metrics = json.loads(read(f"{root}/{BOARD}")), tables(root)
    found = complaints_of_model(board) + complaints_of_legends(board, metrics)
    assert not found, found
    panel = next(p for p in board["panels"] if p["type"] == "timeseries")
    for place, name, value in (
        (board, "schemaVersion", 12), (board, "uid", "a b"), (board["templating"], "list", []), (panel, "datasource", "Prometheus"),
        (panel, "type", "graph"), (panel, "targets", panel["targets"] * 2), (panel["targets"][0], "expr", "up{node=~\"$host\"}"),
        (panel["targets"][0], "datasource", None), (panel["fieldConfig"]["defaults"], "unit", "percents"),
    ):
        kept, place[name] = place[name], value
        assert complaints_of_model(board), f"{name} = {value} was not found out"
        place[name] = kept
    panel["targets"][0]["legendFormat"] = "{{colour}}"
    assert complaints_of_legends(board, metrics), "a legend's label was not found out"


def claim_layout(root):
    taken = {}
    for panel in json.loads(read(f"{root}/{BOARD}"))["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24, panel["title"]
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                assert (x, y) not in taken, f"{panel['title']} lies on {taken[(x, y)]}"
                taken[(x, y)] = panel["title"]


def claim_alerts_are_tested(root):
    alerts = set(re.findall(r"alert: (\w+)", read(f"{root}/{RULES}")))
    fired = set(re.findall(r"alertname: (\w+)\n\s+exp_alerts", read(f"{root}/{RULES_TEST}")))
    assert alerts == fired, f"only in one of them: {alerts ^ fired}"


def claim_promtool(root):
    promtool = need("promtool", "prometheus")
    run(promtool, "check", "rules", RULES, cwd=root)
    run(promtool, "check", "config", "deploy/prometheus/prometheus.yml", cwd=root)


def claim_promtool_tests(root):
    run(need("promtool", "prometheus"), "test", "rules", RULES_TEST, cwd=root)


def claim_promql(root):
    """The board's expressions are PromQL: promtool reads them as rules."""
    promtool = need("promtool", "prometheus")
    expressions = [e for e in expressions_of_board(json.loads(read(f"{root}/{BOARD}"))) if "label_values" not in e]
    plain = [e.replace("$__rate_interval", "5m").replace("$__range", "1h").replace("$node", ".*") for e in expressions]
    rules = {"groups": [{"name": "board", "rules": [{"record": f"board:{i}", "expr": e} for i, e in enumerate(plain)]}]}
    run(promtool, "check", "rules", "/dev/stdin", input=json.dumps(rules))


CLAIMS = [
    ("the tables of metrics are read", claim_table),
    ("a metric, a label or a value that does not exist is found out", claim_finds),
    ("alerts and their tests name what exists", claim_rules),
    ("the board names what exists", claim_board),
    ("the board is a model that Grafana takes: version, data source, variables, queries, units, legends", claim_model),
    ("the board's panels lie beside each other", claim_layout),
    ("every alert has a test in which it fires", claim_alerts_are_tested),
    ("promtool accepts the rules and the sample configuration", claim_promtool),
    ("promtool's tests of the rules pass", claim_promtool_tests),
    ("the board's expressions are PromQL", claim_promql),
]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(CLAIMS, sys.argv[1])
