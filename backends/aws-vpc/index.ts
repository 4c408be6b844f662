import { type CloudBackend, cloudSchedule, defineBackend } from "flannel/sdk";
import { OPTION_NAMES, type Options, options } from "./options.ts";
import { Vpc } from "./vpc.ts";

/** Each node's subnet is a route to its network interface in the route tables of an AWS VPC. */
export default defineBackend<Options>({
  optionNames: OPTION_NAMES,
  options,
  configure({ options: chosen }): CloudBackend {
    const vpc = new Vpc(chosen);
    return {
      mode: "cloud",
      // Routes of AWS carry no mark; their form, and that no lease has them, has to do.
      ...cloudSchedule(chosen, false),
      publish: () => ({ backendType: "" }),
      discover: (host, facts) => vpc.discover(host, facts),
      read: () => vpc.read(),
      apply: (change) => vpc.apply(change),
    };
  },
});
