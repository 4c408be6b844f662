/**
 * Tunnels that not every kernel has: ipip follows each other backend or is followed by it, and those with WireGuard and
 * ESP in the kernel come and go. Every ordered pair of what needs no such kernel is in backend-pairs.test.ts.
 */
import { afterAll, beforeAll } from "bun:test";
import { IN_VM, vmTests } from "../lab/vm/vm.ts";
import { BackendWalk, type Type } from "./backend-walk.ts";

const vm = vmTests(import.meta.path, { timeout: 1200 });
/** In a row, from the first; a killed daemon leaves the more, but an operator's commands need one that stops. */
const WALK: readonly (readonly [Type, NodeJS.Signals])[] = [
  ["vxlan", "SIGKILL"],
  ["ipip", "SIGKILL"],
  ["wireguard", "SIGKILL"],
  ["udp", "SIGTERM"],
  ["ipip", "SIGTERM"],
  ["ipsec", "SIGKILL"],
  ["wireguard", "SIGTERM"],
  ["extension", "SIGTERM"],
  ["ipip", "SIGKILL"],
  ["host-gw", "SIGKILL"],
  ["ipsec", "SIGTERM"],
  ["alloc", "SIGKILL"],
  ["ipip", "SIGTERM"],
];
let walk: BackendWalk;

if (IN_VM) {
  beforeAll(async () => {
    walk = await BackendWalk.create({ mover: "kernel" });
    await walk.begin("vxlan");
  });
  afterAll(() => walk?.[Symbol.asyncDispose]());
}

for (const [n, [to]] of WALK.entries()) {
  const [from, signal] = WALK[n - 1] ?? [];
  if (from !== undefined && signal !== undefined)
    vm.test(`${from} to ${to} (${signal})`, () => walk.change(to, signal));
}
