/**
 * Three hosts, of which one comes and goes, with the kernel's WireGuard. native.test.ts has the same with wireguard-go,
 * and ../wireguard-kernel.test.ts this kernel with two hosts, so `npm test` leaves it out:
 *
 *     bun test ./test/e2e/three-hosts/wireguard-kernel.long.ts
 */
import { vmTests } from "../../lab/vm/vm.ts";
import { WIREGUARD_KERNEL } from "./backends.ts";
import { testInGuest } from "./guest.ts";

testInGuest(vmTests(import.meta.path, { timeout: 900 }), [WIREGUARD_KERNEL]);
