/**
 * Each backend follows each other one on a running cluster, after daemons that were stopped or killed: subnets and pods
 * stay, and each host is as if the new backend had been the first. WireGuard and ESP are in user space where the kernel
 * has none; in a kernel, and with ipip, see backend-pairs-kernel.test.ts.
 *
 *   pod ── cni0 ── h1 ── ext0 ─┬─ switch + etcd ─┬─ ext0 ── h2 ── cni0 ── pod
 */
import { afterAll, beforeAll, test } from "bun:test";
import { BackendWalk, orderedPairs, type Type, walkAll } from "./backend-walk.ts";

const TYPES: readonly Type[] = ["vxlan", "host-gw", "udp", "extension", "alloc", "wireguard", "ipsec"];
let walk: BackendWalk;

beforeAll(async () => {
  walk = await BackendWalk.create({ mover: "charon", fresh: TYPES });
  await walk.begin("vxlan");
}, 240_000);
afterAll(() => walk?.[Symbol.asyncDispose]());

const steps = walkAll("vxlan", orderedPairs(TYPES));
// What an operator's commands made only the operator's commands take away, when the daemon stops.
const signals = steps.map(([from], n) => (n % 2 === 0 || from === "extension" ? "SIGTERM" : "SIGKILL"));

// In a row: each step starts from what the one before left.
test.each(steps.map(([from, to], n) => [from, to, signals[n]] as const))(
  "%s to %s (%s)",
  async (_, to, signal = "SIGTERM") => walk.change(to, signal),
  60_000,
);
