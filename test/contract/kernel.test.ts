import { test } from "bun:test";
import { expectKernelContract, kernelSettings } from "./in-kernel.ts";

test.each(kernelSettings("here"))(
  "in a kernel: %s starts, takes peers, stops and leaves the data plane; a second start writes nothing",
  (_, setting) => expectKernelContract(setting),
);
