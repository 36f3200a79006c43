// Throughput, latency, where the fleet's time goes, and the backlog, over the last quarter of an hour; and what a proof costs.
import { ledgerChart, legend, lineChart } from "./chart.js";
import { h, table } from "./dom.js";
import { costs, isDone, perSlot, quantilePerSlot } from "./figures.js";
import { bytes, count, digits, duration, energy, key, percent } from "./format.js";
import { columns } from "./ledger.js";
import { SPAN_MS } from "./model.js";
import { section } from "./parts.js";

const SLOT_MS = 15000;

export function plotsView(root, model) {
  const through = lineChart("Proofs per minute", { format: digits, bars: true });
  const latency = lineChart("A partition's time on its lane", { format: duration });
  const device = lineChart("A proof's device time", { format: duration });
  const backlog = lineChart("Backlog: time to empty the queues", { format: (s) => duration(s) });
  const where = ledgerChart("Where the fleet's device time went"), colours = legend();
  root.append(h("div", { class: "charts" }, [through, latency, device, backlog].map((c) => c.node)), section("All devices", colours.node, where.node));
  return {
    update() {
      const to = Math.ceil(model.now() / SLOT_MS) * SLOT_MS, from = to - SPAN_MS;
      const done = model.spans.items.filter(isDone), at = (span) => span.atUnixMs;
      const time = { from, to, gap: 4 * SLOT_MS };
      const perMinute = perSlot(done, at, from, to - 1, SLOT_MS).map(([ms, n]) => [ms, (n * 60000) / SLOT_MS]);
      through.update({ ...time, gap: SLOT_MS, series: [{ name: "proofs", points: perMinute }] });
      latency.update({ ...time, series: quantiles(done, (s) => s.totalNs) });
      device.update({ ...time, series: quantiles(done.filter((s) => s.deviceNs), (s) => s.deviceNs) });
      backlog.update({ ...time, series: [{ name: "backlog", points: model.backlog.items.map((f) => [f.atUnixMs, f.backlogWallNs]) }] });
      const all = mean(model.sortedLanes().map((lane) => columns(lane.samples(), from, to, SLOT_MS)));
      where.update({ columns: all, from, to });
      colours.update(new Set(all.flatMap((c) => (c.accounts ? [...c.accounts.keys()] : []))));
    },
  };
}

function quantiles(spans, valueOf) {
  return [["half below", 0.5], ["95 of 100 below", 0.95]].map(([name, part]) => ({
    name, points: quantilePerSlot(spans, (s) => s.atUnixMs, valueOf, part, SLOT_MS).map(([ms, value]) => [ms + SLOT_MS / 2, value]),
  }));
}

// The mean of several devices' columns, of those that were heard in each.
function mean(devices) {
  if (!devices.length) return [];
  return devices[0].map(({ at }, i) => {
    const heard = devices.map((columns) => columns[i].accounts).filter(Boolean);
    if (!heard.length) return { at, accounts: null };
    const accounts = new Map();
    for (const one of heard) for (const [name, share] of one) accounts.set(name, (accounts.get(name) ?? 0) + share / heard.length);
    return { at, accounts };
  });
}

export function costView(root, model) {
  const list = table("Cost of a proof", [
    { title: "Key", class: "code", text: (r) => key(r.keyDigest) },
    { title: "Device", text: (r) => r.device || "–" },
    { title: "Proofs", class: "number", text: (r) => count(r.proofs) },
    { title: "Device time each", class: "number", text: (r) => (r.deviceNs ? duration(r.deviceNsEach) : "–") },
    { title: "Energy each", class: "number", text: (r) => energy(r.millijouleEach) },
    { title: "On the lane, median", class: "number", text: (r) => duration(r.medianNs) },
    { title: "Body each", class: "number", text: (r) => (r.proofs && r.wireBytes ? bytes(r.wireBytes / r.proofs) : "–") },
    { title: "Packed", class: "number", text: (r) => (r.wireBytes && r.rawBytes ? `${digits(r.rawBytes / r.wireBytes)} : 1` : "–") },
    { title: "Lost tries", class: "number", text: (r) => (r.lost ? `${count(r.lost)} (${percent(r.lostNs / r.deviceNs)})` : "0") },
  ], (r) => r.name, "No proof in the last quarter of an hour.");
  root.append(section("Cost per proof, last quarter of an hour", h("p", { class: "remark" },
    "All tries are counted, also those that failed: device time and energy of all, divided by the proofs that came of it."), list.node));
  return { update: () => list.update(costs(model.spans.items)) };
}
