/**
 * Members of a cluster of three are killed, one after the other, while leases come and go.
 *
 *   pod ── cni0 ── h1 ── ext0 ── switch + three members of etcd ── ext0 ── h2 ── cni0 ── pod
 */
import { expect, test } from "bun:test";
import { ownLease, putLeases } from "../e2e/leases.ts";
import { networkConfig, PREFIX } from "../lab/cluster.ts";
import { Daemon } from "../lab/daemon.ts";
import type { EtcdServer } from "../lab/etcd.ts";
import { EtcdCluster } from "../lab/etcd-cluster.ts";
import { Host } from "../lab/host.ts";
import { expectInSync } from "../lab/oracle.ts";
import { PingFlow } from "../lab/ping-flow.ts";
import { Pod } from "../lab/pod.ts";
import { Switch } from "../lab/switch.ts";

test("no lease is lost, no ping is lost, and every change arrives", async () => {
  await using stack = new AsyncDisposableStack();
  const on = stack.use(await Switch.create({ family: "v4" }));
  const options = { namespace: on.namespace.name, address: on.ipv4 };
  const etcd = stack.use(await EtcdCluster.start(3, options));
  const hosts = [stack.use(await Host.create(on, 1)), stack.use(await Host.create(on, 2))] as const;
  await etcd.members[0]!.ctl("put", `${PREFIX}/config`, JSON.stringify(networkConfig("v4")));
  const endpoints = etcd.endpoints.join(",");
  const daemons = hosts.map((host) =>
    stack.use(Daemon.start(host, { endpoints, flags: ["--subnet-lease-ttl=5s"] })),
  );
  await Promise.all(daemons.map((daemon) => daemon.ready));
  const pods = [stack.use(await Pod.create(hosts[0])), stack.use(await Pod.create(hosts[1]))] as const;
  const keys = async (member: EtcdServer) =>
    (await Promise.all(hosts.map((host) => ownLease({ etcd: member }, host)))).map(
      (lease) => lease?.modRevision,
    );
  const before = await keys(etcd.members[0]!);
  const flow = stack.use(await PingFlow.start(pods[0], pods[1].ipv4, { rate: 50 }));

  for (const [round, victim] of etcd.members.entries()) {
    const survivor = etcd.members[(round + 1) % 3]!;
    const churn = Array.from({ length: 60 }, (_, n) => ({
      key: `10.244.${round * 20 + n + 1}.0-24`,
      value: {
        PublicIP: `192.0.2.${100 + n}`,
        PublicIPv6: null,
        BackendType: "vxlan",
        BackendData: { VNI: 1, VtepMAC: `02:00:00:00:0${round}:${(n + 1).toString(16).padStart(2, "0")}` },
      },
    }));
    const writing = (async () => {
      for (let at = 0; at < churn.length; at += 10) {
        await retry(() => putLeases({ etcd: survivor, switch: on }, churn.slice(at, at + 10)));
      }
    })();
    await victim.stop();
    await writing;
    await expectInSync(hosts, survivor, { deadline: 15_000 });
    victim.spawn();
    await victim.ready();
  }
  expect(await keys(etcd.members[0]!)).toEqual(before);
  const { lost, longestGap } = await flow.stop();
  expect({ lost, longestGap }).toMatchObject({ lost: 0 });
  for (const daemon of daemons) {
    const told = daemon.lines.filter(({ level }) => level === "error").map(({ msg }) => msg);
    expect({ told, many: told.length > 6 }).toMatchObject({ many: false });
  }
}, 90_000);

/** A member without a leader refuses writes for the moment. */
async function retry(write: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await write();
    } catch (error) {
      if (tries === 20) throw error;
      await Bun.sleep(200);
    }
  }
}
