import { defineBackend } from "flannel/sdk";
import { UdpBackend } from "./backend.ts";
import { findSmallMtu } from "./device.ts";
import { type Options, options } from "./options.ts";

/** IP packets in UDP datagrams, moved by the daemon itself: upstream's wire format, port 8285. */
export default defineBackend<Options>({
  optionNames: ["Port", "PortV6", "Offload", "MembersOnly"],
  options,
  check: ({ families, facts }) => findSmallMtu(families, facts),
  configure: (input) => new UdpBackend(input),
});
