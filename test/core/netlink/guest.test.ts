/** Kinds of devices that not every kernel has, on one that does. */
import { vmTests } from "../../lab/vm/vm.ts";
import { testIpip } from "./guest/ipip.ts";
import { testWireguard } from "./guest/wireguard.ts";

const vm = vmTests(import.meta.path);

testIpip(vm);
testWireguard(vm);
