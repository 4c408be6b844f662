/**
 * `flanneld cleanup`.
 *
 *   h1 (vxlan, dual stack, running) ── switch + etcd ── h2 (comes and goes)
 */

import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { CleanupReport } from "../../../core/cli/commands/cleanup.ts";
import { operatorConfig } from "../../lab/cluster.ts";
import { Daemon } from "../../lab/daemon.ts";
import { endpointFor } from "../../lab/switch-etcd.ts";
import { dumpNetwork } from "../command.ts";
import { CommandCluster } from "./cluster.ts";

const lab = new CommandCluster({ hosts: 2, running: 1 });

describe("cleanup", () => {
  const FLAGS = ["--ip-masq", "--ip-blackhole-route"];

  test.each(["SIGTERM", "SIGKILL"] as const)(
    "after %s nothing is left, and a second time is fine",
    async (signal) => {
      const host = lab.host(2);
      const before = await dumpNetwork(host);
      await using daemon = Daemon.start(host, {
        endpoints: endpointFor(host, lab.cluster.switch),
        flags: FLAGS,
      });
      await daemon.ready;
      const refused = await lab.run(host, ["cleanup"]);
      expect(refused).toMatchObject({ exitCode: 2, stdout: "" });
      expect(refused.stderr).toContain("error ALREADY_RUNNING");
      expect(refused.stderr).toContain(`pid ${daemon.pid}`);
      await daemon.stop(signal);
      const running = await dumpNetwork(host);
      const { json: dry } = await lab.ask<CleanupReport>(host, ["cleanup", "--dry-run"]);
      expect(await dumpNetwork(host)).toBe(running);
      expect(dry.plan.join("\n")).toContain("device flannel.1,");
      expect(existsSync(host.subnetFile)).toBe(true);
      const { code, json } = await lab.ask<CleanupReport>(host, ["cleanup"]);
      expect({ code, left: json.left, plan: json.plan }).toEqual({ code: 0, left: [], plan: dry.plan });
      expect(await dumpNetwork(host)).toBe(before);
      expect(readdirSync(host.directory).filter((name) => name.startsWith("subnet.env"))).toEqual([]);
      const second = await lab.ask<CleanupReport>(host, ["cleanup"]);
      expect(second).toMatchObject({ code: 0, json: { plan: [], left: [] } });
    },
  );

  test("a second network on the host is left alone", async () => {
    const host = lab.host(2);
    const before = await dumpNetwork(host);
    const endpoints = endpointFor(host, lab.cluster.switch);
    const config = { ...operatorConfig("v4", { Type: "vxlan", VNI: 7 }), Network: "10.99.0.0/16" };
    await lab.cluster.etcd.ctl("put", "/second/config", JSON.stringify(config));
    const file = join(host.directory, "second.env");
    // Both have the chains of iptables in common, and the first would put them back while the second's are removed.
    await using first = Daemon.start(host, { endpoints, flags: ["--iptables-resync=3600"] });
    const flags = ["--etcd-prefix=/second", `--subnet-file=${file}`, "--iptables-forward-rules=false"];
    await using second = Daemon.start(host, { endpoints, flags });
    await Promise.all([first.ready, second.ready]);
    await second.stop();
    const theirs = await host.namespace.ip("-d link show flannel.1");
    const missing = join(host.directory, "missing.env");
    const unsure = await lab.run(host, ["cleanup"], { subnetFile: missing });
    expect(unsure.stderr).toContain("error CLEANUP_UNSURE");
    const done = await lab.run(host, ["cleanup", "--etcd-prefix=/second"], { subnetFile: file });
    expect(done).toMatchObject({ exitCode: 0, stderr: "" });
    expect(done.stdout).toContain("device flannel.7,");
    expect(await host.namespace.ip("-d link show flannel.1")).toBe(theirs);
    expect(existsSync(host.subnetFile)).toBe(true);
    await first.stop();
    expect(await lab.run(host, ["cleanup"])).toMatchObject({ exitCode: 0 });
    expect(await dumpNetwork(host)).toBe(before);
  });

  test.each([
    ["extension", { Type: "extension", SubnetAddCommand: "true" }, true],
    ["udp", { Type: "udp" }, false],
  ] as const)("without etcd, %s", async (type, backend, needsOptions) => {
    const host = lab.host(2);
    const before = await dumpNetwork(host);
    const config = { ...operatorConfig("v4", backend), Network: "10.99.0.0/16" };
    await lab.cluster.etcd.ctl("put", "/second/config", JSON.stringify(config));
    const endpoints = endpointFor(host, lab.cluster.switch);
    await using daemon = Daemon.start(host, { endpoints, flags: ["--etcd-prefix=/second"] });
    await daemon.ready;
    await daemon.stop();
    const away = ["cleanup", "--etcd-prefix=/second", "--etcd-endpoints=http://127.0.0.1:1"];
    // Also the second time: what nobody has looked for is not gone because the subnet file is.
    for (const _ of needsOptions ? [1, 2] : []) {
      const { code, json } = await lab.ask<CleanupReport>(host, away);
      expect({ code, left: json.left }).toEqual({
        code: 1,
        left: [
          expect.stringMatching(
            new RegExp(`^what the backend ${type} made by itself was not looked for: .*127\\.0\\.0\\.1:1`),
          ),
        ],
      });
    }
    const good = needsOptions ? away.slice(0, 2) : away;
    expect(await lab.ask<CleanupReport>(host, good)).toMatchObject({ code: 0, json: { left: [] } });
    expect(await dumpNetwork(host)).toBe(before);
    expect(readdirSync(host.directory).filter((name) => name.startsWith("subnet.env"))).toEqual([]);
  });
});
