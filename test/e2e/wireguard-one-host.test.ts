/**
 * What stops the wireguard backend from starting, and what it makes of leases that nodes of upstream leave behind.
 *
 *   h1 ── flannel-wg ═ ext0 ── switch + etcd
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Cluster, networkConfig } from "../lab/cluster.ts";
import type { Host } from "../lab/host.ts";
import { until } from "../lab/until.ts";
import { readStatus } from "./ask.ts";
import { putLeases } from "./leases.ts";
import { daemonOptions, keyFile, showDevice } from "./wireguard-lab.ts";

const TIMEOUT = 120_000;

describe("one host, one thing after another", () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.create({ hosts: 1, config: networkConfig("v4", { Type: "wireguard" }) });
  }, TIMEOUT);
  afterAll(() => cluster[Symbol.asyncDispose]());

  test(
    "a host without WireGuard, or with one in user space that does not start, is told what to do",
    async () => {
      const [host] = cluster.hosts as [Host];
      const made = await host.namespace.run(["ip", "link", "add", "probe", "type", "wireguard"]);
      // Where the kernel has it, nobody is asked for wireguard-go.
      if (made.exitCode === 0) return;
      const folder = join(host.directory, "bin");
      mkdirSync(folder);
      for (const program of ["sh", "nft", "ip"]) symlinkSync(Bun.which(program) ?? "", join(folder, program));
      const refused = async () => {
        const daemon = cluster.startDaemon(host, daemonOptions(host, folder));
        await daemon.ready.catch(() => {});
        expect((await host.namespace.run(["ip", "link", "show", "flannel-wg"])).exitCode).toBe(1);
        expect(await host.namespace.exec("ip", "route", "show", "proto", "140")).toBe("");
        return daemon.tail();
      };
      const missing = await refused();
      expect(missing).toContain("WIREGUARD_UNSUPPORTED");
      expect(missing).toContain("modprobe wireguard");
      writeFileSync(
        join(folder, "wireguard-go"),
        "#!/bin/sh\necho 'ERROR: (flannel-wg) 2026/01/01 00:00:00 Failed to create TUN device: no luck'\nexit 1\n",
        { mode: 0o755 },
      );
      const failing = await refused();
      expect(failing).toContain("WIREGUARD_USERSPACE");
      expect(failing).toContain("Failed to create TUN device: no luck");
    },
    TIMEOUT,
  );

  test(
    "a bad key file is refused and left alone; a port in use is named, and nothing half-made stays",
    async () => {
      const [host] = cluster.hosts as [Host];
      writeFileSync(keyFile(host), "bm90IGEga2V5", { mode: 0o400 });
      const refused = cluster.startDaemon(host, daemonOptions(host));
      await refused.ready.catch(() => {});
      expect(refused.tail()).toContain("WIREGUARD_KEY_FILE");
      expect(refused.tail()).not.toContain("bm90IGEga2V5");
      expect(readFileSync(keyFile(host), "utf8")).toBe("bm90IGEga2V5");

      writeFileSync(keyFile(host), Buffer.alloc(32, 64).toString("base64"), { mode: 0o400 });
      const holder = host.namespace.spawn("socat", "-u", "UDP4-RECV:51820", "OPEN:/dev/null");
      await until(async () => (await host.namespace.exec("ss", "-ulnH")).includes(":51820"), {
        message: "the port is taken",
      });
      const again = cluster.startDaemon(host, daemonOptions(host));
      await again.ready.catch(() => {});
      expect(again.tail()).toContain("WIREGUARD_PORT_IN_USE");
      expect(again.tail()).not.toContain(Buffer.alloc(32, 64).toString("base64"));
      expect((await host.namespace.run(["ip", "link", "show", "flannel-wg"])).exitCode).toBe(1);
      expect(await host.namespace.exec("ip", "route", "show", "proto", "140")).toBe("");
      holder.kill();
      await holder.exited;

      await host.namespace.ip("link add flannel-wg type bridge");
      const foreign = cluster.startDaemon(host, daemonOptions(host));
      await foreign.ready.catch(() => {});
      expect(foreign.tail()).toContain("WIREGUARD_DEVICE_FOREIGN");
      await host.namespace.ip("link delete flannel-wg");

      chmodSync(keyFile(host), 0o444);
      await cluster.startDaemon(host, daemonOptions(host)).ready;
      const { findings } = await readStatus(host);
      expect(findings.find(({ code }) => code === "WIREGUARD_KEY_EXPOSED")?.text).toContain(keyFile(host));
    },
    TIMEOUT,
  );

  test(
    "of two leases with one key the one that was written last counts, and both are named",
    async () => {
      const [host] = cluster.hosts as [Host];
      // The daemon of the test before goes on.
      const put = (n: number) =>
        putLeases(cluster, [
          {
            key: `10.244.${n}.0-24`,
            value: {
              PublicIP: `192.0.2.${n}`,
              PublicIPv6: null,
              BackendType: "wireguard",
              BackendData: { PublicKey: Buffer.alloc(32, 8).toString("base64"), Port: 51820 },
            },
          },
        ]);
      const untilAt = async (n: number) => {
        const wanted = [{ endpoint: `192.0.2.${n}:51820`, allowedIPs: [`10.244.${n}.0/24`] }];
        const shown = async () =>
          (await showDevice(host)).peers.map(({ endpoint, allowedIPs }) => ({ endpoint, allowedIPs }));
        await until(async () => Bun.deepEquals(await shown(), wanted), {
          message: `the peer is that of ${n}`,
        });
      };
      await put(10);
      await untilAt(10);
      // Its address changed: upstream then takes another subnet, and leaves the former lease to expire.
      await put(11);
      await untilAt(11);
      const { findings } = await readStatus(host);
      expect(findings.filter(({ severity }) => severity === "error")).toEqual([]);
      expect(findings.find(({ code }) => code === "PEER_UNUSABLE")?.text).toContain(
        "10.244.10.0-24 has the same key as the newer lease 10.244.11.0-24",
      );
      // Written as it was: to a node that starts now it is the newer one.
      await put(10);
      await untilAt(10);
    },
    TIMEOUT,
  );
});
