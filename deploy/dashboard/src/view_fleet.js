// The first page: how busy the fleet is, why it is not busier, what waits.
import { ledgerBar, legend } from "./chart.js";
import { h, keyed, setAttribute, setText, table } from "./dom.js";
import { isDone } from "./figures.js";
import { ago, bytes, count, digits, duration, energy, key, percent, power } from "./format.js";
import { busy, why } from "./ledger.js";
import { MINUTE_MS, PRIORITIES } from "./model.js";
import { badge, link, linkCell, section, tiles } from "./parts.js";

export const SENSOR = { utilisation: 1, power: 3, energy: 4, temperature: 5, receive: 8, transmit: 9, generation: 10, width: 11 };

export function fleetView(root, model) {
  const figures = tiles({
    busy: "Devices compute",
    proofs: "Proofs",
    backlog: "Backlog",
    jobs: "Jobs open",
    cost: "A proof costs",
    failed: "Failed",
  });
  const nodes = h("div", { class: "nodes" });
  const colours = legend();
  const none = h("p", { class: "empty" }, "No device has been heard of yet. A lane reports each second once its node runs.");
  const queues = table(
    "Queues",
    [
      { title: "Priority", text: (q) => PRIORITIES[q.priority] ?? q.priority },
      {
        title: "Key",
        class: "code",
        ...linkCell(
          (q) => link.find(key(q.keyDigest)),
          (q) => key(q.keyDigest),
        ),
      },
      { title: "Label", text: (q) => q.label || "–" },
      { title: "Waiting", class: "number", text: (q) => count(q.partitionsCount) },
      { title: "Oldest", class: "number", text: (q) => duration(q.oldestNs) },
      { title: "Device time", class: "number", text: (q) => (q.workNs ? duration(q.workNs) : "not known yet") },
    ],
    (q) => `${q.priority} ${q.keyDigest}`,
    "Nothing waits.",
  );
  const leader = h("p", { class: "remark" });
  root.append(figures.node, section("Devices, last minute", colours.node, none, nodes), section("Queues", queues.node, leader));
  const sync = keyed(
    nodes,
    ([name]) => nodeCard(name, model),
    ([name]) => name,
  );
  return {
    update() {
      const lanes = model.sortedLanes();
      const byNode = new Map();
      for (const lane of lanes) byNode.set(lane.node, [...(byNode.get(lane.node) ?? []), lane]);
      updateFigures(figures, model);
      none.hidden = lanes.length > 0;
      sync([...byNode]);
      colours.update(new Set(lanes.flatMap((lane) => [...lane.spent(MINUTE_MS).accounts.keys()])));
      queues.update(model.fleet?.queues ?? []);
      const f = model.fleet;
      setText(
        leader,
        f
          ? `Led by ${f.leader}${f.ready ? "" : ", which still reads the records"}. Last report ${ago(f.atUnixMs, model.now())}.${unread(model)}`
          : "No coordinator has been heard of yet.",
      );
    },
  };
}

const unread = ({ bad }) => (bad ? ` ${count(bad)} messages could not be read: is this page as new as the fleet?` : "");

function updateFigures(t, model) {
  const lanes = model.sortedLanes();
  const heard = lanes.filter((lane) => model.silentMs(lane) === null);
  const spans = model.spans.since(model.now() - MINUTE_MS),
    all = model.spans.items;
  const done = all.filter(isDone);
  const f = model.fleet;
  const spent = model.spent();
  t.busy.update(heard.length ? percent(busy(spent)) : "–", heard.length ? why(spent, f?.partitionsQueued) : "no device is heard");
  t.proofs.update(`${count(spans.filter(isDone).length)} per min`, `${count(done.length)} in the last quarter of an hour`);
  t.backlog.update(
    f ? duration(f.backlogWallNs) : "–",
    f
      ? `${count(f.partitionsQueued)} partitions wait${f.deadlinesAtRisk ? `, ${count(f.deadlinesAtRisk)} deadlines at risk` : ""}`
      : "",
    f?.deadlinesAtRisk ? "warn" : "",
  );
  t.jobs.update(
    f ? count(f.jobsOpen) : "–",
    f ? `${count(f.partitionsRunning)} partitions run on ${count(f.lanesOpen)} of ${count(f.lanesKnown)} lanes` : "",
    f && f.lanesOpen < f.lanesKnown ? "warn" : "",
  );
  const cost = all.reduce((sum, s) => ({ ns: sum.ns + s.deviceNs, mj: sum.mj + s.energyMillijoule }), { ns: 0, mj: 0 });
  t.cost.update(
    cost.ns ? duration(cost.ns / done.length) : "–",
    cost.ns ? `of a device; ${cost.mj ? energy(cost.mj / done.length) : "energy is not measured here"}` : "",
  );
  const alarms = model.errors.items.filter((e) => e.alarm).length;
  const failed = all.filter((s) => s.outcome === "failed").length;
  t.failed.update(
    count(failed),
    alarms ? `${count(alarms)} alarms: see Failures` : "partitions in the last quarter of an hour",
    alarms ? "bad" : "",
  );
}

function nodeCard(name, model) {
  const list = h("ul", { class: "lanes" });
  const sync = keyed(
    list,
    (lane) => laneRow(lane, model),
    (lane) => lane.name,
  );
  return { node: h("div", { class: "card" }, h("h3", null, name), list), update: ([, lanes]) => sync(lanes) };
}

function laneRow(first, model) {
  const title = h("a", { href: link.lane(first) }),
    state = h("span"),
    device = h("span", { class: "device" });
  const bar = ledgerBar();
  const now = h("p", { class: "now" }),
    facts = h("p", { class: "facts" });
  const node = h("li", { class: "lane" }, h("div", { class: "lane-head" }, title, state, device), bar.node, now, facts);
  return {
    node,
    update(lane) {
      const silent = model.silentMs(lane),
        spent = lane.spent(MINUTE_MS);
      setText(title, `device ${lane.gpu}`);
      badge(state, silent === null ? lane.state : "silent");
      setText(device, lane.device?.device || lane.info?.device || "");
      bar.update(spent);
      setAttribute(node, "data-silent", silent === null ? null : "");
      setText(now, silent === null ? whatNow(lane, spent, model) : silentWords(silent));
      setText(facts, factsOf(lane).join(" · "));
    },
  };
}

function silentWords(ms) {
  return Number.isFinite(ms) ? `Not heard for ${duration(Math.round(ms / 1000) * 1e9)}` : "Not heard since this page opened";
}

function whatNow(lane, spent, model) {
  const busiest = lane.lane?.jobs.find((j) => j.stage === "proving");
  const job = busiest
    ? `Proving ${busiest.jobId}${busiest.step ? `, ${busiest.step}` : ""} ${percent(busiest.permille / 1000)}. `
    : "";
  const reason = lane.lane?.reason ? `${lane.lane.reason}. ` : "";
  return `${reason}${job}${percent(busy(spent))} computing; ${why(spent, model.fleet?.partitionsQueued)}.`;
}

export function factsOf(lane) {
  const facts = [];
  if (lane.lane && lane.lane.depth !== null) facts.push(`${lane.lane.depth} of ${lane.lane.depthMax} jobs in hand`);
  const memory = lane.memory("device") ?? lane.memory("process");
  if (memory?.usedBytes)
    facts.push(`memory ${bytes(memory.usedBytes)}${memory.limitBytes ? ` of ${bytes(memory.limitBytes)}` : ""}`);
  const [watt, celsius] = [lane.reading(SENSOR.power), lane.reading(SENSOR.temperature)];
  if (watt !== undefined) facts.push(power(watt));
  if (celsius !== undefined) facts.push(`${digits(celsius)} °C`);
  if (lane.lane?.strikes) facts.push(`${lane.lane.strikes} strikes`);
  return facts;
}
