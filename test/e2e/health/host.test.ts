/**
 * What can go wrong on a host, each broken on a running daemon, told with its code, and repaired.
 *
 *   h1 (flanneld with commands of its own in PATH) ── ext0 ─┬─ switch + etcd
 *   h2 (flanneld) ───────────────────────────────── ext0 ──┘
 */
import { afterAll, beforeAll } from "bun:test";
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Cluster, networkConfig, PREFIX } from "../../lab/cluster.ts";
import { type Daemon, executable } from "../../lab/daemon.ts";
import type { Host } from "../../lab/host.ts";
import { until } from "../../lab/until.ts";
import { readStatus } from "../ask.ts";
import { putLeases } from "../leases.ts";
import { BLOCK_DEVICE, DEADLINE, HEALTH_FLAG, isReady, TIMEOUT, testBreakages } from "./readiness.ts";

let cluster: Cluster;
let [h1, h2]: Host[] = [];
let daemon: Daemon;
/** The only folder of commands that the daemon knows. */
let bin = "";

beforeAll(async () => {
  cluster = await Cluster.create({
    hosts: 2,
    config: networkConfig("v4", { Type: "vxlan", MembersOnly: true }),
  });
  [h1, h2] = cluster.hosts;
  bin = join(h1!.directory, "bin");
  layOutTools();
  const file = join(h1!.directory, "flanneld");
  writeFileSync(file, `#!/bin/sh\nPATH=${bin} exec ${executable()} "$@"\n`);
  chmodSync(file, 0o755);
  daemon = cluster.startDaemon(h1!, { file, flags: [HEALTH_FLAG, "--ip-masq", "--iptables-resync=1"] });
  await Promise.all([daemon.ready, cluster.startDaemon(h2!).ready]);
}, TIMEOUT);
afterAll(() => cluster?.[Symbol.asyncDispose]());

/** Every front end of the kernel's filters that this machine has. */
function layOutTools(): void {
  mkdirSync(bin);
  for (const name of readdirSync("/usr/sbin"))
    if (/^(ip6?tables|nft$)/.test(name)) symlinkSync(join("/usr/sbin", name), join(bin, name));
}

const run = (text: string) => h1!.namespace.exec("sh", "-ec", text);
const stranger = `${PREFIX}/subnets/10.244.197.0-24`;
let owner: Bun.Subprocess<"pipe", "ignore", "inherit"> | undefined;

/** Waits until the node works with that address of its interface. */
const uses = (address: string) =>
  until(async () => (await isReady(h1!)) && (await readStatus(h1!)).interface?.ipv4 === address, {
    message: () => daemon.tail(),
    deadline: 2 * DEADLINE,
  });

testBreakages(
  () => ({ host: h1!, daemon }),
  [
    {
      what: "the device cannot be made",
      code: "DATAPLANE_BROKEN",
      breakIt: () => run(BLOCK_DEVICE),
      repairIt: () => run("ip link delete blocker"),
    },
    {
      what: "the subnet file cannot be written",
      code: "SUBNET_FILE",
      breakIt: () => {
        rmSync(h1!.subnetFile);
        mkdirSync(h1!.subnetFile);
      },
      repairIt: () => rmdirSync(h1!.subnetFile),
    },
    {
      what: "the address of the interface is gone",
      code: "INTERFACE_LOST",
      breakIt: () => run("ip address delete 192.0.2.1/24 dev ext0"),
      repairIt: () =>
        run("ip address add 192.0.2.1/24 dev ext0; ip route replace default via 192.0.2.254 dev ext0"),
    },
    {
      what: "the host's new address cannot be used",
      code: "HANDOVER_FAILED",
      breakIt: () =>
        run(
          `${BLOCK_DEVICE}; ip address delete 192.0.2.1/24 dev ext0; ip address add 192.0.2.61/24 dev ext0; ip route replace default via 192.0.2.254 dev ext0`,
        ),
      repairIt: async () => {
        await run("ip link delete blocker");
        await uses("192.0.2.61");
        await run(
          "ip address delete 192.0.2.61/24 dev ext0; ip address add 192.0.2.1/24 dev ext0; ip route replace default via 192.0.2.254 dev ext0",
        );
        await uses("192.0.2.1");
      },
    },
    {
      what: "the kernel refuses a peer's route",
      code: "DATAPLANE_REFUSED",
      breakIt: async () => {
        // A gateway that is an address of this very host.
        await run("ip address add 10.244.197.0/32 dev lo");
        const data = { VNI: 1, VtepMAC: "02:00:00:00:00:97" };
        const value = { PublicIP: "192.0.2.97", PublicIPv6: null, BackendType: "vxlan", BackendData: data };
        await putLeases(cluster, [{ key: "10.244.197.0-24", value }]);
      },
      repairIt: async () => {
        await run("ip address delete 10.244.197.0/32 dev lo");
        await cluster.etcd.ctl("del", stranger);
      },
    },
    {
      what: "the table of iptables holds what iptables cannot show",
      code: "TRAFFIC_FAILED",
      breakIt: () =>
        run(
          "nft add set ip filter s '{ type ipv4_addr; }'; nft add chain ip filter strange; nft add rule ip filter strange ip saddr @s masquerade",
        ),
      repairIt: () =>
        run(
          "nft flush chain ip filter strange; nft delete chain ip filter strange; nft delete set ip filter s",
        ),
    },
    {
      what: "nftables and iptables are uninstalled, and the rules are gone",
      code: "TRAFFIC_NO_TOOL",
      breakIt: async () => {
        renameSync(bin, `${bin}.away`);
        await run("nft flush ruleset");
      },
      repairIt: () => renameSync(`${bin}.away`, bin),
    },
    {
      what: "nftables alone is uninstalled, and the filter is gone",
      code: "MEMBERS_NO_TOOL",
      breakIt: async () => {
        renameSync(join(bin, "nft"), `${bin}/away`);
        await run("nft delete table ip flannel-members");
      },
      repairIt: () => renameSync(`${bin}/away`, join(bin, "nft")),
    },
    {
      what: "the table of the filter belongs to another process",
      code: "MEMBERS_FAILED",
      breakIt: async () => {
        owner = Bun.spawn(["ip", "netns", "exec", h1!.namespace.name, "nft", "-i"], {
          stdin: "pipe",
          stdout: "ignore",
        });
        owner.stdin.write("delete table ip flannel-members\nadd table ip flannel-members { flags owner; }\n");
        await owner.stdin.flush();
      },
      // What a process owns goes with it.
      repairIt: async () => {
        owner?.stdin.end();
        await owner?.exited;
      },
    },
  ],
);
