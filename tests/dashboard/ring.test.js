// Rings: order, limits, messages that come twice.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Ring } from "../../deploy/dashboard/src/ring.js";

const times = (ring) => ring.items.map((item) => item.at);
const ringOf = (capacity, list) => {
  const ring = new Ring(
    capacity,
    (item) => item.at,
    (item) => item.name ?? "",
  );
  for (const at of list) ring.add(typeof at === "object" ? at : { at });
  return ring;
};

test("a ring keeps the newest and never grows past its capacity", () => {
  const ring = ringOf(3, [1, 2, 3, 4, 5]);
  assert.deepEqual(times(ring), [3, 4, 5]);
  assert.equal(ring.last.at, 5);
});

test("what comes late stands where its time belongs", () => {
  assert.deepEqual(times(ringOf(9, [5, 1, 3, 2, 4])), [1, 2, 3, 4, 5]);
});

test("what is older than all of a full ring is not taken", () => {
  const ring = ringOf(3, [5, 6, 7]);
  assert.equal(ring.add({ at: 4 }), false);
  assert.deepEqual(times(ring), [5, 6, 7]);
});

test("the same message twice is one, another of the same time is not", () => {
  const ring = ringOf(9, [
    { at: 1, name: "a" },
    { at: 1, name: "b" },
    { at: 2, name: "a" },
  ]);
  assert.equal(ring.add({ at: 1, name: "a" }), false);
  assert.equal(ring.add({ at: 1, name: "c" }), true);
  assert.equal(ring.length, 4);
});

test("since, before and forget cut at a time", () => {
  const ring = ringOf(9, [1, 2, 3, 4]);
  assert.deepEqual(
    ring.since(3).map((i) => i.at),
    [3, 4],
  );
  assert.equal(ring.before(3).at, 3);
  assert.equal(ring.before(0), undefined);
  ring.forget(3);
  assert.deepEqual(times(ring), [3, 4]);
});

test("any order of arrival gives the same ring", () => {
  const seed = Date.now() % 100000;
  let state = seed;
  const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
  for (let round = 0; round < 50; round++) {
    const list = Array.from({ length: 40 }, (_, i) => i).sort(() => random() - 0.5);
    assert.deepEqual(
      times(ringOf(100, list)),
      Array.from({ length: 40 }, (_, i) => i),
      `seed ${seed}`,
    );
  }
});
