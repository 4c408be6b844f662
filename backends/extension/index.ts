import { defineBackend } from "flannel/sdk";
import { ExtensionBackend } from "./backend.ts";
import { type Options, options } from "./options.ts";

/** The operator's own commands: whatever moves the packets, they set it up. */
export default defineBackend<Options>({
  optionNames: [
    "PreStartupCommand",
    "PostStartupCommand",
    "SubnetAddCommand",
    "SubnetRemoveCommand",
    "ShutdownCommand",
    "Shell",
    "Timeout",
    "MTU",
  ],
  options,
  configure: (input) => new ExtensionBackend(input),
});
