import { type CloudBackend, cloudSchedule, defineBackend } from "flannel/sdk";
import { Compute } from "./compute.ts";
import { type Options, options } from "./options.ts";

/** Each node's subnet is a route of the VPC network whose next hop is the node's instance. */
export default defineBackend<Options>({
  optionNames: Object.keys(options.entries),
  options,
  configure({ options: chosen }): CloudBackend {
    const compute = new Compute(chosen);
    return {
      mode: "cloud",
      ...cloudSchedule(chosen, true),
      publish: () => ({ backendType: "" }),
      discover: (host, facts) => compute.discover(host, facts),
      read: () => compute.read(),
      apply: (change) => compute.apply(change),
    };
  },
});
