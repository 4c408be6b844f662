/**
 * A node behind address translation publishes the address that others reach it at; its tunnel begins at its own.
 *
 *   pod ─ h1 ─ ext0 ─ switch 1 + etcd ─ router ─ switch 2 ─ ext0 ─ h1@2 ─ pod
 *         192.0.2.1                     203.0.113.5 = 192.0.2.1
 */
import { expect, test } from "bun:test";
import { Cluster } from "../lab/cluster.ts";
import type { Host } from "../lab/host.ts";
import { ping } from "../lab/ping.ts";
import type { Pod } from "../lab/pod.ts";
import { Router } from "../lab/router.ts";
import { Switch } from "../lab/switch.ts";
import { ownLease, storedLeases } from "./leases.ts";

test("vxlan through a translated address", async () => {
  await using far = await Switch.create({ number: 2, family: "v4" });
  await using cluster = await Cluster.create({ hosts: 1 });
  await using router = await Router.create(cluster.switch, far);
  const [h1] = cluster.hosts as [Host];
  const h2 = await cluster.addHost(1, far);
  await router.namespace.exec(
    "nft",
    `add table ip nat
       add chain ip nat pre { type nat hook prerouting priority dstnat; }
       add rule ip nat pre ip daddr 203.0.113.5 dnat to 192.0.2.1
       add chain ip nat post { type nat hook postrouting priority srcnat; }
       add rule ip nat post ip saddr 192.0.2.1 oifname "leg2" snat to 203.0.113.5`,
  );
  const daemons = [cluster.startDaemon(h1, { flags: ["--public-ip=203.0.113.5"] }), cluster.startDaemon(h2)];
  await Promise.all(daemons.map((daemon) => daemon.ready));
  const published = (await storedLeases(cluster)).map(({ value }) => value?.PublicIP).sort();
  expect(published).toEqual(["198.51.100.1", "203.0.113.5"]);
  expect((await ownLease(cluster, h2))?.value).toMatchObject({ BackendType: "vxlan" });
  const [link] = await h1.namespace.json("ip", "-j", "-d", "link", "show", "flannel.1");
  expect(link.linkinfo.info_data.local).toBe("192.0.2.1");
  const [p1, p2] = (await cluster.addPods()) as [Pod, Pod];
  expect((await ping(p1, p2.ipv4)).received).toBe(3);
  expect((await ping(p2, p1.ipv4)).received).toBe(3);
}, 60_000);
