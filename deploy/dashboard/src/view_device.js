// One device: its quarter of an hour coloured by account, what it holds, what it measures.
import { ledgerBar, ledgerChart, legend, lineChart, swatch } from "./chart.js";
import { h, setText, table } from "./dom.js";
import { timeSpan } from "./figures.js";
import { ago, bytes, count, digits, duration, key, percent, power } from "./format.js";
import { columns, shares, why } from "./ledger.js";
import { MINUTE_MS, SPAN_MS } from "./model.js";
import { badge, link, linkCell, section } from "./parts.js";
import { factsOf, SENSOR } from "./view_fleet.js";

export function deviceView(root, model, [node, gpu]) {
  const name = `${node}.${gpu}`;
  const state = h("span"),
    about = h("p", { class: "lead" }),
    facts = h("p", { class: "facts" });
  const gone = h("p", { class: "empty" }, `No device ${name} has been heard of in the last quarter of an hour.`);
  const bar = ledgerBar(),
    chart = ledgerChart("Where its time went"),
    colours = legend();
  const accounts = accountTable(),
    jobs = jobTable(),
    memory = memoryTable(),
    keys = keyTable(),
    counters = counterTable();
  const sensors = lineChart("Power", { format: (v) => power(v) });
  const body = h(
    "div",
    null,
    h("p", null, state),
    about,
    facts,
    section("Last minute", bar.node, accounts.node),
    section("Timeline", colours.node, chart.node),
    section("Jobs in hand", jobs.node),
    h("div", { class: "halves" }, section("Memory", memory.node), section("Keys", keys.node)),
    section("Sensors", sensors.node, sensorList()),
    section("Counters since its start", h("div", { class: "narrow" }, counters.node)),
  );
  root.append(gone, body);
  const readings = body.querySelector(".sensors");
  return {
    update() {
      const lane = model.lanes.get(name);
      gone.hidden = Boolean(lane);
      body.hidden = !lane;
      if (!lane) return;
      const silent = model.silentMs(lane),
        spent = lane.spent(MINUTE_MS),
        now = model.now();
      badge(state, silent === null ? lane.state : "silent");
      setText(
        about,
        `${lane.device?.device || lane.info?.device || "unknown device"}. ${why(spent, model.fleet?.partitionsQueued)}. Heard ${ago(lane.device?.atUnixMs, now)}.`,
      );
      setText(facts, factsOf(lane).join(" · "));
      bar.update(spent);
      accounts.update(bothSpans(spent, lane.spent(SPAN_MS)));
      updateTimeline(lane, chart, colours, now);
      jobs.update((lane.lane?.jobs ?? []).map((job) => ({ ...job, tenant: job.tenant, id: job.jobId })));
      memory.update(lane.device?.memory ?? []);
      keys.update(lane.keys?.keys ?? []);
      counters.update(lane.device?.counters ?? []);
      updateSensors(lane, sensors, readings, now);
    },
  };
}

function updateTimeline(lane, chart, colours, now) {
  const samples = lane.samples();
  const { from, to, step } = timeSpan(samples[0]?.at ?? now, now, "column");
  const all = columns(samples, from, to, step);
  chart.update({ columns: all, from, to });
  colours.update(new Set(all.flatMap((c) => (c.accounts ? [...c.accounts.keys()] : []))));
}

// Accounts with their time in the last minute and in all that is known.
function bothSpans(minute, quarter) {
  const short = new Map(shares(minute).map((part) => [part.account.name, part]));
  return shares(quarter).map((part) => ({ ...part, minute: short.get(part.account.name) }));
}

function accountTable() {
  return table(
    "Accounts",
    [
      {
        title: "Account",
        make: (p) =>
          h(
            "span",
            { class: "account" },
            swatch(p.account.name),
            p.account.name === "running" ? "computing now" : p.account.name,
          ),
      },
      { title: "Last minute", class: "number", text: (p) => (p.minute ? percent(p.minute.share) : "–") },
      { title: "15 minutes", class: "number", text: (p) => percent(p.share) },
      { title: "Time", class: "number roomy", text: (p) => duration(p.ns) },
      { title: "Meaning", class: "wide roomy", text: (p) => p.account.meaning },
    ],
    (p) => p.account.name,
    "Nothing heard yet.",
    "compact",
  );
}

function jobTable() {
  return table(
    "Jobs in hand",
    [
      { title: "Job", class: "code", ...linkCell(link.job, (j) => j.jobId) },
      { title: "Part", class: "number", text: (j) => j.partitionIndex },
      { title: "Stage", text: (j) => (j.step ? `${j.stage}: ${j.step}` : j.stage) },
      { title: "Progress", class: "number", text: (j) => (j.permille ? percent(j.permille / 1000) : "–") },
      { title: "In stage", class: "number", text: (j) => duration(j.stageNs) },
      { title: "Age", class: "number", text: (j) => duration(j.ageNs) },
    ],
    (j) => `${j.tenant}.${j.jobId}.${j.generation}.${j.partitionIndex}`,
    "No job in hand.",
  );
}

function memoryTable() {
  return table(
    "Memory",
    [
      { title: "Kind", text: (m) => m.name },
      { title: "Used", class: "number", text: (m) => bytes(m.usedBytes) },
      { title: "Limit", class: "number", text: (m) => (m.limitBytes ? bytes(m.limitBytes) : "none known") },
      { title: "Full", class: "number", text: (m) => (m.limitBytes ? percent(m.usedBytes / m.limitBytes) : "–") },
    ],
    (m) => m.name,
    "No memory reported.",
  );
}

function keyTable() {
  return table(
    "Keys",
    [
      { title: "Key", class: "code", text: (k) => key(k.digest) },
      { title: "Where", text: (k) => (k.loaded ? "loaded" : "on disk") },
      { title: "A proof takes", class: "number", text: (k) => (k.proveNs ? duration(k.proveNs) : "not known yet") },
      { title: "Loading takes", class: "number", text: (k) => (k.loadNs ? duration(k.loadNs) : "not known yet") },
    ],
    (k) => k.digest,
    "No key loaded or cached.",
  );
}

function counterTable() {
  const value = ({ name, value: v }) => (name.endsWith("_ns") ? duration(v) : name.endsWith("_bytes") ? bytes(v) : count(v));
  return table(
    "Counters",
    [
      { title: "Counter", text: (c) => c.name.replace(/_(ns|bytes)$/, "").replaceAll("_", " ") },
      { title: "Total", class: "number", text: value },
    ],
    (c) => c.name,
    "Nothing counted.",
  );
}

function sensorList() {
  return h("p", { class: "facts sensors" });
}

function updateSensors(lane, chart, list, now) {
  const points = lane
    .samples()
    .map((s) => [s.at, s.readings?.find((r) => r.sensor === SENSOR.power)?.value])
    .filter(([, v]) => v !== undefined);
  chart.node.hidden = points.length === 0;
  if (points.length) chart.update({ series: [{ name: "power", points }], ...timeSpan(points[0][0], now, "column"), gap: 30000 });
  const of = (sensor) => lane.reading(sensor);
  const words = [];
  if (of(SENSOR.utilisation) !== undefined)
    words.push(`utilisation as the driver sees it ${percent(of(SENSOR.utilisation) / 1000)}`);
  if (of(SENSOR.temperature) !== undefined) words.push(`${digits(of(SENSOR.temperature))} °C`);
  if (of(6) !== undefined) words.push(`core ${count(of(6))} MHz`);
  if (of(7) !== undefined) words.push(`memory ${count(of(7))} MHz`);
  if (of(SENSOR.receive) !== undefined)
    words.push(`PCIe in ${bytes(of(SENSOR.receive))}/s, out ${bytes(of(SENSOR.transmit) ?? 0)}/s`);
  if (of(SENSOR.generation) !== undefined)
    words.push(
      `PCIe ${of(SENSOR.generation)}.0 ×${of(SENSOR.width)}${of(12) > of(SENSOR.generation) || of(13) > of(SENSOR.width) ? ` (could be ${of(12)}.0 ×${of(13)})` : ""}`,
    );
  setText(list, words.join(" · ") || "This device gives no readings.");
}
