#!/usr/bin/env python3
"""Watching a fleet, three ways: watching.py BELLOWS VECTORS [sanitized].

A real `bellows dev` whose decoding is slowed down on purpose proves some jobs. That this is why its devices waited must be seen in the
telemetry messages, in `bellows top --once --json` and in /metrics alike. The page of metrics is held against itself (counters do not fall,
accounts add up to the time that passed, histograms are consistent) and against promtool. Then `bellows top` is looked at in a
terminal of tmux: screens, keys, resizing, colours. What is not installed is skipped.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../check"))
from claims import main, need

SLOW_NS = 400_000_000  # each decode
JOBS = 6
SANITIZED = "sanitized" in sys.argv


class Fleet:
    """One `bellows dev`, with everything of it in one folder."""

    def __init__(self, bellows, vectors, folder, *words, **more):
        os.makedirs(folder, exist_ok=True)
        self.bellows, self.vectors, self.dir = bellows, vectors, folder
        self.env = dict(os.environ, XDG_RUNTIME_DIR=folder, TMPDIR=folder, **more)
        self.log = open(f"{folder}/dev.log", "w")
        self.process = subprocess.Popen([bellows, "dev", "--dir", f"{folder}/fleet", *words], env=self.env, stdout=self.log, stderr=self.log)
        until(lambda: "Ctrl-C" in read(f"{folder}/dev.log"), "the fleet is ready", 60)
        self.url = read(f"{folder}/fleet/url").strip()
        self.env["BELLOWS_SERVER"] = self.url

    def run(self, *words, check=True):
        done = subprocess.run([self.bellows, *words], env=self.env, capture_output=True, text=True, timeout=120)
        assert not check or done.returncode == 0, f"bellows {' '.join(words)}: exit code {done.returncode}: {done.stderr}"
        return done

    def submit(self, job, circuit="bn128/chain200", witness="", *words):
        files = (f"{self.vectors}/{circuit}/circuit.zkey", witness or f"{self.vectors}/{circuit}/witness.wtns")
        return self.run("submit", *files, "--job", job, "--allow-insecure-keys", *words)

    def top(self):
        return json.loads(self.run("top", "--once", "--json").stdout)

    def metrics(self, who):
        base = read(f"{self.dir}/fleet/{who}.metrics").strip()
        with urllib.request.urlopen(f"{base}/metrics", timeout=10) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"), answer.headers["Content-Type"]
            return answer.read().decode()

    def page(self, who, path):
        base = read(f"{self.dir}/fleet/{who}.metrics").strip()
        with urllib.request.urlopen(f"{base}{path}", timeout=10) as answer:
            return answer.status

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)
        self.log.close()
        for who in ("node", "coordinator"):  # what broke was started again, and no claim would notice
            broken = re.search(r"assertion failed.*|.*Sanitizer.*|.*runtime error:.*", read(f"{self.dir}/fleet/{who}.log"))
            assert not broken, f"{who}.log: {broken.group(0)}"


def read(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def until(holds, what, seconds=30):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"after {seconds} s not: {what}"
        time.sleep(0.1)


def nats_server():
    return shutil.which("nats-server", path="/usr/local/bin:/usr/bin:/usr/local/sbin:/usr/sbin")


# --- Messages, read without any library of ours ---


def fields(data):
    """Protobuf: (number, value) of one message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        elif tag & 7 == 2:
            length = varint()
            yield tag >> 3, data[at:at + length]
            at += length
        else:
            raise AssertionError(f"wire type {tag & 7}")


def device_reports(url, seconds):
    """The accounts of every device report heard meanwhile, as proto/telemetry.proto describes it: {gpu: {account: ns}}."""
    host, port = url.removeprefix("nats://").split(":")
    heard = {}
    with socket.create_connection((host, int(port)), timeout=5) as s:
        stream = s.makefile("rb")
        s.sendall(b'CONNECT {"verbose":false}\r\nSUB bellows.tel.*.*.device 1\r\nPING\r\n')
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            line = stream.readline()
            if line.startswith(b"PING"):
                s.sendall(b"PONG\r\n")
            if line.startswith(b"MSG "):
                words = line.split()
                body = stream.read(int(words[-1]) + 2)[:-2]
                report = list(fields(body))
                gpu = dict(report).get(3, 0)
                accounts = [dict(fields(value)) for number, value in report if number == 10]
                heard[gpu] = {a[1].decode(): a.get(2, 0) for a in accounts}
                heard[gpu]["open"] = dict(report).get(11, 0)
                assert sum(heard[gpu].values()) == dict(report)[9], "accounts and the open stretch are the wall time"
    return heard


# --- /metrics ---


def samples(page):
    """{(name, labels): value} and {name: kind}."""
    values, kinds = {}, {}
    for line in page.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name not in kinds, f"family {name} stands twice"
            kinds[name] = kind
        elif not line.startswith("#"):
            name, labels, value = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line).groups()
            key = (name, labels or "")
            assert key not in values, f"{key} stands twice"
            values[key] = float(value)
    return values, kinds


def check_histograms(values, kinds):
    found = 0
    for (name, labels), count in values.items():
        family = name.removesuffix("_count")
        if not name.endswith("_count") or kinds.get(family) != "histogram":
            continue
        buckets = [(k[1], v) for k, v in values.items() if k[0] == f"{family}_bucket" and re.sub(r',?le="[^"]*"', "", k[1]) == labels]
        bounds = [float(re.search(r'le="([^"]*)"', b).group(1)) for b, _ in buckets]
        assert bounds == sorted(bounds) and bounds[-1] == float("inf"), f"{family}: {bounds}"
        counts = [v for _, v in buckets]
        assert counts == sorted(counts) and counts[-1] == count, f"{family}{{{labels}}}: {counts} and {count}"
        total = values[(f"{family}_sum", labels)]
        assert total >= 0 and (count > 0) == (total > 0), f"{family}{{{labels}}}: sum {total} of {count}"
        found += 1
    assert found > 20, f"only {found} histograms"


def check_monotone(before, after, kinds):
    for key, value in before.items():
        family = re.sub(r"_(bucket|sum|count)$", "", key[0])
        if kinds.get(key[0]) == "counter" or kinds.get(family) == "histogram":
            assert after[key] >= value, f"{key} fell from {value} to {after[key]}"


def ledger_of(values, gpu):
    at = re.compile(rf'node="dev",gpu="{gpu}",account="([^"]*)"')
    return {m.group(1): v for (name, labels), v in values.items() if name == "bellows_ledger_seconds_total" and (m := at.fullmatch(labels))}


# --- Claims ---


def decode_is_the_cause(accounts, unit):
    """Of all waits for bytes decoding is by far the longest, and as long as it was made."""
    others = {k: v for k, v in accounts.items() if k.startswith("wait.") and k not in ("wait.decode", "wait.no_work")}
    assert accounts["wait.decode"] >= JOBS * SLOW_NS / 2 / 1e9 * unit, accounts
    assert accounts["wait.decode"] > 2 * sum(others.values()), accounts


def total(lanes):
    return {k: sum(lane.get(k, 0) for lane in lanes) for k in lanes[0]}


def claim_slow_decode_in_messages(fleet):
    for i in range(JOBS):
        fleet.submit(f"slow{i}")
    for i in range(JOBS):
        fleet.run("wait", f"slow{i}", "--out", fleet.dir)
    decode_is_the_cause(total(list(device_reports(fleet.url, 2.5).values())), 1e9)


def claim_slow_decode_in_top(fleet):
    picture = fleet.top()
    assert picture["fleet"]["ready"] and picture["fleet"]["lanes_open"] == 2, picture["fleet"]
    for lane in picture["lanes"]:
        assert lane["state"] == "ready" and lane["backend"] == "cpu", lane
        assert sum(lane["accounts"].values()) + lane["open_ns"] == lane["wall_ns"], lane
        used = {kind: memory["used_bytes"] for kind, memory in lane["memory"].items()}
        assert all(used[kind] > 0 for kind in ("disk", "process")) and "bodies" in used, lane["memory"]
        assert (used["keys"] > 0) == (lane["counters"]["jobs_done"] > 0), lane  # one lane may have had them all
    decode_is_the_cause(total([lane["last_minute"]["accounts"] for lane in picture["lanes"]]), 1e9)
    assert sum(lane["counters"]["jobs_done"] for lane in picture["lanes"]) == JOBS, picture["lanes"]


def claim_slow_decode_in_metrics(fleet):
    time.sleep(1.5)  # the page is as new as the lanes' last second
    values, _ = samples(fleet.metrics("node"))
    decode_is_the_cause(total([ledger_of(values, 0), ledger_of(values, 1)]), 1)


def claim_pages(fleet):
    before, kinds = samples(fleet.metrics("node"))
    start = time.monotonic()
    fleet.submit("between")
    fleet.run("wait", "between", "--out", fleet.dir)
    time.sleep(2.5)
    after, _ = samples(fleet.metrics("node"))
    passed = time.monotonic() - start
    check_monotone(before, after, kinds)
    check_histograms(after, kinds)
    for gpu in (0, 1):
        grown = sum(ledger_of(after, gpu).values()) - sum(ledger_of(before, gpu).values())
        assert abs(grown - passed) < 2.5, f"lane {gpu}: {grown} s were booked in {passed} s"
    share = sum(v for (n, _), v in after.items() if n == "bellows_telemetry_cpu_seconds_total")
    assert share < 0.01 * sum(sum(ledger_of(after, gpu).values()) for gpu in (0, 1)), f"telling took {share} s"
    assert fleet.page("node", "/healthz") == 200 and fleet.page("node", "/readyz") == 200
    assert fleet.page("coordinator", "/healthz") == 200 and fleet.page("coordinator", "/readyz") == 200
    values, kinds = samples(fleet.metrics("coordinator"))
    assert values[("bellows_coordinator_leader", "")] == 1 and values[("bellows_fleet_lanes", 'state="open"')] == 2, values
    assert values[("bellows_store_limit_bytes", 'store="jobs"')] == 4 << 30 and values[("bellows_store_used_bytes", 'store="keys"')] > 0, values
    assert values[("bellows_coordinator_jobs_total", 'decision="taken_in"')] == JOBS + 1, values


def log_line(text):
    """(event, {name: value}) of one line of logfmt."""
    event, rest = text.split(" ", 1)
    found = re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S*)', rest)
    return event, {name: value.strip('"') for name, value in found}


def check_story(line, job, outcome):
    """What the line at a partition's end tells: who, what became of it, where, how long each step took, what it moved."""
    assert line["job"] == job and line["outcome"] == outcome and line["tenant"] == "default" and line["node"] == "dev", line
    assert str(line["device"]).startswith("cpu: ") and int(line["wire_bytes"]) > 0, line
    steps = ("record", "memory", "decode", "queue", "witness", "evaluate", "quotient", "msm_a", "msm_b1", "msm_b2", "msm_l", "msm_h", "assemble", "verify")
    took = [float(line[f"{step}_ms"]) for step in steps]
    assert 0 < sum(took) and 0 < float(line["device_ms"]) < float(line["total_ms"]), line
    assert int(line["decode_bytes"]) > 0, line


def claim_log(fleet):
    lines = [line for who in ("node", "coordinator") for line in read(f"{fleet.dir}/fleet/{who}.log").splitlines() if "slow0" in line]
    assert lines and all(" job=slow0 " in line for line in lines), lines  # one search finds all of it
    told = [log_line(line) for line in lines]
    ends = [fields for event, fields in told if event == "job.ended"]
    assert len(ends) == 1 and "job.queued" in [event for event, _ in told], told
    check_story(ends[0], "slow0", "done")
    assert float(ends[0]["decode_ms"]) >= SLOW_NS / 1e6, ends


def claim_telling_is_cheap(fleet):
    """Lanes of tiny proofs have most to tell for what they compute. And JSON instead of logfmt, as this fleet is asked to write."""
    quick = Fleet(fleet.bellows, fleet.vectors, f"{fleet.dir}/quick", BELLOWS_LOG_FORMAT="json")
    try:
        key, witness = (f"{fleet.vectors}/bn128/mul-contrib/{name}" for name in ("circuit.zkey", "witness.wtns"))

        def prove(job):
            quick.run("submit", key, *[witness] * 64, "--job", job, "--allow-insecure-keys", "--wait", "--out", quick.dir)

        def counters():
            time.sleep(1.3)  # until the lanes have told
            lanes = quick.top()["lanes"]
            return {name: sum(lane["counters"][name] for lane in lanes) for name in lanes[0]["counters"]}

        prove("first")
        before = counters()
        for i in range(6):
            prove(f"many{i}")
        after = counters()
        spent = {name: after[name] - before[name] for name in after}
        assert spent["jobs_done"] == 6 * 64 and after["telemetry_dropped"] == 0, after
        most = 0.03 if SANITIZED else 0.01  # the arithmetic's fastest code is not instrumented, telling is
        assert 0 < spent["telemetry_cpu_ns"] < most * spent["cpu_ns"], spent
        lines = [json.loads(line) for line in read(f"{quick.dir}/fleet/node.log").splitlines() if line.startswith("{")]
        ends = [line for line in lines if line.get("event") == "job.ended" and line["job"] == "first"]
        assert sorted(int(line["part"]) for line in ends) == list(range(64)), ends[:2]
        check_story(ends[0], "first", "done")
    finally:
        quick.close()


def claim_demo(fleet):
    """A newcomer's ten seconds, from the moment that the fleet says it is ready; the page's tests see the same in the page. A shared machine and a
    sanitizer have thirty."""
    demo = Fleet(fleet.bellows, fleet.vectors, f"{fleet.dir}/demo", "--demo", "--threads", "1")
    start = time.monotonic()

    def works():
        lanes = demo.top()["lanes"]
        return len(lanes) == 2 and all(lane["counters"]["jobs_done"] > 0 and lane["last_minute"]["compute_ns"] > 0 for lane in lanes)

    try:
        until(works, "both lanes have proved something, as top says", 30 if os.environ.get("CI") or SANITIZED else 10)
        print(f"         after {time.monotonic() - start:.1f} s")
        drawn = re.compile(r"^dev\.0  ready  .*\[.*#.*\] +\d+% busy  done [1-9]", re.MULTILINE)
        # a fortieth of the last minute is a letter, and the first proof may be shorter
        until(lambda: drawn.search(demo.run("top", "--once").stdout), "top draws a lane that computes")
    finally:
        demo.close()


# What the role of a dashboard may do (`bellows certs accounts`), for a server that knows users by password.
LOGINS = """
authorization { users: [
  { user: fleet, password: "of-all" }
  { user: wall, password: "only-looks", permissions: {
      publish: ["$JS.API.DIRECT.GET.BELLOWS_TEL", "$JS.API.DIRECT.GET.BELLOWS_TEL.>", "$JS.API.DIRECT.GET.KV_bellows_lanes",
                "$JS.API.DIRECT.GET.KV_bellows_lanes.>", "$JS.API.DIRECT.GET.KV_bellows_lead.$KV.bellows_lead.leader"],
      subscribe: ["bellows.tel.>", "bellows.evt.>", "bellows.hb.>", "_INBOX.>"] } }
] }
"""


def claim_login(fleet):
    """Users with passwords, in the server's URL; top as one who may only look sees a failure of before it came."""
    folder = f"{fleet.dir}/login"
    os.mkdir(folder)
    with open(f"{folder}/nats.conf", "w") as f:
        f.write(f'listen: "127.0.0.1:-1"\nports_file_dir: "{folder}"\njetstream {{ store_dir: "{folder}/store" }}\nmax_payload: 8MB\n{LOGINS}')
    env = dict(os.environ, XDG_RUNTIME_DIR=folder, TMPDIR=folder)
    children = []

    def start(*words):
        children.append(subprocess.Popen(words, env=env, stdout=open(f"{folder}/log", "a"), stderr=subprocess.STDOUT))
        return children[-1]

    def run(login, *words):
        server = f"nats://{login}@{address}"
        return subprocess.run([fleet.bellows, *words], env=dict(env, BELLOWS_SERVER=server), capture_output=True, text=True, timeout=60)

    def picture():
        done = run("wall:only-looks", "top", "--once", "--json")
        assert done.returncode == 0 or "no fleet lives on" in done.stderr, done.stderr
        return json.loads(done.stdout) if done.returncode == 0 else {"lanes": []}

    try:
        nats = start(nats_server(), "-c", f"{folder}/nats.conf")
        ports = f"{folder}/{os.path.basename(nats_server())}_{nats.pid}.ports"
        until(lambda: "nats://" in read(ports), "the server is up")
        address = re.search(r"nats://([\d.:]+)", read(ports)).group(1)
        start(fleet.bellows, "coordinator", f"--server=nats://fleet:of-all@{address}", "--metrics=off")
        start(fleet.bellows, "node", f"--server=nats://fleet:of-all@{address}", "--name=w", "--backend=cpu", "--threads=1", f"--cache={folder}/cache",
              "--metrics=off", "--allow-insecure-keys")
        until(lambda: [lane["state"] for lane in picture()["lanes"]] == ["ready"], "top sees the lane")
        done = run("fleet:of-all", "submit", f"{fleet.vectors}/bn128/mul/circuit.zkey", f"{fleet.vectors}/bn128/bad/unsatisfied.wtns", "--job", "bad",
                   "--allow-insecure-keys", "--wait", "--out", folder)
        assert done.returncode == 1, done
        time.sleep(1)
        assert [f["job"] for f in picture()["failures"]] == ["bad"], picture()
        assert run("wall:only-looks", "list").returncode != 0
        wrong = run("wall:guessed", "top", "--once")
        assert wrong.returncode == 4 and "wall:***@" in wrong.stderr and "guessed" not in wrong.stderr, wrong
        assert "of-all" not in read(f"{folder}/log"), read(f"{folder}/log")
    finally:
        for child in reversed(children):
            child.terminate()
            child.wait(timeout=60)


def claim_promtool(fleet):
    need("promtool", "prometheus")
    for who in ("node", "coordinator"):
        done = subprocess.run(["promtool", "check", "metrics"], input=fleet.metrics(who), capture_output=True, text=True)
        assert done.returncode == 0 and not done.stdout and not done.stderr, f"{who}: {done.stdout}{done.stderr}"


def claim_late_failure(fleet):
    fleet.submit("bad", "bn128/mul", f"{fleet.vectors}/bn128/bad/unsatisfied.wtns")
    assert fleet.run("wait", "bad", "--out", fleet.dir, check=False).returncode == 1
    time.sleep(1.2)
    failures = {f["job"]: f for f in fleet.top()["failures"]}  # asked after it happened: read from the past
    assert failures["bad"]["error"] == "E_UNSAT" and "does not satisfy" in failures["bad"]["reason"], failures
    errors = [lane["last_error"] for lane in fleet.top()["lanes"] if "last_error" in lane]
    assert [e["name"] for e in errors] == ["E_UNSAT"], errors


def claim_feed(fleet):
    files = (f"{fleet.vectors}/bn128/chain200/circuit.zkey", f"{fleet.vectors}/bn128/chain200/witness.wtns")
    rows = [json.loads(line) for line in fleet.run("bench", "feed", *files, "--jobs", "8").stdout.splitlines()]
    assert [row["gpu"] for row in rows] == [0, 1], rows
    for row in rows:
        booked = sum(row["accounts"].values())
        assert row["jobs"] == 8 and row["failed"] == 0 and row["wall_ns"] >= row["took_ns"] > 8 * SLOW_NS / 4, row
        assert abs(booked - row["wall_ns"]) <= 1e9, row  # a proof that was open at either end
    decode = sum(row["accounts"]["wait.decode"] for row in rows)
    assert decode > 8 * SLOW_NS / 2, rows


def claim_feed_grows(fleet):
    files = (f"{fleet.vectors}/bn128/chain200/circuit.zkey", f"{fleet.vectors}/bn128/chain200/witness.wtns")
    late = ["node", "--backend", "cpu", "--name", "a-late-one", "--lanes", "1", "--metrics", ""]
    before = fleet.run("list").stdout.count("feed-")
    started = [subprocess.Popen([fleet.bellows, "bench", "feed", *files, "--jobs", "64"], env=fleet.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)]
    try:
        until(lambda: fleet.run("list").stdout.count("feed-") > before, "a job is sent")
        started.append(subprocess.Popen([fleet.bellows, *late], env=fleet.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        said, why = started[0].communicate(timeout=60)
    finally:
        for process in started:
            process.terminate()
            process.wait(timeout=60)
    assert started[0].returncode == 0, why
    rows = {(row["node"], row["gpu"]): row for row in map(json.loads, said.splitlines())}
    assert list(rows) == [("a-late-one", 0), ("dev", 0), ("dev", 1)], said
    walls = [row["wall_ns"] for row in rows.values()]
    assert 0 < walls[0] < min(walls[1:]), walls


class Terminal:
    """A program in a tmux of its own."""

    def __init__(self, fleet, columns, lines, command, **variables):
        self.env = dict(fleet.env, TMUX_TMPDIR=fleet.dir, TERM="xterm-256color", **variables)
        self.env.pop("TMUX", None)
        self.name = f"top{columns}"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(lines), command)

    def tmux(self, *words):
        done = subprocess.run(["tmux", "-L", self.name, *words], env=self.env, capture_output=True, text=True)
        assert done.returncode == 0, f"tmux {words}: {done.stderr}"
        return done.stdout

    def screen(self, *words):
        return self.tmux("capture-pane", "-p", *words)

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def shows(self, pattern):
        seen = ""

        def found():
            nonlocal seen
            seen = self.screen()
            return re.search(pattern, seen, re.MULTILINE)

        try:
            until(found, pattern, 15)
        except AssertionError as error:
            raise AssertionError(f"{error}; the screen is\n{seen}") from None
        return seen

    def close(self):
        subprocess.run(["tmux", "-L", self.name, "kill-server"], env=self.env, capture_output=True)


def check_width(screen, columns):
    assert all(len(line) <= columns for line in screen.splitlines()), screen


def claim_screens(fleet):
    need("tmux", "tmux")
    t = Terminal(fleet, 80, 24, f"{fleet.bellows} top")
    try:
        screen = t.shows(r"^ dev\.1 +ready")
        check_width(screen, 80)
        for text in (r"^bellows led by", r"lanes 2 of 2 open", r"^>DEVICES 2", r"^ QUEUES 0", r"^ IN HAND 0", r"^ FAILURES 1", r"E_UNSAT"):
            assert re.search(text, screen, re.MULTILINE), f"{text}\n{screen}"
        bars = re.findall(r"dev\.\d +ready +\S+ +\[([^\]]*)\]", screen)
        assert len(bars) == 2 and any("d" in bar and "." in bar for bar in bars), screen  # slow decodes in it, of one lane at least
        fleet.run("submit", f"{fleet.vectors}/bn128/chain200/circuit.zkey", *[f"{fleet.vectors}/bn128/chain200/witness.wtns"] * 60, "--job", "many",
                  "--label", "nightly", "--allow-insecure-keys")
        t.shows(r"^ many(/\d+)? +default +dev\.\d +\w+")
        screen = t.shows(r"^ normal +[0-9a-f]{12} +\d+ waiting .*nightly")
        assert [queue["label"] for queue in fleet.top()["queues"]] == ["nightly"], fleet.top()["queues"]
        t.press("Tab", "Enter")
        screen = t.shows(r"^normal priority, key [0-9a-f]{12} +nightly")
        check_width(screen, 80)
        assert re.search(r"^ \d+ partitions wait, the oldest for ", screen, re.MULTILINE), screen
        assert re.search(r"^ many/\d+ +default +dev\.\d", screen, re.MULTILINE), screen
        t.shows(r"^ dev\.0 +ready +key loaded +\S+ ms a proof")  # as soon as it has made one
        t.shows(r"^ many +default +(running|proved) +.* nightly$")
        t.press("Escape", "BTab")
        t.shows(r"^>DEVICES 2")
        t.press("Down", "Enter")
        screen = t.shows(r"^ wait\.decode")
        assert re.search(r"^dev\.1", screen) and "jobs_done" in screen and "process" in screen, screen
        t.press("Escape")
        t.shows(r"^>DEVICES 2")
        t.press("BTab", "Enter")  # the last section: failures
        screen = t.shows(r"^job bad of tenant default")
        assert "failed E_UNSAT" in screen and re.search(r"^ settle +\d", screen, re.MULTILINE) and "==" in screen, screen
        t.press("Escape")
        t.shows(r"^>FAILURES 1")
        t.press("/", "n", "o", "n", "e", "Enter")
        t.shows(r"^ DEVICES 0")
        t.press("Escape")
        t.shows(r"^ DEVICES 2")
        t.press("?")
        t.shows(r"is being decoded")
        t.press("?")
        t.tmux("resize-window", "-x", "150", "-y", "50")
        t.shows(r"^.{121}")  # drawn anew
        screen = t.shows(r"^ dev\.1 +ready")
        check_width(screen, 150)
        t.tmux("resize-window", "-x", "30", "-y", "8")
        t.shows(r"too small")
        t.tmux("resize-window", "-x", "80", "-y", "24")
        t.shows(r"^ dev\.1 +ready")
        coloured = t.screen("-e")
        assert re.search(r"\x1b\[[0-9;]*3[1-6]", coloured), "no colours"
        t.press("q")
        until(lambda: subprocess.run(["tmux", "-L", t.name, "has-session"], env=t.env, capture_output=True).returncode != 0, "top has left")
    finally:
        t.close()


def claim_plain(fleet):
    need("tmux", "tmux")
    for columns, command, variables in ((81, f"{fleet.bellows} top --no-color", {}), (82, f"{fleet.bellows} top", {"NO_COLOR": "1"})):
        t = Terminal(fleet, columns, 24, command, **variables)
        try:
            t.shows(r"^ dev\.1 +ready")
            assert not re.search(r"\x1b\[[0-9;]*3[0-8]", t.screen("-e")), t.screen("-e")
        finally:
            t.close()
    done = fleet.run("top", check=False)
    assert done.returncode == 2 and "--once" in done.stderr, done


CLAIMS = [
    ("a slow decode is what the telemetry messages say the devices waited for", claim_slow_decode_in_messages),
    ("bellows top says so too, and its accounts are the wall time", claim_slow_decode_in_top),
    ("so do the metrics", claim_slow_decode_in_metrics),
    ("counters do not fall, histograms add up, telling costs less than a hundredth", claim_pages),
    ("a job's log line tells its story, and job= finds all about it", claim_log),
    ("promtool has nothing to say", claim_promtool),
    ("a failure is seen by who comes after it", claim_late_failure),
    ("bench feed prints the ledger of the time it took", claim_feed),
    ("top shows devices, jobs and failures, obeys its keys and follows the terminal's size", claim_screens),
    ("dev --demo is seen at work in top within ten seconds", claim_demo),
    ("lanes of tiny proofs spend less than a hundredth of their processor time on telling; their log is JSON", claim_telling_is_cheap),
    ("user and password in the server's address let in, and are shown nowhere", claim_login),
    ("top draws without colours when asked, and not at all where it cannot", claim_plain),
    ("bench feed measures a lane that comes meanwhile, from when it came", claim_feed_grows),
]


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    if not nats_server():
        print(f"0 passed, 0 failed, {len(CLAIMS)} skipped")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="bellows-watching") as folder:
        fleet = Fleet(sys.argv[1], sys.argv[2], folder, BELLOWS_SLOW_DECODE=f"{SLOW_NS}ns")
        try:
            main(CLAIMS, fleet)
        finally:
            fleet.close()
