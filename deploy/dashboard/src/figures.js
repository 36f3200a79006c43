// Figures over the last quarter of an hour, made from what the model holds. Pure; the views only draw them.
import { quantile } from "./format.js";

// The partition's own end; a lane that says no outcome yet counts as done unless a step says otherwise.
export const isDone = (span) => span.outcome === "done" || (span.outcome === "" && !span.errorName);

// How much of the past a plot shows, and in which steps: a young fleet fills its plots, too. {from, to, step} in ms.
const SPANS = [
  [2, 2000, 5000],
  [5, 4000, 10000],
  [15, 10000, 15000],
].map(([minutes, column, slot]) => ({ ms: minutes * 60000, column, slot }));
export function timeSpan(firstMs, now, what) {
  const span = SPANS.find(({ ms }) => firstMs >= now - ms) ?? SPANS[SPANS.length - 1];
  const step = span[what];
  const to = Math.ceil(now / step) * step;
  return { from: to - span.ms, to, step };
}

// Counts per slot of `width` ms: [[ms, count]], every slot of the time, also empty ones.
export function perSlot(items, timeOf, from, to, width) {
  const first = Math.floor(from / width);
  const counts = new Array(Math.max(0, Math.floor(to / width) - first + 1)).fill(0);
  for (const item of items) {
    const slot = Math.floor(timeOf(item) / width) - first;
    if (slot >= 0 && slot < counts.length) counts[slot]++;
  }
  return counts.map((count, slot) => [(first + slot) * width, count]);
}

// A quantile per slot; slots without items are left out: [[ms, value]].
export function quantilePerSlot(items, timeOf, valueOf, part, width) {
  const slots = new Map();
  for (const item of items) {
    const slot = Math.floor(timeOf(item) / width) * width;
    if (!slots.has(slot)) slots.set(slot, []);
    slots.get(slot).push(valueOf(item));
  }
  return [...slots]
    .sort((a, b) => a[0] - b[0])
    .map(([ms, values]) => [
      ms,
      quantile(
        values.sort((a, b) => a - b),
        part,
      ),
    ]);
}

// What a proof costs under each key and kind of device: all tries are paid for, done ones are what one gets.
export function costs(spans) {
  const rows = new Map();
  for (const span of spans) {
    const name = `${span.keyDigest} ${span.device}`;
    if (!rows.has(name)) {
      rows.set(name, {
        name,
        keyDigest: span.keyDigest,
        device: span.device,
        proofs: 0,
        lost: 0,
        deviceNs: 0,
        lostNs: 0,
        millijoule: 0,
        wireBytes: 0,
        rawBytes: 0,
        totals: [],
      });
    }
    const row = rows.get(name);
    row.deviceNs += span.deviceNs;
    row.millijoule += span.energyMillijoule;
    row.wireBytes += span.wireBytes;
    row.rawBytes += span.rawBytes;
    if (isDone(span)) {
      row.proofs++;
      row.totals.push(span.totalNs);
    } else {
      row.lost++;
      row.lostNs += span.deviceNs;
    }
  }
  const out = [...rows.values()];
  for (const row of out) {
    row.totals.sort((a, b) => a - b);
    row.medianNs = quantile(row.totals, 0.5);
    row.deviceNsEach = row.proofs ? row.deviceNs / row.proofs : NaN;
    row.millijouleEach = row.proofs ? row.millijoule / row.proofs : NaN;
  }
  return out.sort((a, b) => b.deviceNs - a.deviceNs || (a.name < b.name ? -1 : 1));
}

// Failures of all kinds, newest first: [{at, what, name, detail, tenant, jobId, place, alarm}]. A partition's failure, the lane's error
// about it and the job's end by it are one.
export function failures(errors, spans, jobs, limit) {
  const out = new Map();
  const explained = new Set(); // jobs whose end has a cause below
  const add = (row) => {
    const job = `${row.tenant}.${row.jobId}`;
    const key = row.jobId ? `${job}.${row.name}.${row.part ?? ""}.${row.place}` : `${row.place}.${row.name}.${row.at}`;
    const old = out.get(key);
    if (!old) out.set(key, { ...row, key });
    else out.set(key, { ...old, alarm: old.alarm || row.alarm, detail: old.detail || row.detail, at: Math.max(old.at, row.at) });
    if (row.jobId) explained.add(job);
  };
  for (const e of errors) {
    add({
      at: e.atUnixMs,
      what: e.step ? `error in ${e.step}` : "error",
      name: e.name,
      detail: e.detail,
      tenant: e.tenant,
      jobId: e.jobId,
      part: e.partitionIndex,
      place: `${e.node}.${e.gpu}`,
      alarm: e.alarm,
    });
  }
  for (const s of spans) {
    if (isDone(s) || s.outcome === "handed_back" || s.outcome === "stale") continue;
    add({
      at: s.atUnixMs,
      what: s.outcome.replace("_", " "),
      name: s.errorName,
      detail: s.errorDetail,
      tenant: s.tenant,
      jobId: s.jobId,
      part: s.partitionIndex,
      place: `${s.node}.${s.gpu}`,
      alarm: false,
    });
  }
  for (const job of jobs) {
    const event = job.lastEvent;
    if (!event || !["failed", "expired", "cancelled", "dead"].includes(job.state)) continue;
    if (job.state === "failed" && explained.has(job.name)) continue;
    add({
      at: event.atUnixMs,
      what: `job ${job.state}`,
      name: event.errorName ?? "",
      detail: event.reason,
      tenant: job.tenant,
      jobId: job.id,
      place: "",
      alarm: job.state === "dead",
    });
  }
  return [...out.values()].sort((a, b) => b.at - a.at).slice(0, limit);
}

// The waterfall of one report: spans with their place in it, 0 to 1.
export function waterfall(report) {
  const end = Math.max(report.totalNs, ...report.spans.map((span) => span.startNs + span.ns), 1);
  return report.spans.map((span, index) => ({ ...span, index, left: span.startNs / end, width: span.ns / end }));
}
