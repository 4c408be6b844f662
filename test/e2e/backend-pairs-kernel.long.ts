/**
 * Tunnels that not every kernel has, followed by each other and by backends without them, in a virtual machine; see
 * backend-pairs.test.ts. It takes so long that `npm test` leaves it out:
 *
 *     bun test ./test/e2e/backend-pairs-kernel.long.ts
 */
import { afterAll, beforeAll } from "bun:test";
import { IN_VM, vmTests } from "../lab/vm/vm.ts";
import { BackendWalk, type Step, walkAll } from "./backend-walk.ts";

const vm = vmTests(import.meta.path, { timeout: 1500 });
const PAIRS: readonly Step[] = [
  ["vxlan", "ipsec"],
  ["ipsec", "udp"],
  ["udp", "wireguard"],
  ["wireguard", "vxlan"],
  ["vxlan", "ipip"],
  ["ipip", "ipsec"],
  ["ipsec", "wireguard"],
  ["wireguard", "ipip"],
  ["ipip", "udp"],
];
let walk: BackendWalk;

if (IN_VM) {
  beforeAll(async () => {
    walk = await BackendWalk.create();
    await walk.begin("vxlan");
  });
  afterAll(() => walk?.[Symbol.asyncDispose]());
}

// A killed daemon leaves the more: so they end but for some.
for (const [n, [from, to]] of walkAll("vxlan", PAIRS, true).entries()) {
  const signal = n % 4 === 3 ? "SIGTERM" : "SIGKILL";
  vm.test(`${from} to ${to} (${signal})`, () => walk.change(to, signal));
}
