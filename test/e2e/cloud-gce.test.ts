/**
 * gce in a namespace that looks like a Compute Engine instance: the metadata server on 169.254.169.254, the Compute API
 * on the switch.
 *
 *   h1 (flanneld, 169.254.169.254 on lo) ── ext0 ─── switch (etcd, Compute API)
 */
import { describe, test } from "bun:test";
import { GceCounterpart } from "../lab/cloud/gce/counterpart.ts";
import { needed } from "./cloud-cluster.ts";
import { testCloudFaults } from "./cloud-faults.ts";
import { expectPolicy } from "./cloud-policy.ts";
import { testCloud } from "./cloud-scenarios.ts";

describe("gce", () => testCloud((on) => new GceCounterpart(on)));
describe("gce when calls go wrong", () => testCloudFaults((on) => new GceCounterpart(on)));

test("the documented policy permits what was called, and nothing else", () => {
  expectPolicy("gce", needed.get("gce") ?? new Set());
});
