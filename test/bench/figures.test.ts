import { expect, test } from "bun:test";
import fc from "fast-check";
import { type Figure, meetsTarget, percentile, ratioOf, spreadOf } from "./figures.ts";
import { Ledger } from "./ledger.ts";

const figure = (parts: Partial<Figure>): Figure => ({
  id: "x",
  label: "x",
  unit: "s",
  ours: [],
  other: [],
  ...parts,
});

test("the spread is the middle value and the extremes", () => {
  expect(spreadOf([3, 1, 2])).toEqual({ median: 2, min: 1, max: 3 });
  expect(spreadOf([4, 1])).toEqual({ median: 2.5, min: 1, max: 4 });
  expect(spreadOf([7])).toEqual({ median: 7, min: 7, max: 7 });
  expect(spreadOf([])).toBeUndefined();
});

test("a percentile is one of the samples, by nearest rank", () => {
  const hundred = Array.from({ length: 100 }, (_, n) => 100 - n);
  expect(percentile(hundred, 0.5)).toBe(50);
  expect(percentile(hundred, 0.99)).toBe(99);
  expect(percentile(hundred, 1)).toBe(100);
  expect(percentile([5], 0.01)).toBe(5);
  expect(percentile([], 0.5)).toBeNaN();
});

test("property: at least the share asked for lies at or below the percentile", () => {
  const samples = fc.array(fc.float({ noNaN: true }), { minLength: 1 });
  fc.assert(
    fc.property(samples, fc.double({ min: 0, max: 1, noNaN: true }), (values, share) => {
      const found = percentile(values, share);
      expect(values).toContain(found);
      expect(values.filter((value) => value <= found).length).toBeGreaterThanOrEqual(
        Math.floor(share * values.length),
      );
    }),
  );
});

test("a target is judged by the median; without target or samples there is no judgement", () => {
  expect(meetsTarget(figure({ ours: [1, 2, 9], atMost: 2 }))).toBe(true);
  expect(meetsTarget(figure({ ours: [1, 3, 9], atMost: 2 }))).toBe(false);
  expect(meetsTarget(figure({ ours: [0], atMost: 0 }))).toBe(true);
  expect(meetsTarget(figure({ ours: [-3], atMost: 5 }))).toBe(true);
  expect(meetsTarget(figure({ ours: [-3], atLeast: 0 }))).toBe(false);
  expect(meetsTarget(figure({ ours: [1] }))).toBeUndefined();
  expect(meetsTarget(figure({ atMost: 2 }))).toBeUndefined();
});

test("the ratio compares medians, and is left out where there is nothing to compare with", () => {
  expect(ratioOf(figure({ ours: [1, 1, 8], other: [4] }))).toBe(0.25);
  expect(ratioOf(figure({ ours: [1] }))).toBeUndefined();
  expect(ratioOf(figure({ ours: [1], other: [0] }))).toBeUndefined();
});

test("the ledger keeps the samples apart and knows its figures", () => {
  const ledger = new Ledger([
    { id: "a", label: "A", unit: "ms" },
    { id: "b", label: "B", unit: "MB" },
  ]);
  ledger.record("a", { file: "ours", ours: true }, 1);
  ledger.record("a", { file: "other", ours: false }, 2);
  ledger.record("a", { file: "ours", ours: true }, 3);
  expect(ledger.figures.map(({ ours, other }) => [ours, other])).toEqual([
    [[1, 3], [2]],
    [[], []],
  ]);
  expect(() => ledger.record("c", { file: "ours", ours: true }, 1)).toThrow("no figure is called c");
});
