/**
 * tencent-vpc in a namespace that looks like a CVM instance: the metadata service on 169.254.0.23, the VPC API on the switch.
 *
 *   h1 (flanneld, 169.254.0.23 on lo) ── ext0 ─── switch (etcd, VPC API)
 */
import { describe, test } from "bun:test";
import { TencentCounterpart } from "../lab/cloud/tencent/counterpart.ts";
import { needed } from "./cloud-cluster.ts";
import { testCloudFaults } from "./cloud-faults.ts";
import { expectPolicy } from "./cloud-policy.ts";
import { testCloud } from "./cloud-scenarios.ts";

describe("tencent-vpc", () => testCloud((on) => new TencentCounterpart(on)));
describe("tencent-vpc when calls go wrong", () => testCloudFaults((on) => new TencentCounterpart(on)));

test("the documented policy permits what was called, and nothing else", () => {
  expectPolicy("tencent-vpc", needed.get("tencent-vpc") ?? new Set());
});
