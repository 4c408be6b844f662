/**
 * gce in a namespace that looks like a Compute Engine instance: the metadata server on 169.254.169.254, the Compute API
 * on the switch.
 *
 *   h1 (flanneld, 169.254.169.254 on lo) ── ext0 ─── switch (etcd, Compute API)
 */
import { describe, expect, test } from "bun:test";
import { GceCounterpart } from "../lab/cloud/gce/counterpart.ts";
import { needed, openCloud, TIMEOUT } from "./cloud-cluster.ts";
import { testCloudFaults } from "./cloud-faults.ts";
import { expectPolicy } from "./cloud-policy.ts";
import { testCloud } from "./cloud-scenarios.ts";
import { untilNoReason, untilReason } from "./health/readiness.ts";

describe("gce", () => testCloud((on) => new GceCounterpart(on)));
describe("gce when calls go wrong", () => testCloudFaults((on) => new GceCounterpart(on)));

test(
  "an instance that may not forward packets is not ready until it is another one",
  async () => {
    await using lab = await openCloud((on) => new GceCounterpart(on));
    const [instance = ""] = lab.cloud.api.instances.keys();
    lab.cloud.api.instances.set(instance, false);
    await lab.start().ready;
    expect((await untilReason(lab.hosts[0]!, "GCE_NO_IP_FORWARDING")).fix).toContain("can-ip-forward");
    lab.cloud.api.instances.set(instance, true);
    await untilNoReason(lab.hosts[0]!);
  },
  TIMEOUT,
);

test("the documented policy permits what was called, and nothing else", () => {
  expectPolicy("gce", needed.get("gce") ?? new Set());
});
