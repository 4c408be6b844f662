/** Three hosts, of which one comes and goes, with backends that need a kernel which has them; see scenario.ts. */
import { vmTests } from "../../lab/vm/vm.ts";
import { IPIP, IPSEC_KERNEL, WIREGUARD_KERNEL } from "./backends.ts";
import { testInGuest } from "./guest.ts";

testInGuest(vmTests(import.meta.path, { timeout: 1200 }), [IPIP, WIREGUARD_KERNEL, IPSEC_KERNEL]);
