// A fleet that is not there: lanes, jobs and a leader played second by second, sent as the real ones send it. It fills the page with
// everything at once (several nodes, all accounts, failures, a fenced lane), which a small real fleet never shows.
import { connect } from "@nats-io/transport-node";

const STEPS = [
  ["witness", 0.05],
  ["evaluate", 0.06],
  ["quotient", 0.2],
  ["msm_a", 0.1],
  ["msm_b1", 0.12],
  ["msm_b2", 0.2],
  ["msm_l", 0.12],
  ["msm_h", 0.15],
];
const ACCOUNTS = [
  ...STEPS.map(([step]) => `compute.${step}`),
  "compute.other",
  "upload",
  "wait.no_work",
  "wait.fetch",
  "wait.decode",
  "wait.pinned",
  "wait.key",
  "wait.record",
  "wait.finish",
  "wait.lock",
  "fenced",
];
const KEYS = ["3f9a01c4d2be", "b71e5590aa02", "09cc4de1f377"].map((head) => head.padEnd(64, "5"));
const NANO = 1e9;
const TENANTS = ["acme", "filco", "zk-rollup"];

// Small, repeatable randomness.
function chance(seed) {
  let state = seed >>> 0;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

class Lane {
  constructor(fleet, { node, gpu, device, backend, speed, load, habit }) {
    Object.assign(this, {
      fleet,
      node,
      gpu,
      device,
      backend,
      speed,
      load,
      habit,
      random: chance(node.length * 31 + gpu * 7 + 1),
    });
    this.accounts = new Map(ACCOUNTS.map((name) => [name, 0]));
    Object.assign(this, { wall: 0, done: 0, failed: 0, phases: [], open: 0, job: null, sequence: 0, energy: 0, strikes: 0 });
  }

  // The lane's life: waits, then a job, then waits.
  plan(now) {
    const r = this.random;
    if (this.strikes >= 3) return [{ account: "fenced", ns: NANO }];
    if (r() > this.load(now)) return [{ account: "wait.no_work", ns: (0.3 + 2 * r()) * NANO }];
    const job = this.fleet.newJob(this, r);
    const wait = (name, share) => ({ account: name, ns: share * r() * job.ns, job });
    return [
      wait("wait.record", 0.02),
      wait("wait.fetch", this.habit.fetch ?? 0.05),
      wait("wait.decode", this.habit.decode ?? 0.04),
      wait("wait.pinned", this.habit.pinned ?? 0),
      wait("wait.key", r() < 0.1 ? 0.5 : 0),
      wait("upload", 0.06),
      { account: "wait.lock", ns: 2e6, job },
      { compute: true, ns: job.ns, job },
      wait("wait.finish", 0.04),
      { end: true, ns: 0, job },
    ];
  }

  advance(ns, now) {
    this.wall += ns;
    const watts = this.open || this.job ? 420 : 95;
    if (this.backend === "cuda") this.energy += (watts * ns) / 1e6;
    while (ns > 0) {
      if (!this.phases.length) this.phases = this.plan(now);
      const phase = this.phases[0];
      phase.spent ??= 0;
      const part = Math.min(ns, phase.ns - phase.spent);
      phase.spent += part;
      ns -= part;
      this.job = phase.job ?? null;
      if (phase.compute) this.open = phase.spent;
      else if (phase.account) this.accounts.set(phase.account, this.accounts.get(phase.account) + part);
      if (phase.spent < phase.ns) continue;
      this.phases.shift();
      if (phase.compute) this.book(phase.ns);
      if (phase.end) this.fleet.endJob(this, phase.job, now - ns / 1e6);
    }
  }

  book(ns) {
    this.open = 0;
    for (const [step, share] of STEPS) this.accounts.set(`compute.${step}`, this.accounts.get(`compute.${step}`) + share * ns);
  }

  reports(now) {
    const base = { version: 1, node: this.node, gpu: this.gpu, session: "s1", atUnixMs: now };
    const busy = this.open > 0;
    const phase = this.phases[0];
    const readings =
      this.backend === "cuda"
        ? [
            [1, busy ? 960 : 80],
            [3, busy ? 415000 + 20000 * this.random() : 95000],
            [4, this.energy],
            [5, busy ? 61 : 38],
            [6, 1980],
            [7, 2619],
            [8, busy ? 9.1e9 : 2e6],
            [9, 3e7],
            [10, 5],
            [11, this.gpu ? 8 : 16],
            [12, 5],
            [13, 16],
          ]
        : [[1, busy ? 990 : 20]];
    const accounts = [...this.accounts].map(([name, ns]) => ({ name, ns: Math.round(ns) }));
    const device = {
      ...base,
      sequence: ++this.sequence,
      backend: this.backend,
      device: this.device,
      accounts,
      openNs: Math.round(this.open),
      wallNs: accounts.reduce((sum, a) => sum + a.ns, 0) + Math.round(this.open),
      now: busy ? "compute" : (phase?.account ?? "wait.no_work"),
      memory: [
        { name: this.backend === "cuda" ? "device" : "process", usedBytes: 61e9, limitBytes: 141e9 },
        { name: "pinned", usedBytes: 7e9, limitBytes: 16e9 },
        { name: "disk", usedBytes: 4e10, limitBytes: 0 },
      ],
      readings: readings.map(([sensor, value]) => ({ sensor, value })),
      counters: [
        ["jobs_done", this.done],
        ["jobs_failed", this.failed],
        ["strikes", this.strikes],
        ["wire_bytes", this.done * 8e8],
        ["lock_wait_ns", this.done * 3e6],
      ].map(([name, value]) => ({ name, value })),
    };
    const step = busy ? STEPS[Math.min(7, Math.floor((8 * phase.spent) / phase.ns))][0] : "";
    const jobs = this.job
      ? [
          {
            tenant: this.job.tenant,
            jobId: this.job.id,
            generation: 1,
            partitionIndex: 0,
            keyDigest: this.job.key,
            priority: 2,
            stage: busy ? "proving" : "fetch",
            step,
            permille: busy ? (1000 * phase.spent) / phase.ns : 0,
            ageNs: this.job.ns * 0.3,
            stageNs: this.job.ns * 0.1,
          },
        ]
      : [];
    const fenced = this.strikes >= 3;
    const lane = {
      ...base,
      state: fenced ? 4 : 2,
      reason: fenced ? "3 device errors within an hour: E_DEVICE the self-check of 3 proofs failed here and not elsewhere" : "",
      strikes: this.strikes,
      depth: jobs.length,
      depthMax: 4,
      jobs,
      bellowsVersion: "0.1.0",
    };
    return [
      ["device", "DeviceReport", device],
      ["lane", "LaneReport", lane],
    ];
  }
}

export class SyntheticFleet {
  constructor(encode, { prefix = "bellows" } = {}) {
    Object.assign(this, { encode, prefix, out: [], jobsCount: 0, random: chance(99), now: 0, lanes: [] });
    const wave = (now) => 0.75 + 0.25 * Math.sin(now / 120000);
    const gpu = { device: "cuda: NVIDIA H200, 141 GB", backend: "cuda", speed: 1 };
    this.lanes = [
      { ...gpu, node: "gpu-host-1", gpu: 0, load: () => 0.99, habit: {} },
      { ...gpu, node: "gpu-host-1", gpu: 1, load: () => 0.98, habit: { decode: 0.9 } },
      { ...gpu, node: "gpu-host-2", gpu: 0, load: wave, habit: { fetch: 0.4, pinned: 0.3 } },
      { ...gpu, node: "gpu-host-2", gpu: 1, load: () => 0.95, habit: {} },
      {
        node: "small-box-with-a-long-name",
        gpu: 0,
        device: "cpu: 2 threads, ifma",
        backend: "cpu",
        speed: 9,
        load: () => 0.6,
        habit: {},
      },
    ].map((options) => new Lane(this, options));
  }

  send(subject, name, message) {
    this.out.push([`${this.prefix}.${subject}`, this.encode(name, message)]);
  }

  event(job, state, at, more = {}) {
    const word = ["", "queued", "placed", "running", "done", "failed", "cancelled", "expired", "dead"][state];
    this.send(`evt.${job.tenant}.${job.id}.${word}`, "Event", {
      version: 1,
      tenant: job.tenant,
      jobId: job.id,
      generation: 1,
      state,
      stage: word,
      atUnixMs: Math.round(at),
      keyDigest: job.key,
      priority: 2,
      partitionsCount: 1,
      label: `order ${job.id.slice(-5)}`,
      ...more,
    });
  }

  newJob(lane, r) {
    const key = KEYS[Math.floor(r() * KEYS.length)];
    const job = {
      id: `order-${String(++this.jobsCount).padStart(5, "0")}`,
      tenant: TENANTS[this.jobsCount % 3],
      key,
      ns: lane.speed * (0.8 + KEYS.indexOf(key) * 0.7 + 0.2 * r()) * NANO,
      from: this.now,
    };
    this.event(job, 1, this.now - 2500 * r());
    this.event(job, 2, this.now, { node: lane.node, gpu: lane.gpu });
    this.event(job, 3, this.now + 20, { node: lane.node, gpu: lane.gpu });
    return job;
  }

  endJob(lane, job, at) {
    const bad = lane.node === "gpu-host-2" && lane.gpu === 1 && this.jobsCount % 40 === 0;
    const unsat = !bad && this.random() < 0.02;
    const [name, detail] = bad
      ? ["E_DEVICE", "the proof of partition 0 failed its self-check; the CPU computes other sums"]
      : unsat
        ? ["E_UNSAT", "the witness does not satisfy the circuit: two devices agree on the five sums"]
        : ["", ""];
    let start = 0;
    const span = (step, share, bytes = 0, device = "") => {
      const ns = share * job.ns,
        out = { step, startNs: start, ns, bytes, outcome: "ok", device };
      start += ns;
      return out;
    };
    const spans = [
      span("record", 0.004, 0, "network"),
      span("fetch", 0.09, 8.1e8, "network"),
      span("decode", 0.05, 3.4e9, "host"),
      span("queue", 0.02, 0, "host"),
      span("upload", 0.05, 3.4e9),
      ...STEPS.map(([step, share]) => span(step, share)),
      span("verify", 0.005, 0, "host"),
      span("store", 0.003, 900, "network"),
    ];
    if (name) spans[spans.length - 2].outcome = name;
    this.send(`tel.${lane.node}.${lane.gpu}.span`, "SpanReport", {
      version: 1,
      node: lane.node,
      gpu: lane.gpu,
      session: "s1",
      tenant: job.tenant,
      jobId: job.id,
      generation: 1,
      partitionIndex: 0,
      keyDigest: job.key,
      device: lane.device,
      spans,
      atUnixMs: Math.round(at),
      totalNs: start,
      outcome: bad ? "given_back" : unsat ? "failed" : "done",
      errorName: name,
      errorDetail: detail,
      attempt: 1,
      priority: 2,
      deviceNs: job.ns * 1.04,
      energyMillijoule: lane.backend === "cuda" ? (job.ns / 1e9) * 420000 : 0,
      wireBytes: 8.1e8,
      rawBytes: 3.4e9,
    });
    this.event(job, bad ? 1 : unsat ? 5 : 4, at + 5, { node: lane.node, gpu: lane.gpu, reason: detail });
    if (name)
      this.send(`tel.${lane.node}.${lane.gpu}.error`, "ErrorReport", {
        version: 1,
        node: lane.node,
        gpu: lane.gpu,
        session: "s1",
        atUnixMs: Math.round(at),
        name,
        detail,
        alarm: bad,
        tenant: job.tenant,
        jobId: job.id,
        step: "verify",
      });
    if (bad) lane.strikes++;
    if (name) lane.failed++;
    else lane.done++;
  }

  // One second of the fleet, ending at `now`.
  tick(now) {
    this.now = now;
    for (const lane of this.lanes) {
      lane.advance(NANO, now);
      for (const [kind, name, message] of lane.reports(now)) this.send(`tel.${lane.node}.${lane.gpu}.${kind}`, name, message);
      if (now % 10000 < 1000)
        this.send(`tel.${lane.node}.${lane.gpu}.keys`, "KeysReport", {
          version: 1,
          node: lane.node,
          gpu: lane.gpu,
          session: "s1",
          atUnixMs: now,
          keys: KEYS.map((digest, i) => ({ digest, loaded: i < 2, proveNs: (1 + i) * NANO, loadNs: i ? 4e9 : 0 })),
        });
    }
    const waiting = 20 + Math.round(15 * Math.sin(now / 90000));
    this.send("tel.fleet", "FleetReport", {
      version: 1,
      leader: "coordinator-a",
      term: 4,
      atUnixMs: now,
      ready: true,
      jobsOpen: waiting + 5,
      partitionsQueued: waiting,
      partitionsPlaced: 6,
      partitionsRunning: 5,
      lanesOpen: 4,
      lanesKnown: 5,
      backlogNs: waiting * 1.6e9,
      backlogWallNs: waiting * 0.4e9,
      deadlinesAtRisk: now % 240000 < 60000 ? 2 : 0,
      queues: KEYS.map((keyDigest, i) => ({
        priority: i + 1,
        keyDigest,
        label: ["rollup-block", "", "porep-32g <b>not bold</b>"][i],
        partitionsCount: Math.ceil(waiting / (i + 1)),
        oldestNs: (i + 1) * 7.3e9,
        workNs: i === 1 ? 0 : waiting * 1e9,
      })),
    });
  }

  take() {
    const out = this.out;
    this.out = [];
    return out;
  }
}

// Makes the streams that the coordinator would make: telemetry, and the bucket of lanes.
export async function makeStreams(connection, prefix = "bellows") {
  const more = { retention: "limits", discard: "old", num_replicas: 1, allow_direct: true };
  for (const config of [
    {
      name: `${prefix.toUpperCase()}_TEL`,
      subjects: [`${prefix}.tel.>`, `${prefix}.evt.>`],
      storage: "memory",
      max_age: 900e9,
      max_bytes: 256 << 20,
      ...more,
    },
    {
      name: `KV_${prefix}_lanes`,
      subjects: [`$KV.${prefix}_lanes.>`],
      storage: "file",
      max_msgs_per_subject: 1,
      ...more,
      discard: "new",
    },
  ]) {
    const answer = JSON.parse(
      (await connection.request(`$JS.API.STREAM.CREATE.${config.name}`, JSON.stringify(config))).string(),
    );
    if (answer.error) throw new Error(answer.error.description);
  }
}

// Plays `seconds` of the past at once, then goes on each second until stop().
export async function play(url, encode, { seconds = 900, live = true } = {}) {
  const connection = await connect({ servers: url, maxReconnectAttempts: -1, reconnectTimeWait: 200 });
  const fleet = new SyntheticFleet(encode);
  const flush = () => fleet.take().forEach(([subject, data]) => connection.publish(subject, data));
  await makeStreams(connection);
  for (const { node, gpu, backend, device } of fleet.lanes.slice(0, 3)) {
    const info = encode("LaneInfo", { version: 1, node, gpu, session: "s1", backend, device, state: 2 });
    connection.publish(`$KV.bellows_lanes.${node}.${gpu}`, info);
  }
  const now = Math.floor(Date.now() / 1000) * 1000;
  for (let at = now - seconds * 1000; at <= now; at += 1000) {
    fleet.tick(at);
    flush();
  }
  await connection.flush();
  let at = now;
  const timer =
    live &&
    setInterval(() => {
      while (at + 1000 <= Date.now()) fleet.tick((at += 1000)); // a busy machine skips beats
      flush();
    }, 1000);
  return {
    connection,
    fleet,
    stop: async () => {
      clearInterval(timer);
      await connection.close();
    },
  };
}
