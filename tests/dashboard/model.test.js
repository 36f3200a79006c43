// What the page makes of messages: order, limits, jobs' states, figures.
import assert from "node:assert/strict";
import { test } from "node:test";
import { costs, failures, perSlot, quantilePerSlot, timeSpan, waterfall } from "../../deploy/dashboard/src/figures.js";
import { LIMITS, Model } from "../../deploy/dashboard/src/model.js";
import { findJobs } from "../../deploy/dashboard/src/view_jobs.js";

const NOW = 1_000_000_000;
const where = { node: "n", gpu: 0 };
const device = (at, more = {}) => ({
  atUnixMs: at,
  session: "s",
  wallNs: at,
  openNs: 0,
  accounts: [{ name: "upload", ns: at }],
  readings: [],
  counters: [],
  memory: [],
  ...more,
});
const event = (state, at, more = {}) => ({
  tenant: "t",
  jobId: "j",
  generation: 1,
  state,
  stage: "",
  node: "",
  gpu: 0,
  partitionIndex: 0,
  reason: "",
  atUnixMs: at,
  ...more,
});
const span = (at, more = {}) => ({
  node: "n",
  gpu: 0,
  tenant: "t",
  jobId: "j",
  generation: 1,
  partitionIndex: 0,
  keyDigest: "ab",
  device: "d",
  spans: [],
  atUnixMs: at,
  totalNs: 10,
  outcome: "done",
  errorName: "",
  errorDetail: "",
  deviceNs: 8,
  energyMillijoule: 3,
  wireBytes: 4,
  rawBytes: 16,
  ...more,
});
const begin = () => new Model(() => NOW);

test("a job's state is its last event's, and an end stays", () => {
  const model = begin();
  for (const [state, at] of [
    [1, 1],
    [2, 2],
    [4, 5],
    [3, 4],
  ])
    model.take("event", {}, event(state, at), true);
  const job = model.jobs.get("t.j");
  assert.equal(job.state, "done");
  model.take("event", {}, event(3, 9), true); // a worker that is late
  assert.equal(job.state, "done");
  model.take("event", {}, event(1, 10, { generation: 2 }), true); // sent again
  assert.equal(job.state, "queued");
});

test("a job of several partitions is done when all are, not when the first is", () => {
  const model = begin();
  const take = (state, at, more) =>
    model.take("event", {}, event(state, at, { keyDigest: "ab", label: "l", priority: 1, partitionsCount: 2, ...more }), true);
  take(1, 1);
  take(3, 2, { node: "n", partitionIndex: 0 });
  take(4, 3, { node: "n", partitionIndex: 0, stage: "proved" });
  const job = model.jobs.get("t.j");
  assert.equal(job.state, "running");
  take(4, 4, { node: "n", partitionIndex: 1, stage: "proved" });
  assert.equal(job.state, "running");
  take(4, 5);
  assert.equal(job.state, "done");
  assert.deepEqual([job.keyDigest, job.told.label, job.told.partitionsCount], ["ab", "l", 2]);
});

test("a report read from the past does not replace a newer one", () => {
  const model = begin();
  model.take("device", where, device(NOW), true);
  model.take("device", where, device(NOW - 5000), false);
  assert.equal(model.lanes.get("n.0").device.atUnixMs, NOW);
  assert.deepEqual(
    model.lanes.get("n.0").fine.items.map((s) => s.at),
    [NOW - 5000, NOW],
  );
});

test("a lane's report read from the past does not say what is in hand now", () => {
  const model = begin(),
    report = (jobId, at) => ({ atUnixMs: at, state: 2, depth: 1, depthMax: 4, jobs: [{ tenant: "t", jobId, partitionIndex: 0, stage: "proving" }] }),
    lane = () => model.lanes.get("n.0").lane;
  model.take("event", {}, event(2, NOW - 3000, { jobId: "gone" }), false);
  model.take("lane", where, report("gone", NOW - 3000), false);
  assert.deepEqual([lane().state, lane().depth, lane().depthMax, lane().jobs], [2, null, 4, []]);
  assert.equal(model.stateOf(model.jobs.get("t.gone")), "placed");
  model.take("lane", where, report("here", NOW), true);
  model.take("lane", where, report("here", NOW), false); // the same, as the stream kept it
  assert.deepEqual([lane().depth, lane().jobs[0].jobId], [1, "here"]);
});

test("everything has a limit", () => {
  const model = begin();
  for (let i = 0; i < 3000; i++) {
    model.take("event", {}, event(1, i, { jobId: `j${i}` }), true);
    model.take("event", {}, event(1 + (i % 3), i, { jobId: "same", epoch: i }), true);
    model.take("device", { node: `n${i}`, gpu: 0 }, device(i), true);
    model.take("device", { node: "n0", gpu: 0 }, device(NOW + i * 1000), true);
    model.take("error", where, { atUnixMs: i, name: "E_IO", detail: "", node: "n", gpu: 0 }, true);
    model.take("fleet", {}, { atUnixMs: i, leader: "l" }, true);
  }
  for (let i = 0; i < 6000; i++) model.take("span", where, span(i, { jobId: `s${i}` }), true);
  const lane = model.lanes.get("n0.0");
  assert.equal(model.jobs.size, LIMITS.jobs);
  assert.equal(model.lanes.size, LIMITS.lanes);
  assert.equal(model.spans.length, LIMITS.spans);
  assert.equal(model.errors.length, LIMITS.errors);
  assert.equal(lane.fine.length, LIMITS.fine);
  assert.equal(lane.coarse.length, LIMITS.coarse);
  assert.ok(model.backlog.length <= 1100);
});

test("jobs that change are kept, the longest unchanged go", () => {
  const model = begin();
  for (let i = 0; i < LIMITS.jobs; i++) model.take("event", {}, event(1, i, { jobId: `j${i}` }), true);
  model.take("event", {}, event(2, 9e6, { jobId: "j0" }), true);
  model.take("event", {}, event(1, 9e6, { jobId: "new" }), true);
  assert.ok(model.jobs.has("t.j0"));
  assert.ok(!model.jobs.has("t.j1"));
});

test("lanes fall silent, then are forgotten", () => {
  const model = begin();
  model.take("device", where, device(NOW - 60000), false);
  assert.equal(model.silentMs(model.lanes.get("n.0")), 60000);
  model.take("device", { node: "m", gpu: 1 }, device(NOW - 1000), false);
  assert.equal(model.silentMs(model.lanes.get("m.1")), null);
  model.take("device", { node: "old", gpu: 0 }, device(NOW - 16 * 60000), false);
  model.forgetOld();
  assert.deepEqual([...model.lanes.keys()], ["n.0", "m.1"]);
});

test("a lane that speaks is never silent because its kept report is old", () => {
  let now = NOW;
  const model = new Model(() => now);
  const silent = (name) => model.silentMs(model.lanes.get(name)) !== null;
  model.take("device", where, device(NOW - 9900), false); // kept every ten seconds
  model.take("lane", where, { atUnixMs: NOW - 9900, state: 2, jobs: [] }, false);
  model.take("device", { node: "died", gpu: 0 }, device(NOW - 60000), false);
  model.takeInfo({ node: "new", gpu: 0 }); // of which the stream keeps nothing yet
  model.take("span", where, span(NOW, {}), true); // says nothing of the lane's own reports
  assert.deepEqual(["n.0", "died.0", "new.0"].map(silent), [false, true, false]);
  now = NOW + 900;
  model.take("device", where, device(now), true);
  now = NOW + 5500;
  assert.deepEqual(["n.0", "new.0"].map(silent), [false, true]); // and what should have spoken is
  now = NOW + 6100;
  assert.ok(silent("n.0"));
});

test("the fleet's clock is followed, not this machine's", () => {
  const model = begin();
  model.take("device", where, device(NOW + 7000), true);
  model.take("device", where, device(NOW + 6500), true); // late by half a second
  assert.ok(Math.abs(model.now() - (NOW + 7000)) < 100);
});

test("the last minute is told apart from before", () => {
  const model = begin();
  for (let s = 0; s <= 120; s++) {
    const busyNs = Math.max(0, s - 60) * 1e9;
    model.take(
      "device",
      where,
      device(NOW + s * 1000, {
        wallNs: s * 1e9,
        accounts: [
          { name: "wait.no_work", ns: s * 1e9 - busyNs },
          { name: "compute.other", ns: busyNs },
        ],
      }),
      false,
    );
  }
  const spent = model.lanes.get("n.0").spent(60000);
  assert.equal(spent.wall, 60e9);
  assert.deepEqual([...spent.accounts], [["compute.other", 60e9]]);
});

test("what a lane proves now is running, whatever the last event heard was", () => {
  const model = begin();
  const hand = (jobs) => model.take("lane", where, { atUnixMs: NOW, state: 2, jobs }, true);
  model.take("event", {}, event(2, 1), true);
  hand([{ tenant: "t", jobId: "j", partitionIndex: 1, stage: "fetch" }]);
  const job = model.jobs.get("t.j");
  assert.equal(model.stateOf(job), "placed");
  hand([
    { tenant: "t", jobId: "j", partitionIndex: 1, stage: "fetch" },
    { tenant: "t", jobId: "j", partitionIndex: 0, stage: "proving" },
  ]);
  assert.equal(model.stateOf(job), "running");
  assert.deepEqual(
    model.inHand(job).map(({ part }) => part.partitionIndex),
    [0, 1],
  );
  model.take("event", {}, event(4, 2), true);
  assert.equal(model.stateOf(job), "done");
});

test("a search finds by any part and by state", () => {
  const model = begin();
  model.take("event", {}, event(4, 1, { jobId: "order-17", tenant: "acme" }), true);
  model.take("event", {}, event(3, 2, { jobId: "order-18", tenant: "acme", node: "host-b" }), true);
  model.take("span", where, span(3, { jobId: "other", tenant: "z", keyDigest: "beef" }), true);
  const ids = (words, state = "") => findJobs(model, words, state).map((j) => j.id);
  assert.deepEqual(ids("ORDER"), ["order-18", "order-17"]);
  assert.deepEqual(ids("acme 17"), ["order-17"]);
  assert.deepEqual(ids("beef"), ["other"]);
  assert.deepEqual(ids("host-b.0"), ["order-18"]);
  assert.deepEqual(ids("", "running"), ["order-18"]);
  assert.deepEqual(ids("nothing like it"), []);
});

test("failed tries are part of what a proof costs", () => {
  const [row] = costs([span(1), span(2), span(3, { outcome: "given_back", errorName: "E_DEVICE" })]);
  assert.deepEqual([row.proofs, row.lost, row.deviceNs, row.deviceNsEach, row.millijouleEach], [2, 1, 24, 12, 4.5]);
});

test("one failure is told once, with its cause", () => {
  const model = begin();
  model.take("span", where, span(5, { outcome: "failed", errorName: "E_UNSAT", errorDetail: "no" }), true);
  model.take(
    "error",
    where,
    {
      ...where,
      atUnixMs: 5,
      name: "E_UNSAT",
      detail: "no",
      alarm: false,
      tenant: "t",
      jobId: "j",
      partitionIndex: 0,
      step: "verify",
    },
    true,
  );
  model.take("event", {}, event(5, 6, { reason: "no" }), true);
  model.take("event", {}, event(8, 9, { jobId: "poison", reason: "3 tries" }), true);
  model.take("span", where, span(7, { jobId: "fine" }), true);
  const rows = failures(model.errors.items, model.spans.items, model.jobs.values(), 100);
  assert.deepEqual(
    rows.map((r) => [r.jobId, r.name, r.alarm]),
    [
      ["poison", "", true],
      ["j", "E_UNSAT", false],
    ],
  );
});

test("slots and quantiles per slot", () => {
  const at = (s) => s;
  assert.deepEqual(perSlot([10, 11, 25], at, 10, 39, 10), [
    [10, 2],
    [20, 1],
    [30, 0],
  ]);
  assert.deepEqual(quantilePerSlot([10, 11, 12, 30], at, at, 0.5, 10), [
    [10, 11],
    [30, 30],
  ]);
});

test("a plot shows no more of the past than there is", () => {
  const minutes = (ago) => {
    const { from, to } = timeSpan(NOW - ago * 60000, NOW, "slot");
    return (to - from) / 60000;
  };
  assert.deepEqual([0, 1.9, 2.1, 4.9, 6, 60].map(minutes), [2, 2, 5, 5, 15, 15]);
  const { from, to, step } = timeSpan(NOW, NOW + 1, "column");
  assert.ok(to > NOW && to % step === 0 && (to - from) % step === 0);
});

test("a waterfall keeps inside its frame, also where spans pass the total", () => {
  const rows = waterfall({
    totalNs: 10,
    spans: [
      { step: "a", startNs: 0, ns: 5 },
      { step: "b", startNs: 15, ns: 5 },
    ],
  });
  for (const row of rows) assert.ok(row.left + row.width <= 1);
  assert.deepEqual(
    waterfall({ totalNs: 0, spans: [{ step: "a", startNs: 0, ns: 0 }] }).map((r) => r.width),
    [0],
  );
});
