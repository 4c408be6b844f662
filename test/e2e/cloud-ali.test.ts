/**
 * ali-vpc in a namespace that looks like a ECS instance: the metadata service on 100.100.100.200, the VPC API on the switch.
 *
 *   h1 (flanneld, 100.100.100.200 on lo) ── ext0 ─── switch (etcd, VPC API)
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { AliCounterpart } from "../lab/cloud/ali/counterpart.ts";
import { networkConfig } from "../lab/cluster.ts";
import { readJournal, readStatus } from "./ask.ts";
import { finding, needed, openCloud, TIMEOUT, untilReady } from "./cloud-cluster.ts";
import { testCloudFaults } from "./cloud-faults.ts";
import { expectPolicy } from "./cloud-policy.ts";
import { testCloud } from "./cloud-scenarios.ts";
import { runCommand } from "./command.ts";
import { SECRET } from "./refusal.ts";

describe("ali-vpc", () => testCloud((on) => new AliCounterpart(on)));
describe("ali-vpc when calls go wrong", () => testCloudFaults((on) => new AliCounterpart(on)));

test(
  "keys in the network config are used, and shown nowhere",
  async () => {
    const keys = { AccessKeyID: "LTAI-s3cr3t-id", AccessKeySecret: SECRET };
    await using lab = await openCloud((on) => new AliCounterpart(on), { backend: keys });
    const { cloud, cluster, hosts } = lab;
    const host = hosts[0]!;
    for (const each of cloud.metadata) each.hasRole = false;
    cloud.api.keys = { id: keys.AccessKeyID, secret: SECRET };
    const daemon = lab.start();
    await daemon.ready;
    await untilReady(host);
    cloud.api.keys = { id: "another", secret: SECRET };
    const told = await finding(host, "CLOUD_CREDENTIALS");
    const [file, bundle] = [`${host.directory}/net.json`, `${host.directory}/bundle.tar.gz`];
    await Bun.write(file, JSON.stringify(networkConfig("v4", { ...cloud.backend, ...keys, AccessKeyId: 7 })));
    const shown = [
      readFileSync(daemon.logPath, "utf8"),
      JSON.stringify(told),
      JSON.stringify(await readStatus(host)),
      JSON.stringify(await readJournal(host)),
      ...(await Promise.all(
        [
          ["check"],
          ["check", "-o", "json"],
          ["cleanup", "--dry-run"],
          ["config", "check", file],
          ["bundle", bundle],
        ].map(async (args) => Object.values(await runCommand(cluster, host, args)).join("\n")),
      )),
    ];
    shown.push(await host.namespace.exec("tar", "-xzOf", bundle));
    for (const text of shown) {
      expect(text).not.toContain(SECRET);
      expect(text).not.toContain(keys.AccessKeyID);
    }
  },
  TIMEOUT,
);

test("the documented policy permits what was called, and nothing else", () => {
  expectPolicy("ali-vpc", needed.get("ali-vpc") ?? new Set());
});
