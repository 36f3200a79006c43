// Throughput, latency, where the fleet's time goes, and the backlog, over the last quarter of an hour; and what a proof costs.
import { ledgerChart, legend, lineChart } from "./chart.js";
import { h, table } from "./dom.js";
import { costs, isDone, perSlot, quantilePerSlot, timeSpan } from "./figures.js";
import { bytes, count, digits, duration, energy, key, percent } from "./format.js";
import { columns } from "./ledger.js";
import { section } from "./parts.js";

export function plotsView(root, model) {
  const through = lineChart("Proofs per minute", { format: digits, bars: true });
  const latency = lineChart("A partition's time on its lane", { format: duration });
  const device = lineChart("A proof's device time", { format: duration });
  const backlog = lineChart("Backlog: time to empty the queues", { format: (s) => duration(s) });
  const where = ledgerChart("Where the fleet's device time went"),
    colours = legend();
  root.append(
    h(
      "div",
      { class: "charts" },
      [through, latency, device, backlog].map((c) => c.node),
    ),
    section("All devices", colours.node, where.node),
  );
  return {
    update() {
      const done = model.spans.items.filter(isDone),
        at = (span) => span.atUnixMs;
      const { from, to, step } = timeSpan(firstOf(model), model.now(), "slot");
      const time = { from, to, gap: 4 * step };
      const whole = ([ms]) => ms + step <= model.now(); // a slot that is not over would look like a drop
      const perMinute = perSlot(done, at, from, to - 1, step)
        .filter(whole)
        .map(([ms, n]) => [ms, (n * 60000) / step]);
      through.update({ ...time, gap: step, series: [{ name: "proofs", points: perMinute }] });
      latency.update({ ...time, series: quantiles(done, (s) => s.totalNs, step) });
      device.update({
        ...time,
        series: quantiles(
          done.filter((s) => s.deviceNs),
          (s) => s.deviceNs,
          step,
        ),
      });
      backlog.update({
        ...time,
        series: [{ name: "backlog", points: model.backlog.items.map((f) => [f.atUnixMs, f.backlogWallNs]) }],
      });
      const all = mean(model.sortedLanes().map((lane) => columns(lane.samples(), from, to, step)));
      where.update({ columns: all, from, to });
      colours.update(new Set(all.flatMap((c) => (c.accounts ? [...c.accounts.keys()] : []))));
    },
  };
}

// When the oldest thing that is known happened.
function firstOf(model) {
  const samples = model.sortedLanes().map((lane) => lane.samples()[0]?.at);
  return Math.min(
    ...[model.spans.items[0]?.atUnixMs, model.backlog.items[0]?.atUnixMs, ...samples].filter(Number.isFinite),
    model.now(),
  );
}

function quantiles(spans, valueOf, step) {
  return [
    ["half below", 0.5],
    ["95 of 100 below", 0.95],
  ].map(([name, part]) => ({
    name,
    points: quantilePerSlot(spans, (s) => s.atUnixMs, valueOf, part, step).map(([ms, value]) => [ms + step / 2, value]),
  }));
}

// The mean of several devices' columns, of those that were heard in each.
function mean(devices) {
  if (!devices.length) return [];
  return devices[0].map(({ at }, i) => {
    const heard = devices.map((columns) => columns[i].accounts).filter(Boolean);
    if (!heard.length) return { at, accounts: null };
    const accounts = new Map();
    for (const one of heard)
      for (const [name, share] of one) accounts.set(name, (accounts.get(name) ?? 0) + share / heard.length);
    return { at, accounts };
  });
}

export function costView(root, model) {
  const list = table(
    "Cost of a proof",
    [
      { title: "Key", class: "code", text: (r) => key(r.keyDigest) },
      { title: "Device", text: (r) => r.device || "–" },
      { title: "Proofs", class: "number", text: (r) => count(r.proofs) },
      { title: "Device time each", class: "number", text: (r) => (r.deviceNs ? duration(r.deviceNsEach) : "–") },
      { title: "Energy each", class: "number", text: (r) => energy(r.millijouleEach) },
      { title: "On the lane, median", class: "number", text: (r) => duration(r.medianNs) },
      { title: "Body each", class: "number", text: (r) => (r.proofs && r.wireBytes ? bytes(r.wireBytes / r.proofs) : "–") },
      {
        title: "Packed",
        class: "number",
        text: (r) => (r.wireBytes && r.rawBytes ? `${digits(r.rawBytes / r.wireBytes)} : 1` : "–"),
      },
      {
        title: "Lost tries",
        class: "number",
        text: (r) => (r.lost ? `${count(r.lost)} (${percent(r.lostNs / r.deviceNs)})` : "0"),
      },
    ],
    (r) => r.name,
    "No proof in the last quarter of an hour.",
  );
  root.append(
    section(
      "Cost per proof, last quarter of an hour",
      h(
        "p",
        { class: "remark" },
        "All tries are counted, also those that failed: device time and energy of all, divided by the proofs that came of it.",
      ),
      list.node,
    ),
  );
  return { update: () => list.update(costs(model.spans.items)) };
}
