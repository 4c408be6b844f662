import { expect, test } from "bun:test";
import { Journal } from "../../../core/agent/journal.ts";
import { LeaseWatch } from "../../../core/agent/lease-watch.ts";
import type { Lease } from "../../../core/lease/lease.ts";

const lease: Lease = {
  key: "10.5.1.0-24",
  subnets: { ipv4: "10.5.1.0/24" },
  attrs: { backendType: "vxlan", publicIP: "192.0.2.1" },
};
const holder: Lease = { ...lease, key: "10.5.0.0-16", attrs: { ...lease.attrs, publicIP: "192.0.2.9" } };

function setUp(reservation = false) {
  const journal = new Journal();
  const watch = new LeaseWatch({ lease, origin: "fresh", reservation }, journal);
  return { watch, texts: () => journal.list(lease.key).map(({ text }) => text) };
}

test("a reservation has no end", () => {
  const { watch, texts } = setUp(true);
  watch.note({ state: "held", lease });
  expect(watch.now()).toEqual({ state: "held" });
  expect(texts()).toEqual(["the lease of this node is 10.5.1.0-24, origin fresh, a reservation"]);
});

test("the time left goes on between two looks, down to 0", async () => {
  const { watch } = setUp();
  watch.note({ state: "held", lease, secondsLeft: 100 });
  expect(watch.now()).toEqual({ state: "held", secondsLeft: 100 });
  watch.note({ state: "held", lease, secondsLeft: 0.5 });
  const started = performance.now();
  while (performance.now() - started < 600) await Bun.sleep(50);
  expect(watch.now()).toEqual({ state: "held", secondsLeft: 0 });
});

test("changes of state are written down once, and the lease is the latest", () => {
  const { watch, texts } = setUp();
  watch.note({ state: "held", lease, secondsLeft: 9 });
  watch.note({ state: "renewal-failing", lease, error: "etcd is away", secondsLeft: 8 });
  watch.note({ state: "renewal-failing", lease, error: "etcd is away", secondsLeft: 7 });
  watch.note({ state: "conflict", lease, holder });
  expect(watch.now()).toEqual({ state: "conflict" });
  const moved = { ...lease, attrs: { ...lease.attrs, publicIP: "192.0.2.7" } };
  watch.note({ state: "held", lease: moved, secondsLeft: 9 });
  expect(watch.lease).toBe(moved);
  expect(texts().slice(1)).toEqual([
    "the lease 10.5.1.0-24 cannot be renewed, 8 s left: etcd is away",
    "the lease 10.5.1.0-24 is held by 10.5.0.0-16 of 192.0.2.9",
    "the lease 10.5.1.0-24 is held",
  ]);
});
