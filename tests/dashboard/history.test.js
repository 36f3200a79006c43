// Reading the past by single reads: everything is found, and the number of requests is bounded.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readHistory } from "../../deploy/dashboard/src/history.js";

const names = { stream: "BELLOWS_TEL", lanesStream: "KV_bellows_lanes", lanesSubjects: "$KV.bellows_lanes.>" };

// A stream in memory, answering as the server does.
function streamOf(subjects) {
  const matches = (filter, subject) => {
    const [f, s] = [filter.split("."), subject.split(".")];
    return (
      f.every((word, i) => word === ">" || ((word === "*" || word === s[i]) && s[i] !== undefined)) &&
      (f.at(-1) === ">" || f.length === s.length)
    );
  };
  const all = subjects.map((subject, i) => ({ subject, sequence: i + 1, data: "x" }));
  return ({ seq, next_by_subj: next, last_by_subj: last }) =>
    (last ? all.findLast((m) => matches(last, m.subject)) : all.slice(seq - 1).find((m) => matches(next, m.subject))) ?? null;
}

async function read(telemetry, directory = []) {
  const streams = { BELLOWS_TEL: streamOf(telemetry), KV_bellows_lanes: streamOf(directory) };
  const got = [];
  let requests = 0;
  await readHistory({
    get: async (stream, request) => {
      requests++;
      return streams[stream](request);
    },
    take: (m) => got.push(m.kind ? `${m.kind} ${m.subject}` : m.sequence),
    prefix: "bellows",
    names,
  });
  return { got, requests };
}

test("an empty or missing stream gives nothing and does no harm", async () => {
  assert.deepEqual((await read([])).got, []);
});

test("every event, span and error of the stream is read", async () => {
  const subjects = [];
  for (let i = 0; i < 700; i++)
    subjects.push("bellows.tel.n.0.device", "bellows.tel.n.0.lane", `bellows.evt.t.j${i}.done`, "bellows.tel.n.0.span");
  subjects.push("bellows.tel.n.1.error");
  const { got } = await read(subjects);
  const seen = new Set(got);
  subjects.forEach((subject, i) => /evt|span|error/.test(subject) && assert.ok(seen.has(i + 1), `${i + 1} ${subject}`));
});

test("the directory's lanes, and those that only the stream still knows, get their last reports", async () => {
  const { got } = await read(
    [
      "bellows.tel.gone.3.device",
      "bellows.tel.gone.3.lane",
      "bellows.tel.n.0.device",
      "bellows.tel.n.0.keys",
      "bellows.tel.fleet",
    ],
    ["$KV.bellows_lanes.n.0", "$KV.bellows_lanes.m.1"],
  );
  assert.ok(got.includes("info $KV.bellows_lanes.n.0") && got.includes("info $KV.bellows_lanes.m.1"));
  for (const sequence of [1, 2, 3, 4, 5]) assert.ok(got.includes(sequence), `${sequence}`);
});

test("a full stream is sampled, not read", async () => {
  const subjects = Array.from({ length: 40000 }, (_, i) =>
    i % 4
      ? `bellows.tel.n.${i % 3}.device`
      : i % 400 === 0
        ? "bellows.tel.n.0.error"
        : i % 8
          ? "bellows.tel.n.0.span"
          : "bellows.evt.t.j.done",
  );
  const { requests, got } = await read(subjects);
  assert.ok(requests < 9000, `${requests} requests`);
  assert.ok(got.filter((x) => typeof x === "number" && x > 39000).length > 100); // the newest are there
});
