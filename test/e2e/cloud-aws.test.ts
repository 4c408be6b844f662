/**
 * aws-vpc in a namespace that looks like an EC2 instance: metadata on 169.254.169.254, the EC2 API on the switch.
 *
 *   h1 (flanneld, 169.254.169.254 on lo) ── ext0 ─── switch (etcd, EC2 API)
 */
import { describe, test } from "bun:test";
import { AwsCounterpart } from "../lab/cloud/aws/counterpart.ts";
import { needed } from "./cloud-cluster.ts";
import { testCloudFaults } from "./cloud-faults.ts";
import { expectPolicy } from "./cloud-policy.ts";
import { testCloud } from "./cloud-scenarios.ts";

describe("aws-vpc", () => testCloud((on) => new AwsCounterpart(on)));
describe("aws-vpc when calls go wrong", () => testCloudFaults((on) => new AwsCounterpart(on)));

test("the documented policy permits what was called, and nothing else", () => {
  expectPolicy("aws-vpc", needed.get("aws-vpc") ?? new Set());
});
