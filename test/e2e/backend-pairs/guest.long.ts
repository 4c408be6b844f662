/**
 * Every ordered pair of backends of which one at least is a tunnel that not every kernel has. `npm test` leaves most of
 * them out (guest.test.ts), as they take a while:
 *
 *     bun test ./test/e2e/backend-pairs/guest.long.ts
 */
import { vmTests } from "../../lab/vm/vm.ts";
import { walkInGuest } from "./guest.ts";
import { orderedPairs } from "./steps.ts";
import { BACKENDS, type Type } from "./traces.ts";

const OF_THE_KERNEL: readonly Type[] = ["ipip", "wireguard", "ipsec"];

const ways = orderedPairs(Object.keys(BACKENDS) as Type[]).filter((way) =>
  way.some((type) => OF_THE_KERNEL.includes(type)),
);
walkInGuest(vmTests(import.meta.path, { timeout: 2400 }), "ipip", ways);
