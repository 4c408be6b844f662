/**
 * A running node follows its host and the network config: address, device, MTU, options; containers keep their
 * addresses meanwhile.
 *
 *   h1 + pod ── ext0 ─┬─ switch + etcd
 *   h2 + pod ── ext0 ─┘
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { Cluster, networkConfig, PREFIX } from "../lab/cluster.ts";
import type { Daemon } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { expectInSync } from "../lab/oracle.ts";
import { ping } from "../lab/ping.ts";
import type { Pod } from "../lab/pod.ts";
import { readSubnetFile } from "../lab/subnet-file.ts";
import { until } from "../lab/until.ts";
import { ownLease, storedLeases } from "./leases.ts";

const TIMEOUT = 90_000;

let cluster: Cluster;
let hosts: [Host, Host];
let daemons: [Daemon, Daemon];
let pods: [Pod, Pod];

beforeAll(async () => {
  cluster = await Cluster.create({ hosts: 2 });
  hosts = [cluster.hosts[0]!, cluster.hosts[1]!];
  const started = await cluster.startDaemons();
  daemons = [started[0]!, started[1]!];
  const added = await cluster.addPods();
  pods = [added[0]!, added[1]!];
}, TIMEOUT);
afterAll(() => cluster[Symbol.asyncDispose]());

async function expectPing(): Promise<void> {
  await until(async () => (await ping(pods[0], pods[1].ipv4!, { count: 1 })).received === 1, {
    message: "the pods cannot ping each other",
    deadline: 10_000,
  });
}

test(
  "a changed address is followed: device, lease and peers move, the subnet stays",
  async () => {
    const [h1] = hosts;
    const file = readFileSync(h1.subnetFile, "utf8");
    const inode = statSync(h1.subnetFile).ino;
    const { key } = (await ownLease(cluster, h1))!;
    await h1.namespace.exec(
      "sh",
      "-ec",
      "ip address del 192.0.2.1/24 dev ext0; ip address add 192.0.2.71/24 dev ext0; ip route replace default via 192.0.2.254 dev ext0",
    );
    await until(
      async () => (await storedLeases(cluster)).some((each) => each.value?.PublicIP === "192.0.2.71"),
      {
        message: () => `the lease never followed\n${daemons[0].tail()}`,
        deadline: 15_000,
      },
    );
    await expectInSync(hosts, cluster.etcd, { deadline: 15_000 });
    await expectPing();
    expect((await storedLeases(cluster)).map((each) => each.key)).toContain(key);
    expect(readFileSync(h1.subnetFile, "utf8")).toBe(file);
    expect(statSync(h1.subnetFile).ino).toBe(inode);
  },
  TIMEOUT,
);

test(
  "a flap of the address writes no lease",
  async () => {
    const [, h2] = hosts;
    const before = (await ownLease(cluster, h2))!;
    await h2.namespace.exec(
      "sh",
      "-ec",
      "ip address del 192.0.2.2/24 dev ext0; sleep 0.5; ip address add 192.0.2.2/24 dev ext0; ip route replace default via 192.0.2.254 dev ext0",
    );
    await expectInSync(hosts, cluster.etcd, { deadline: 20_000 });
    await expectPing();
    expect((await ownLease(cluster, h2))!.modRevision).toBe(before.modRevision);
  },
  TIMEOUT,
);

test(
  "the underlay's MTU is followed into device and subnet file",
  async () => {
    for (const mtu of [1420, 1500]) {
      await hosts[0].namespace.exec("ip", "link", "set", "ext0", "mtu", String(mtu));
      await until(async () => (await readSubnetFile(hosts[0].subnetFile)).mtu === mtu - 50, {
        message: () => `the subnet file never said ${mtu - 50}\n${daemons[0].tail()}`,
        deadline: 10_000,
      });
      await expectInSync([hosts[0]], cluster.etcd, { deadline: 10_000 });
    }
    await expectPing();
  },
  TIMEOUT,
);

test(
  "another VNI and port are applied while running: new device, no old one, same subnets",
  async () => {
    const keys = (await storedLeases(cluster)).map((each) => each.key).sort();
    await cluster.configure(networkConfig("v4", { Type: "vxlan", VNI: 7, Port: 4790 }));
    for (const host of hosts) {
      await until(
        async () => {
          const links = (await host.namespace.json("ip", "-j", "link", "show")) as { ifname: string }[];
          const names = links.map((link) => link.ifname);
          return names.includes("flannel.7") && !names.includes("flannel.1");
        },
        { message: () => `${host.name} never changed its device\n${daemons[0].tail()}`, deadline: 15_000 },
      );
    }
    await expectInSync(hosts, cluster.etcd, { deadline: 15_000 });
    await expectPing();
    expect((await storedLeases(cluster)).map((each) => each.key).sort()).toEqual(keys);
  },
  TIMEOUT,
);

test(
  "direct routing is switched on while running",
  async () => {
    await cluster.configure(networkConfig("v4", { Type: "vxlan", VNI: 7, Port: 4790, DirectRouting: true }));
    await until(
      async () => {
        const routes: { dev?: string }[] = await hosts[0].namespace.json(
          "ip",
          "-j",
          "route",
          "show",
          "proto",
          "140",
        );
        return routes.length === 1 && routes[0]!.dev === "ext0";
      },
      { message: () => `the route never became direct\n${daemons[0].tail()}`, deadline: 15_000 },
    );
    await expectPing();
  },
  TIMEOUT,
);

test(
  "a bad config is refused and the last good one stays; another network waits for a restart",
  async () => {
    const good = networkConfig("v4", { Type: "vxlan", VNI: 7, Port: 4790, DirectRouting: true });
    await cluster.etcd.ctl("put", `${PREFIX}/config`, JSON.stringify({ ...good, SubnetLenn: 24 }));
    await daemons[0].waitForLog((line) => line.code === "CONFIG_UNKNOWN_KEY");
    await cluster.etcd.ctl("put", `${PREFIX}/config`, '{"Network": "10.244.0.0/33"}');
    await daemons[0].waitForLog((line) => line.code === "CONFIG_REFUSED");
    await expectPing();
    await cluster.configure({
      ...good,
      Network: "10.99.0.0/16",
      SubnetMin: "10.99.1.0",
      SubnetMax: "10.99.9.0",
    });
    const line = await daemons[0].waitForLog((each) => each.code === "CONFIG_NEEDS_RESTART");
    expect(line.msg).toContain("Network");
    await expectPing();
    await cluster.configure(good);
    await daemons[0].waitForLog(
      (each) => each.code === "CONFIG_UNKNOWN_KEY" && /^over/.test(String(each.msg)),
    );
    await daemons[0].waitForLog(
      (each) => each.code === "CONFIG_NEEDS_RESTART" && /^over/.test(String(each.msg)),
    );
    await expectPing();
  },
  TIMEOUT,
);

test(
  "the interface deleted and made anew: everything is back, the lease is untouched",
  async () => {
    const [h1] = hosts;
    const before = (await storedLeases(cluster)).find((each) => each.value?.PublicIP === "192.0.2.71")!;
    await h1.namespace.exec("ip", "link", "delete", "ext0");
    await cluster.switch.connect(h1.namespace, "ext0", h1.number);
    await h1.namespace.exec(
      "sh",
      "-ec",
      "ip link set ext0 up; ip address add 192.0.2.71/24 dev ext0; ip route replace default via 192.0.2.254 dev ext0",
    );
    await expectInSync(hosts, cluster.etcd, { deadline: 30_000 });
    await expectPing();
    const after = (await storedLeases(cluster)).find((each) => each.key === before.key)!;
    expect(after.value?.PublicIP).toBe("192.0.2.71");
  },
  TIMEOUT,
);

test(
  "an address that is lost for a while is not given up for a link-local one",
  async () => {
    const dual = await Cluster.create({ hosts: 2, family: "dual" });
    await using _ = dual;
    const [h1] = dual.hosts as [Host];
    const [daemon] = (await dual.startDaemons()) as [Daemon];
    const before = (await ownLease(dual, h1))!;
    await h1.namespace.exec("ip", "-6", "address", "delete", "fd00:db8::1/64", "dev", "ext0");
    await daemon.waitForLog((line) => line.code === "INTERFACE_LOST");
    expect((await ownLease(dual, h1))!.value).toEqual(before.value!);
    await h1.namespace.exec("ip", "-6", "address", "add", "fd00:db8::1/64", "dev", "ext0", "nodad");
    await daemon.waitForLog((line) => line.code === "INTERFACE_LOST" && /^over/.test(String(line.msg)));
    await expectInSync(dual.hosts, dual.etcd, { deadline: 20_000 });
    expect((await ownLease(dual, h1))!.value).toEqual(before.value!);
  },
  TIMEOUT,
);
