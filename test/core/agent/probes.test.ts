import { expect, test } from "bun:test";
import fc from "fast-check";
import { Probes } from "../../../core/agent/probes.ts";

const KEY = "10.244.7.0-24";
const search = (change: Record<string, string> = {}) =>
  new URLSearchParams({ key: KEY, family: "4", sent: "5", received: "5", verdict: "ok", ...change });

test("the last probe of a family of a peer is remembered", () => {
  const probes = new Probes();
  expect(probes.of(KEY, 4)).toBeUndefined();
  expect(probes.note(search(), 1_000)).toBe(true);
  const told = { address: "10.244.7.0", rttMs: "0.25", mtu: "1450", tcp: "refused", received: "4" };
  expect(probes.note(search({ ...told, verdict: "PROBE_LOSS PROBE_MTU" }), 2_000)).toBe(true);
  expect(probes.of(KEY, 4)).toEqual({
    at: 2_000,
    address: "10.244.7.0",
    sent: 5,
    received: 4,
    rttMs: 0.25,
    mtu: 1450,
    tcp: "refused",
    verdict: "PROBE_LOSS PROBE_MTU",
  });
  expect(probes.of(KEY, 6)).toBeUndefined();
  expect(probes.of("10.244.8.0-24", 4)).toBeUndefined();
});

test.each([
  { key: "x" },
  { family: "5" },
  { sent: "-1" },
  { sent: "" },
  { received: "many" },
  { verdict: "" },
  { verdict: "\u001b[2J" },
])("%j is refused", (change) => {
  const probes = new Probes();
  expect(probes.note(search(change))).toBe(false);
  expect(probes.of(KEY, 4)).toBeUndefined();
});

test("anything is taken without a throw, and the memory is bounded", () => {
  const probes = new Probes();
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.string()), (parameters) => {
      probes.note(new URLSearchParams(parameters));
    }),
  );
  for (let n = 0; n < 10_001; n++) {
    probes.note(search({ key: `10.${n >> 8}.${n & 255}.0-24` }), n);
  }
  expect(probes.of("10.0.0.0-24", 4)).toBeUndefined();
  expect(probes.of("10.0.1.0-24", 4)).toMatchObject({ at: 1 });
});
