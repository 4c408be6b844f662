/**
 * Each backend follows each other one on a running cluster, after daemons that were stopped or killed: subnets and pods
 * stay, and each host is as if the new backend had been the first. WireGuard and ESP are in user space where the kernel
 * has none; in a kernel, and with ipip, see guest.test.ts.
 *
 *   pod ── cni0 ── h1 ── ext0 ─┬─ switch + etcd ─┬─ ext0 ── h2 ── cni0 ── pod
 */
import { afterAll, beforeAll, test } from "bun:test";
import { orderedPairs, walkAll, withSignals } from "./steps.ts";
import type { Type } from "./traces.ts";
import { BackendWalk } from "./walk.ts";

const TYPES: readonly Type[] = ["vxlan", "host-gw", "udp", "extension", "alloc", "wireguard", "ipsec"];
let walk: BackendWalk;

beforeAll(async () => {
  walk = await BackendWalk.create({ mover: "charon", fresh: TYPES });
  await walk.begin("vxlan");
}, 240_000);
afterAll(() => walk?.[Symbol.asyncDispose]());

// In a row: each step starts from what the one before left.
test.each(withSignals(walkAll("vxlan", orderedPairs(TYPES))))(
  "%s to %s (%s)",
  async (_, to, signal) => walk.change(to, signal),
  60_000,
);
