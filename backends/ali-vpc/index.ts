import { type CloudBackend, cloudSchedule, defineBackend } from "flannel/sdk";
import { type Options, options } from "./options.ts";
import { Vpc } from "./vpc.ts";

/** Each node's subnet is an entry of the VPC's route table whose next hop is the node's instance. */
export default defineBackend<Options>({
  optionNames: Object.keys(options.entries),
  options,
  configure({ options: chosen }): CloudBackend {
    const vpc = new Vpc(chosen);
    return {
      mode: "cloud",
      ...cloudSchedule(chosen, true),
      publish: () => ({ backendType: "" }),
      discover: (host, facts) => vpc.discover(host, facts),
      read: () => vpc.read(),
      apply: (change) => vpc.apply(change),
    };
  },
});
