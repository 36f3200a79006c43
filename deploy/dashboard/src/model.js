// What the page knows of the fleet: made from messages, read by the views. Pure; knows nothing of the network or the page.
//
//   lanes   Map "node.gpu" → last reports, and samples of the ledger: each second for 90 s, each 5 s for a quarter of an hour
//   jobs    Map "tenant.job" → events and span reports, the last changed ones
//   spans   partitions that ended, for plots and costs          errors   what failed
//   fleet   the leader's last report; backlog: its history
//
// Every part is bounded by the limits below. All messages are taken as they come: a field that a newer fleet adds is ignored,
// one that an older fleet lacks is zero or empty.
import { busy, difference, sampleOf, sum } from "./ledger.js";
import { Ring } from "./ring.js";

export const MINUTE_MS = 60000;
export const SPAN_MS = 15 * MINUTE_MS; // what the fleet's stream keeps
export const LIMITS = {
  lanes: 512,
  jobs: 2000,
  eventsOfJob: 64,
  reportsOfJob: 128,
  spans: 5000,
  errors: 500,
  fine: 90,
  coarse: 181,
};
const COARSE_MS = 5000;
const SILENT_MS = 5000;
const KEPT_MS = 10000; // so far apart are the reports of a lane that the stream keeps

export const JOB_STATES = ["unknown", "queued", "placed", "running", "done", "failed", "cancelled", "expired", "dead"];
export const LANE_STATES = ["unknown", "starting", "ready", "draining", "fenced", "stopped"];
export const PRIORITIES = ["urgent", "high", "normal", "low"];
const ENDED = new Set(["done", "failed", "cancelled", "expired", "dead"]);
export const hasEnded = (state) => ENDED.has(state);

// What an event says of its job. A lane's "proved" is one partition of several; the job is done when the coordinator has joined them.
export function stateOfEvent(event) {
  const state = JOB_STATES[event.state] ?? "unknown";
  return state === "done" && event.stage === "proved" ? "running" : state;
}

class Lane {
  constructor(node, gpu, knownMs) {
    Object.assign(this, { node, gpu, device: null, lane: null, keys: null, info: null, knownMs, spoke: false });
    const timing = [(s) => s.at, (s) => s.session];
    this.fine = new Ring(LIMITS.fine, ...timing);
    this.coarse = new Ring(LIMITS.coarse, ...timing);
  }

  get name() {
    return `${this.node}.${this.gpu}`;
  }

  get state() {
    return LANE_STATES[this.lane?.state ?? this.info?.state ?? 0] ?? "unknown";
  }

  take(report) {
    const sample = { ...sampleOf(report), readings: report.readings };
    this.fine.add(sample);
    const slot = (s) => Math.floor(s.at / COARSE_MS);
    if (this.coarse.before(sample.at) === undefined || slot(this.coarse.before(sample.at)) !== slot(sample))
      this.coarse.add(sample);
    if (!this.device || report.atUnixMs >= this.device.atUnixMs) this.device = report;
  }

  // Fine where it reaches, coarse before that, oldest first.
  samples() {
    const start = this.fine.items[0]?.at ?? Infinity;
    return [...this.coarse.items.filter((s) => s.at < start), ...this.fine.items];
  }

  // The ledger between `ms` ago and the newest sample.
  spent(ms) {
    const last = this.fine.last ?? this.coarse.last;
    if (!last) return { wall: 0, accounts: new Map() };
    const all = this.samples();
    let first = all.findLast((s) => s.at <= last.at - ms) ?? all[0];
    if (first === last) first = undefined;
    return difference(first, last);
  }

  reading(sensor) {
    return this.device?.readings.find((r) => r.sensor === sensor)?.value;
  }

  counter(name) {
    return this.device?.counters.find((c) => c.name === name)?.value ?? 0;
  }

  memory(name) {
    return this.device?.memory.find((m) => m.name === name);
  }
}

export class Model {
  constructor(now = () => Date.now()) {
    this.localNow = now;
    this.skew = null; // ms from this machine's clock to the fleet's
    this.lanes = new Map();
    this.jobs = new Map();
    this.spans = new Ring(LIMITS.spans, (s) => s.atUnixMs, spanName);
    this.errors = new Ring(
      LIMITS.errors,
      (e) => e.atUnixMs,
      (e) => `${e.node}.${e.gpu}.${e.name}.${e.detail}`,
    );
    this.backlog = new Ring(
      LIMITS.fine + 1000,
      (f) => f.atUnixMs,
      (f) => f.leader,
    );
    this.fleet = null;
    this.version = 0; // rises with every change
    this.bad = 0; // messages that could not be read
  }

  // The fleet's clock, as far as it can be known here.
  now() {
    return this.localNow() + (this.skew ?? 0);
  }

  // `kind` and `where` come from the subject, `m` is the decoded message; live: it was sent just now.
  take(kind, where, m, live) {
    if (live && m.atUnixMs) this.#watchClock(m.atUnixMs);
    switch (kind) {
      case "device":
        this.#laneOf(where)?.take(m);
        break;
      case "lane":
      case "keys":
        this.#keep(where, kind, m, live);
        break;
      case "span":
        this.#span(m);
        break;
      case "error":
        this.errors.add(m);
        break;
      case "fleet":
        this.#fleet(m);
        break;
      case "event":
        this.#event(m);
        break;
      default:
        return;
    }
    const lane = live && (kind === "device" || kind === "lane") ? this.#laneOf(where) : null;
    if (lane) lane.spoke = true;
    this.version++;
  }

  takeInfo(info) {
    const lane = this.#laneOf(info);
    if (lane) lane.info = info;
    this.version++;
  }

  // Messages arrive late, never early: the largest difference is the nearest to the truth. Falls back slowly, as clocks are set.
  #watchClock(at) {
    const skew = at - this.localNow();
    this.skew = this.skew === null || skew > this.skew ? skew : this.skew + (skew - this.skew) * 0.01;
  }

  #laneOf({ node, gpu }) {
    const name = `${node}.${gpu}`;
    let lane = this.lanes.get(name);
    if (!lane && this.lanes.size < LIMITS.lanes) this.lanes.set(name, (lane = new Lane(node, gpu, this.localNow())));
    return lane;
  }

  // What the stream keeps may be ten seconds old: it does not say what is in hand now, and replaces nothing of its own time.
  #keep(where, what, m, live) {
    const lane = this.#laneOf(where),
      last = lane?.[what];
    if (!lane || (last && (live ? m.atUnixMs < last.atUnixMs : m.atUnixMs <= last.atUnixMs))) return;
    lane[what] = live || what !== "lane" ? m : { ...m, depth: null, jobs: [] };
  }

  #fleet(m) {
    if (!this.fleet || m.atUnixMs >= this.fleet.atUnixMs) this.fleet = m;
    this.backlog.add({ ...m, queues: undefined, counters: undefined });
  }

  #job(tenant, id) {
    const name = `${tenant}.${id}`;
    let job = this.jobs.get(name);
    if (job) {
      this.jobs.delete(name); // and back in at the end: the map's order is the order of change
    } else {
      job = new Job(tenant, id);
      while (this.jobs.size >= LIMITS.jobs) this.jobs.delete(this.jobs.keys().next().value);
    }
    this.jobs.set(name, job);
    return job;
  }

  #event(m) {
    this.#job(m.tenant, m.jobId).events.add(m);
  }

  #span(m) {
    if (!this.spans.add({ ...m, spans: undefined })) return;
    this.#job(m.tenant, m.jobId).reports.add(m);
  }

  // --- Questions ---

  // Sorted by name; `silentMs`: how long ago it was heard (null: in the last seconds).
  sortedLanes() {
    return [...this.lanes.values()].sort((a, b) => (a.node < b.node ? -1 : a.node > b.node ? 1 : a.gpu - b.gpu));
  }

  // A lane speaks each second to those who listen. Of one that has not yet spoken since this page knows it, there is only what the stream
  // keeps, every tenth second: it is silent when it should have spoken, or when the next one should have been kept.
  silentMs(lane) {
    const at = Math.max(lane.device?.atUnixMs ?? 0, lane.lane?.atUnixMs ?? 0),
      known = lane.knownMs + (this.skew ?? 0);
    const since = lane.spoke ? at : at ? Math.max(at, Math.min(known, at + KEPT_MS)) : known;
    return this.now() - since > SILENT_MS ? (at ? this.now() - at : Infinity) : null;
  }

  // The whole fleet's ledger over the last `ms`, of the lanes that are heard.
  spent(ms = MINUTE_MS) {
    return sum(
      this.sortedLanes()
        .filter((lane) => this.silentMs(lane) === null)
        .map((lane) => lane.spent(ms)),
    );
  }

  busy(ms = MINUTE_MS) {
    return busy(this.spent(ms));
  }

  // Where a job is in lanes' hands now: [{lane, part}], by partition.
  inHand(job) {
    if (this.#handVersion !== this.version) this.#readHands();
    return this.#hands.get(job.name) ?? [];
  }

  // The last event's, but for what a lane says it proves just now.
  stateOf(job) {
    const state = job.state;
    return !hasEnded(state) && this.inHand(job).some(({ part }) => part.stage === "proving") ? "running" : state;
  }

  #hands = new Map();
  #handVersion = -1;

  #readHands() {
    this.#hands.clear();
    this.#handVersion = this.version;
    for (const lane of this.lanes.values()) {
      if (this.silentMs(lane) !== null) continue;
      for (const part of lane.lane?.jobs ?? []) {
        const name = `${part.tenant}.${part.jobId}`;
        if (!this.#hands.has(name)) this.#hands.set(name, []);
        this.#hands.get(name).push({ lane, part });
      }
    }
    for (const parts of this.#hands.values()) parts.sort((a, b) => a.part.partitionIndex - b.part.partitionIndex);
  }

  // Lanes that said nothing for a quarter of an hour are forgotten.
  forgetOld() {
    const limit = this.now() - SPAN_MS;
    for (const [name, lane] of this.lanes) {
      if (lane.device && lane.device.atUnixMs < limit) this.lanes.delete(name);
    }
    for (const ring of [this.spans, this.errors, this.backlog]) ring.forget(limit);
  }
}

const spanName = (s) => `${s.node}.${s.gpu}.${s.tenant}.${s.jobId}.${s.generation}.${s.partitionIndex}`;

class Job {
  constructor(tenant, id) {
    this.tenant = tenant;
    this.id = id;
    this.events = new Ring(
      LIMITS.eventsOfJob,
      (e) => e.atUnixMs,
      (e) => `${e.generation}.${e.state}.${e.stage}.${e.partitionIndex}.${e.node}.${e.gpu}`,
    );
    this.reports = new Ring(LIMITS.reportsOfJob, (s) => s.atUnixMs, spanName);
  }

  get name() {
    return `${this.tenant}.${this.id}`;
  }

  get generation() {
    return this.lastEvent?.generation ?? this.reports.last?.generation ?? 0;
  }

  // Of two events in one millisecond the one that came later counts; an end is never undone within its generation.
  get lastEvent() {
    const all = this.events.items;
    let best;
    for (const event of all) {
      const ended = best && best.generation === event.generation && hasEnded(stateOfEvent(best));
      if (!ended || hasEnded(stateOfEvent(event))) best = event;
    }
    return best;
  }

  get state() {
    const event = this.lastEvent;
    if (event) return stateOfEvent(event);
    return this.reports.last?.outcome === "done" ? "done" : "unknown";
  }

  get reason() {
    return this.lastEvent?.reason || this.reports.last?.errorDetail || "";
  }

  get errorName() {
    return this.lastEvent?.errorName || this.reports.last?.errorName || "";
  }

  get firstMs() {
    return Math.min(this.events.items[0]?.atUnixMs ?? Infinity, this.reports.items[0]?.atUnixMs ?? Infinity);
  }

  get lastMs() {
    return Math.max(this.events.last?.atUnixMs ?? 0, this.reports.last?.atUnixMs ?? 0);
  }

  get keyDigest() {
    return this.reports.last?.keyDigest || this.told?.keyDigest || "";
  }

  // An event whose sender had the descriptor at hand: it says the label, the priority and the number of partitions.
  get told() {
    return this.events.items.findLast((event) => event.keyDigest);
  }

  // What it cost so far: all tries of all partitions.
  get cost() {
    const out = { deviceNs: 0, millijoule: 0, wireBytes: 0, rawBytes: 0, proofs: 0 };
    for (const r of this.reports) {
      out.deviceNs += r.deviceNs;
      out.millijoule += r.energyMillijoule;
      out.wireBytes += r.wireBytes;
      out.rawBytes += r.rawBytes;
      if (r.outcome === "done") out.proofs++;
    }
    return out;
  }
}
