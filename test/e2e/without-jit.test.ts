/**
 * Where the kernel forbids pages that are both written and run (MemoryDenyWriteExecute), there is no rtnetlink from
 * this process: the data plane goes through `ip` and `bridge`, and is the same.
 *
 *   pod ── cni0 ── h1 ── ext0 ─┬─ switch + etcd ─┬─ ext0 ── h2 ── cni0 ── pod
 */
import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Cluster, networkConfig } from "../lab/cluster.ts";
import type { Host } from "../lab/host.ts";
import { KernelMonitor } from "../lab/kernel-monitor.ts";
import { expectInSync } from "../lab/oracle.ts";
import { ping } from "../lab/ping.ts";
import type { Pod } from "../lab/pod.ts";

test("the fall-back makes the same objects, heals them, and finds nothing to do after a restart", async () => {
  await using cluster = await Cluster.create({ hosts: 2, family: "dual", config: networkConfig("dual") });
  const [h1, h2] = cluster.hosts as [Host, Host];
  // Without FFI there are no datagrams either: systemd's own command sends them.
  const told = join(h1.directory, "told");
  const bin = join(h1.directory, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "systemd-notify"), `#!/bin/sh\necho "$PPID $*" >>${told}\n`, { mode: 0o755 });
  const env = { BUN_JSC_useJIT: "0", PATH: `${bin}:${process.env.PATH}` };
  const first = cluster.startDaemon(h1, { env });
  const other = cluster.startDaemon(h2);
  await first.waitForLog(({ msg }) => msg === "ready", { deadline: 30_000 });
  await other.ready;
  expect(first.lines.some(({ level, msg }) => level === "warn" && /ip|JIT/.test(msg))).toBe(true);
  await expectInSync(cluster.hosts, cluster.etcd);
  const [p1, p2] = (await cluster.addPods()) as [Pod, Pod];
  for (const address of p2.addresses) expect((await ping(p1, address)).received).toBe(3);
  await h1.namespace.exec("sh", "-ec", "ip link del flannel.1; ip -6 route flush proto 140");
  await expectInSync(cluster.hosts, cluster.etcd, { deadline: 20_000 });
  for (const address of p2.addresses) expect((await ping(p1, address)).received).toBe(3);
  expect(readFileSync(told, "utf8")).toBe(`${first.pid} READY=1\n`);
  await using monitor = await KernelMonitor.start(h1);
  expect(await first.stop()).toMatchObject({ code: 0 });
  const again = cluster.startDaemon(h1, { env });
  await again.waitForLog(({ msg }) => msg === "ready", { deadline: 30_000 });
  await again.stop();
  expect(await monitor.stop()).toEqual([]);
}, 90_000);
