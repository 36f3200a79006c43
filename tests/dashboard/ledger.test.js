// The ledger's arithmetic: differences sum to the time between, whatever ends or starts anew in between.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { accountOf, accountOfStep, ACCOUNTS, busy, columns, difference, sampleOf, shares, sum, why } from "../../deploy/dashboard/src/ledger.js";

const sample = (at, accounts, open = 0, session = "s") => {
  const map = new Map(Object.entries(accounts));
  return { at, session, open, accounts: map, wall: [...map.values()].reduce((a, b) => a + b, 0) + open };
};
const total = ({ accounts }) => [...accounts.values()].reduce((a, b) => a + b, 0);

test("a difference holds what was spent between two reports", () => {
  const d = difference(sample(0, { upload: 5, "wait.fetch": 7 }), sample(1, { upload: 9, "wait.fetch": 7, fenced: 2 }));
  assert.deepEqual(
    [...d.accounts],
    [
      ["upload", 4],
      ["fenced", 2],
    ],
  );
  assert.equal(d.wall, 6);
});

test("what is being computed shows as running and sums to the wall", () => {
  const d = difference(sample(0, { upload: 5 }, 0), sample(1, { upload: 6 }, 9));
  assert.equal(d.accounts.get("running"), 9);
  assert.equal(total(d), d.wall);
});

test("when it ends, what was shown as running is not counted again", () => {
  const before = sample(0, { "wait.fetch": 10 }, 30);
  const after = sample(1, { "wait.fetch": 12, "compute.msm_a": 10, "compute.msm_h": 30 }, 0);
  const d = difference(before, after);
  assert.equal(d.wall, 12);
  assert.ok(Math.abs(total(d) - 12) < 1e-9);
  assert.ok(Math.abs(d.accounts.get("compute.msm_h") - 7.5) < 1e-9);
});

test("one proof ends and the next runs: both are seen", () => {
  const d = difference(sample(0, {}, 30), sample(1, { "compute.other": 34 }, 6));
  assert.equal(d.wall, 10);
  assert.ok(Math.abs(total(d) - 10) < 1e-9);
});

test("a new session begins at zero", () => {
  const d = difference(sample(0, { upload: 500 }), sample(1, { upload: 3 }, 0, "other"));
  assert.deepEqual([...d.accounts], [["upload", 3]]);
  assert.equal(d.wall, 3);
  assert.equal(difference(undefined, sample(1, { upload: 3 })).wall, 3);
});

test("a report becomes a sample, accounts named twice are added", () => {
  const s = sampleOf({
    atUnixMs: 5,
    session: "x",
    wallNs: 9,
    openNs: 1,
    accounts: [
      { name: "upload", ns: 3 },
      { name: "upload", ns: 5 },
    ],
  });
  assert.deepEqual(s, { at: 5, session: "x", wall: 9, open: 1, accounts: new Map([["upload", 8]]) });
});

test("shares sum to one and stack in the order of the table", () => {
  const parts = shares({
    accounts: new Map([
      ["fenced", 1],
      ["compute.msm_a", 2],
      ["upload", 1],
      ["from.the.future", 1],
    ]),
  });
  assert.deepEqual(
    parts.map((p) => p.account.name),
    ["compute.msm_a", "upload", "fenced", "from.the.future"],
  );
  assert.equal(
    parts.reduce((a, p) => a + p.share, 0),
    1,
  );
  assert.deepEqual(shares({ accounts: new Map() }), []);
});

test("an account that the page does not know is shown under its name", () => {
  assert.equal(accountOf("wait.moon").label, "wait.moon");
  assert.equal(accountOf("wait.moon").group, "unknown");
  assert.equal(new Set(ACCOUNTS.map((a) => a.label)).size, ACCOUNTS.length);
});

test("why names the largest cause and what to do", () => {
  const of = (accounts, waiting) => why({ accounts: new Map(Object.entries(accounts)) }, waiting);
  assert.match(of({ "compute.other": 60, "wait.decode": 30, "wait.fetch": 10 }), /^30 % decode: .*processor cores/);
  assert.match(of({ "compute.other": 10, "wait.no_work": 90 }, 0), /none waits/);
  assert.match(of({ "compute.other": 10, "wait.no_work": 90 }, 7), /although 7 wait/);
  assert.match(of({ running: 98, "wait.lock": 2 }), /without a pause/);
  assert.equal(of({}), "nothing heard yet");
});

test("busy counts what is computed and what is being computed", () => {
  assert.equal(
    busy({
      accounts: new Map([
        ["compute.msm_a", 1],
        ["running", 1],
        ["upload", 2],
      ]),
    }),
    0.5,
  );
  assert.equal(
    busy(
      sum([
        { wall: 2, accounts: new Map([["running", 2]]) },
        { wall: 2, accounts: new Map([["fenced", 2]]) },
      ]),
    ),
    0.5,
  );
});

test("columns show each stretch, bridge short silence and leave long silence open", () => {
  const at = (ms, ns) => sample(ms, { upload: ns });
  const all = columns([at(500, 1), at(1500, 2), at(4500, 9), at(30500, 10), at(31500, 11)], 0, 32000, 1000);
  assert.equal(all.length, 32);
  assert.equal(all[0].accounts, null);
  for (const i of [1, 2, 3, 4, 31]) assert.equal(all[i].accounts.get("upload"), 1, `column ${i}`);
  for (const i of [5, 20, 30]) assert.equal(all[i].accounts, null, `column ${i}`);
});

test("the page knows every account of the ledger's table", () => {
  const table = readFileSync(new URL("../../node/telemetry/ledger_table.h", import.meta.url), "utf8");
  const names = [...table.matchAll(/ROW\(\w+,\s*"([\w.]+)"/g)].map((match) => match[1]);
  assert.ok(names.length > 15);
  assert.deepEqual(
    names.sort(),
    ACCOUNTS.map((a) => a.name)
      .filter((name) => name !== "running")
      .sort(),
  );
});

test("every step of a story has the colour of an account", () => {
  const table = readFileSync(new URL("../../node/telemetry/span_table.h", import.meta.url), "utf8");
  const steps = [...table.matchAll(/ROW\(\w+,\s*"(\w+)"/g)].map((match) => match[1]);
  assert.ok(steps.length > 15);
  for (const step of steps) assert.notEqual(accountOf(accountOfStep(step)).group, "unknown", step);
  assert.equal(accountOfStep("msm_a"), "compute.msm_a");
});

test("every account has a colour of its own in the style sheet", () => {
  const style = readFileSync(new URL("../../deploy/dashboard/page/app.css", import.meta.url), "utf8");
  const fills = ACCOUNTS.map(
    ({ name }) => style.match(new RegExp(`\\.acc-${name.replace(/[._]/g, "-")} \\{ fill: ([^;]+);`))?.[1],
  );
  assert.ok(fills.every(Boolean), `${fills}`);
  assert.equal(new Set(fills).size, fills.length);
});
