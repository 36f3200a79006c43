// Numbers as people read them.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as f from "../../deploy/dashboard/src/format.js";

const plain = (text) => text.replaceAll("\u202f", " ");
const all = (format, cases) => {
  for (const [value, wanted] of cases) assert.equal(plain(format(value)), wanted, `of ${value}`);
};

test("durations", () =>
  all(f.duration, [
    [0, "0 s"],
    [850, "850 ns"],
    [999.6, "1 µs"],
    [12345, "12.3 µs"],
    [1240000000, "1.24 s"],
    [59.9e9, "59.9 s"],
    [59.96e9, "1 min 00 s"],
    [125e9, "2 min 05 s"],
    [3600e9, "1 h 00 min"],
    [90061e9, "1 d 01 h"],
    [-1, "–"],
    [NaN, "–"],
  ]));

test("bytes and rates", () => {
  all(f.bytes, [
    [0, "0 B"],
    [999, "999 B"],
    [999.6, "1 kB"],
    [1.2345e9, "1.23 GB"],
    [7e18, "7000 PB"],
    [NaN, "–"],
  ]);
  assert.equal(plain(f.rate(5e9, 1e8)), "50 GB/s");
  assert.equal(f.rate(0, 5), "–");
  assert.equal(f.rate(5, 0), "–");
});

test("percent never rounds something to nothing, nor nearly all to all", () =>
  all(f.percent, [
    [0, "0 %"],
    [0.001, "<1 %"],
    [0.455, "46 %"],
    [0.999, ">99 %"],
    [1, "100 %"],
    [NaN, "–"],
  ]));

test("counts, energy, power", () => {
  all(f.count, [
    [0, "0"],
    [999, "999"],
    [1234567, "1 234 567"],
    [Infinity, "–"],
  ]);
  all(f.energy, [
    [0, "–"],
    [712000, "712 J"],
    [5e6, "5 kJ"],
  ]);
  all(f.power, [
    [415250, "415 W"],
    [undefined, "–"],
  ]);
});

test("times of day", () => {
  const at = new Date(2026, 0, 2, 3, 4, 5, 67).getTime();
  assert.equal(f.clock(at), "03:04:05");
  assert.equal(f.clockFine(at), "03:04:05.067");
  assert.equal(f.clock(0), "–");
});

test("ago", () => {
  assert.equal(f.ago(10000, 10900), "now");
  assert.equal(plain(f.ago(10000, 14000)), "4 s ago");
  assert.equal(f.ago(20000, 10000), "now"); // clocks differ
  assert.equal(f.ago(0, 10000), "–");
});

test("ticks reach the largest value in round steps", () => {
  for (const max of [0.003, 0.9, 1, 7, 10, 99, 12345, 3.3e12]) {
    const ticks = f.ticks(max, 3);
    assert.equal(ticks[0], 0);
    assert.ok(ticks[ticks.length - 1] >= max * 0.999 && ticks.length <= 6, `${max}: ${ticks}`);
  }
  assert.deepEqual(f.ticks(0), [0, 1]);
});

test("quantiles", () => {
  const list = Array.from({ length: 100 }, (_, i) => i);
  assert.equal(f.quantile(list, 0.5), 50);
  assert.equal(f.quantile(list, 0.95), 95);
  assert.equal(f.quantile([7], 0.95), 7);
  assert.ok(Number.isNaN(f.quantile([], 0.5)));
});
