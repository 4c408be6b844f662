/** As kernel.test.ts and active.test.ts, for plugins whose devices the machine's own kernel may lack. */
import { vmTests } from "../lab/vm/vm.ts";
import { ACTIVE_CONTRACT, activeSettings } from "./active-contract.ts";
import { expectKernelContract, kernelSettings } from "./in-kernel.ts";

// Nineteen tests: 191 s beside the rest of the suite, where two processors are shared.
const vm = vmTests(import.meta.path, { timeout: 600 });

for (const [label, setting] of kernelSettings("guest")) {
  vm.test(`in a kernel: ${label} starts, takes peers, stops and leaves the data plane`, () =>
    expectKernelContract(setting),
  );
}

for (const [label, setting] of activeSettings("guest")) {
  for (const [words, keeps] of ACTIVE_CONTRACT) vm.test(`${label}: ${words}`, () => keeps(setting));
}
