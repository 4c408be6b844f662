/**
 * Tunnels that not every kernel has: each other backend follows ipip and is followed by it, and so do WireGuard and ESP
 * in the kernel each other. Every ordered pair of what needs no such kernel is in native.test.ts, and every one with
 * what does in guest.long.ts.
 */
import { vmTests } from "../../lab/vm/vm.ts";
import { walkInGuest } from "./guest.ts";
import { orderedPairs } from "./steps.ts";
import { BACKENDS, type Type } from "./traces.ts";

const ways = orderedPairs(Object.keys(BACKENDS) as Type[]).filter(
  (way) => way.includes("ipip") || (way.includes("wireguard") && way.includes("ipsec")),
);
walkInGuest(vmTests(import.meta.path, { timeout: 1200 }), "ipip", ways);
