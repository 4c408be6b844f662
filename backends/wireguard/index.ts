import { defineBackend, Fault, type Finding } from "flannel/sdk";
import { WireguardBackend } from "./backend.ts";
import { optionFindings } from "./findings.ts";
import { findKey, keyPlaces } from "./key-file.ts";
import { type Options, options } from "./options.ts";

/** WireGuard in the kernel, or in user space where the kernel has none: one peer per node, by its subnets. */
export default defineBackend<Options>({
  optionNames: ["ListenPort", "ListenPortV6", "MTU", "PSK", "PersistentKeepaliveInterval", "Mode"],
  options,
  check: ({ options, families, facts }) => [...findBadKey(), ...optionFindings(options, families, facts)],
  configure: (input) => new WireguardBackend(input),
});

/** A key file that is there and cannot be used: it is never replaced by a new key. */
function findBadKey(): readonly Finding[] {
  try {
    findKey(keyPlaces());
    return [];
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    const { code, message, hint } = error;
    return [{ code, severity: "error", title: "the private key cannot be used", text: message, fix: hint }];
  }
}
