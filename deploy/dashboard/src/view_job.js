// One job: what became of it, and where each of its partitions spent its time.
import { accountClass } from "./chart.js";
import { h, keyed, s, setAttribute, setText, table } from "./dom.js";
import { causeOf } from "./causes.js";
import { waterfall } from "./figures.js";
import { ago, bytes, clockFine, duration, energy, key, percent, rate } from "./format.js";
import { accountOf, accountOfStep } from "./ledger.js";
import { hasEnded, PRIORITIES, stateOfEvent } from "./model.js";
import { badge, link, section, tiles } from "./parts.js";

const OPEN_PARTS = 3; // more are folded

export function jobView(root, model, [tenant, id]) {
  const state = h("span"),
    lead = h("p", { class: "lead" });
  const gone = h(
    "p",
    { class: "empty" },
    `Nothing was heard of job ${id} of ${tenant} in the last quarter of an hour. If it is older, \`bellows status ${id}\` knows it.`,
  );
  const figures = tiles({ time: "In the fleet", device: "Device time", energy: "Energy", moved: "Body" });
  const hand = table(
    "In hand now",
    [
      { title: "Part", class: "number", text: ({ part }) => part.partitionIndex },
      {
        title: "Device",
        make: () => h("a"),
        update: (cell, { lane }) => {
          setAttribute(cell.firstChild, "href", link.lane(lane));
          setText(cell.firstChild, lane.name);
        },
      },
      { title: "Stage", text: ({ part }) => (part.step ? `${part.stage}: ${part.step}` : part.stage) },
      {
        title: "Progress",
        make: () => h("progress", { max: 1000 }),
        update: (cell, { part }) => {
          cell.firstChild.value = part.permille;
          setAttribute(cell.firstChild, "aria-label", percent(part.permille / 1000));
        },
      },
      { title: "Age", class: "number", text: ({ part }) => duration(part.ageNs) },
    ],
    ({ lane, part }) => `${lane.name} ${part.partitionIndex}`,
    "No lane holds a part of it now.",
  );
  const events = table(
    "Events",
    [
      { title: "Time", class: "time", text: (e) => clockFine(e.atUnixMs) },
      { title: "State", make: () => h("span"), update: (cell, e) => badge(cell.firstChild, stateOfEvent(e)) },
      { title: "Step", text: (e) => (e.stage && e.stage !== stateOfEvent(e) ? e.stage : "–") },
      { title: "Part", class: "number", text: (e) => (e.node ? e.partitionIndex : "–") },
      { title: "Device", text: (e) => (e.node ? `${e.node}.${e.gpu}` : "–") },
      { title: "Reason", class: "wide", text: (e) => e.reason || "–" },
    ],
    (e) => `${e.atUnixMs} ${e.generation} ${e.state} ${e.stage} ${e.partitionIndex} ${e.node} ${e.gpu}`,
    "No event heard.",
  );
  const reports = h("div"),
    noReport = h("p", { class: "empty" }, "Steps appear when a partition leaves its lane.");
  const body = h(
    "div",
    null,
    h("p", null, state),
    lead,
    figures.node,
    section("In hand now", hand.node),
    section("Steps", noReport, reports),
    section("Events", events.node),
  );
  root.append(gone, body);
  const sync = keyed(reports, reportCard, (r) => `${r.atUnixMs} ${r.node} ${r.gpu} ${r.generation} ${r.partitionIndex}`);
  return {
    update() {
      const job = model.jobs.get(`${tenant}.${id}`);
      gone.hidden = Boolean(job);
      body.hidden = !job;
      if (!job) return;
      badge(state, model.stateOf(job));
      setText(lead, aboutJob(job));
      updateFigures(figures, job, model);
      hand.update(model.inHand(job));
      noReport.hidden = job.reports.length > 0;
      sync([...job.reports.items].sort((a, b) => a.partitionIndex - b.partitionIndex || a.atUnixMs - b.atUnixMs));
      events.update(job.events.items);
    },
  };
}

function aboutJob(job) {
  const { told } = job;
  const words = [
    `Tenant ${job.tenant}`,
    told?.label && `label ${told.label}`,
    `key ${key(job.keyDigest)}`,
    told && `${PRIORITIES[told.priority] ?? told.priority} priority`,
    told?.partitionsCount > 1 && `${told.partitionsCount} partitions`,
    job.generation > 1 && `generation ${job.generation}`,
  ];
  const why = job.state === "done" ? [] : [job.errorName, job.reason].filter(Boolean);
  return [`${words.filter(Boolean).join(", ")}.`, why.length && `${why.join(": ")}.`, why.length && causeOf(job.errorName)]
    .filter(Boolean)
    .join(" ");
}

function updateFigures(t, job, model) {
  const cost = job.cost,
    ended = hasEnded(job.state);
  t.time.update(
    duration(((ended ? job.lastMs : model.now()) - job.firstMs) * 1e6),
    ended ? `ended ${ago(job.lastMs, model.now())}` : "and not over",
  );
  t.device.update(
    cost.deviceNs ? duration(cost.deviceNs) : "–",
    cost.proofs ? `${duration(cost.deviceNs / cost.proofs)} per proof, ${cost.proofs} so far` : "",
  );
  t.energy.update(
    energy(cost.millijoule),
    cost.millijoule && cost.proofs
      ? `${energy(cost.millijoule / cost.proofs)} per proof`
      : cost.deviceNs
        ? "not measured on this device"
        : "",
  );
  t.moved.update(
    cost.wireBytes ? bytes(cost.wireBytes) : "–",
    cost.rawBytes && cost.wireBytes ? `${bytes(cost.rawBytes)} unpacked` : "",
  );
}

// A partition's waterfall. Made once: a report never changes.
function reportCard(report) {
  const rows = waterfall(report).map((span) => {
    const outcome = span.outcome && span.outcome !== "ok" ? span.outcome : "";
    const account = accountOfStep(span.step);
    const fill = s("rect", {
      class: `fill ${outcome ? "bad" : accountClass(account)}`,
      x: `${(Math.min(0.997, span.left) * 100).toFixed(2)}%`,
      width: `${Math.max(0.3, span.width * 100).toFixed(2)}%`,
      height: "100%",
      rx: 2,
    });
    return h(
      "tr",
      null,
      h("th", { scope: "row", title: accountOf(account).meaning }, span.step.replaceAll("_", " ")),
      h("td", { class: "track", "aria-hidden": "true" }, s("svg", { width: "100%", height: 12 }, fill)),
      h("td", { class: "number" }, duration(span.ns)),
      h("td", { class: "number" }, span.bytes ? bytes(span.bytes) : "–"),
      h("td", { class: "number" }, rate(span.bytes, span.ns)),
      h("td", null, outcome || span.device || "device"),
    );
  });
  const outcome = h("span");
  badge(outcome, report.outcome === "" ? "done" : report.outcome.replaceAll("_", " "));
  const head = ["Step", "", "Time", "Bytes", "Rate", "Where"];
  const words = `part ${report.partitionIndex} on ${report.node}.${report.gpu}${report.attempt > 1 ? `, try ${report.attempt}` : ""}: ${[report.totalNs && `${duration(report.totalNs)} in all`, report.deviceNs && `${duration(report.deviceNs)} of the device`].filter(Boolean).join(", ")}`;
  return {
    node: h(
      "details",
      { class: "card", open: report.partitionIndex < OPEN_PARTS },
      h("summary", null, h("h3", null, words, " ", outcome)),
      report.errorName ? h("p", null, `${report.errorName}: ${report.errorDetail}`) : null,
      h(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": `Steps of ${words}` },
        h(
          "table",
          { class: "waterfall" },
          h(
            "thead",
            null,
            h(
              "tr",
              null,
              head.map((word) =>
                h(
                  "th",
                  { scope: "col", class: ["Time", "Bytes", "Rate"].includes(word) ? "number" : null },
                  word || h("span", { class: "hidden" }, "When"),
                ),
              ),
            ),
          ),
          h("tbody", null, rows),
        ),
      ),
    ),
  };
}
