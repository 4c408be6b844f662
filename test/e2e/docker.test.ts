/**
 * Containers of real Docker daemons, started with what mk-docker-opts.sh makes of the subnet file.
 *
 *   container ── docker0 ── h1 ── ext0 ── switch + etcd ── ext0 ── h2 ── docker0 ── container
 */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { Cluster } from "../lab/cluster.ts";
import { type Container, Dockerd } from "../lab/dockerd.ts";
import type { Host } from "../lab/host.ts";
import { readSubnetFile } from "../lab/subnet-file.ts";

const SCRIPT = join(import.meta.dir, "../../dist/mk-docker-opts.sh");

test.skipIf(Bun.which("dockerd") === null)(
  "containers of two hosts reach each other, and the world under the host's address (needs dockerd)",
  async () => {
    await using cluster = await Cluster.create({ hosts: 2 });
    await cluster.startDaemons({ flags: ["--ip-masq"] });
    await using stack = new AsyncDisposableStack();
    const containers: Container[] = [];
    for (const host of cluster.hosts) {
      const options = await dockerOptions(host);
      const { subnet, mtu } = await readSubnetFile(host.subnetFile);
      expect(options).toEqual([`--bip=${subnet}`, "--ip-masq=false", `--mtu=${mtu}`]);
      // As on a fresh machine: Docker turns forwarding on, and then denies it by default.
      await host.namespace.exec("sysctl", "-qw", "net.ipv4.ip_forward=0");
      const docker = stack.use(await Dockerd.start(host, options));
      expect(await host.namespace.exec("iptables", "-S", "FORWARD")).toContain("-P FORWARD DROP");
      const container = await docker.run(`${host.namespace.name}-box`);
      expect(await container.exec("ip", "-o", "link", "show", "eth0")).toContain(` mtu ${mtu} `);
      containers.push(container);
    }
    const [c1, c2] = containers as [Container, Container];
    const answers = await Promise.all([pingFrom(c1, c2.ipv4), pingFrom(c2, c1.ipv4)]);
    for (const answer of answers) expect(answer).toContain(" 3 packets received");

    const outside = cluster.switch;
    await outside.namespace.exec("nft", countSources(cluster.hosts));
    expect(await pingFrom(c1, outside.ipv4)).toContain(" 3 packets received");
    const { nftables } = await outside.namespace.json("nft", "-j", "list", "counters");
    const counts = nftables.flatMap(({ counter }) => (counter ? [[counter.name, counter.packets]] : []));
    expect(Object.fromEntries(counts)).toEqual({ h1: 3, h2: 0, other: 0 });
  },
  90_000,
);

function pingFrom(container: Container, address: string): Promise<string> {
  return container.exec("ping", "-c", "3", "-W", "2", address);
}

/** What an operator's unit reads from the file that the script writes. */
async function dockerOptions(host: Host): Promise<readonly string[]> {
  const file = join(host.directory, "docker.env");
  await host.namespace.exec("sh", SCRIPT, "-c", "-f", host.subnetFile, "-d", file);
  const value = /^DOCKER_OPTS="(.*)"$/m.exec(await Bun.file(file).text())?.[1] ?? "";
  return value.split(" ").filter(Boolean);
}

/** Counts echo requests by the host that they come from. */
function countSources(hosts: readonly Host[]): string {
  const rule = (name: string, matches: string) =>
    `add rule ip sources input icmp type echo-request ${matches} counter name ${name} accept`;
  return [
    "add table ip sources",
    ...[...hosts.map((host) => host.name), "other"].map((name) => `add counter ip sources ${name}`),
    "add chain ip sources input { type filter hook input priority 0; }",
    ...hosts.map((host) => rule(host.name, `ip saddr ${host.ipv4}`)),
    rule("other", ""),
  ].join("\n");
}
