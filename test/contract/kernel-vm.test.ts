/** As kernel.test.ts, for plugins whose devices the machine's own kernel may lack. */
import { vmTests } from "../lab/vm/vm.ts";
import { expectKernelContract, kernelSettings } from "./in-kernel.ts";

const vm = vmTests(import.meta.path);

for (const [label, setting] of kernelSettings("guest")) {
  vm.test(`in a kernel: ${label} starts, takes peers, stops and leaves the data plane`, () =>
    expectKernelContract(setting),
  );
}
