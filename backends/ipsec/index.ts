import { defineBackend } from "flannel/sdk";
import { IpsecBackend } from "./backend.ts";
import { findCharon } from "./charon/find.ts";
import { missingFinding } from "./findings.ts";
import { type Options, options } from "./options.ts";

/** ESP tunnels between all nodes; charon negotiates their keys, the kernel moves the packets. */
export default defineBackend<Options>({
  optionNames: ["PSK", "UDPEncap", "ESPProposal"],
  options,
  check({ flags }) {
    const search = findCharon(flags);
    return search.found === undefined ? [missingFinding(search)] : [];
  },
  configure: (input) => new IpsecBackend(input),
});
