/**
 * The commands for operators, through the executable:
 *
 *   h1, h2 (vxlan, dual stack, running) ── switch + etcd ── h3 (bare), h4 (comes and goes)
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Cluster, networkConfig, PREFIX } from "../lab/cluster.ts";
import { Daemon } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { Switch } from "../lab/switch.ts";
import { endpointFor } from "../lab/switch-etcd.ts";
import { until } from "../lab/until.ts";
import { type CommandOptions, dumpNetwork, runCommand } from "./command.ts";
import { ownLease } from "./leases.ts";

setDefaultTimeout(60_000);

let cluster: Cluster;
let hosts: readonly [Host, Host, Host, Host];

beforeAll(async () => {
  cluster = await Cluster.create({ hosts: 4, family: "dual" });
  hosts = cluster.hosts as unknown as typeof hosts;
  const started = hosts.slice(0, 2).map((host) => cluster.startDaemon(host));
  await Promise.all(started.map((daemon) => daemon.ready));
}, 60_000);

afterAll(() => cluster?.[Symbol.asyncDispose]());

const flanneld = (host: Host, args: readonly string[], options: CommandOptions = {}) =>
  runCommand(cluster, host, args, options);

// biome-ignore lint/suspicious/noExplicitAny: tests look into the output field by field
type Json = any;

/** Runs a command with `-o json`; its exit code and what it printed. */
async function ask(
  host: Host,
  args: readonly string[],
  options?: CommandOptions,
): Promise<{ code: number; json: Json }> {
  const { stdout, stderr, exitCode } = await flanneld(host, [...args, "-o", "json"], options);
  expect(stderr).toBe("");
  return { code: exitCode, json: JSON.parse(stdout) };
}

const codesOf = (findings: readonly { code: string }[]) => findings.map(({ code }) => code);

describe("without root", () => {
  const NOBODY = { uid: 65_534 };

  test.each(["status", "explain 10.244.1.1", "journal", "probe", "cleanup", "bundle"])(
    "%s says so, and does nothing",
    async (line) => {
      const args = line.split(" ");
      const { stdout, stderr, exitCode } = await flanneld(hosts[0], args, NOBODY);
      expect({ stdout, exitCode }).toEqual({ stdout: "", exitCode: 2 });
      expect(stderr).toContain("error PRIVILEGE_MISSING");
      expect(stderr).toContain("uid 65534");
    },
  );

  test("the daemon says so", async () => {
    const { stderr, exitCode } = await flanneld(hosts[2], ["run"], NOBODY);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("PRIVILEGE_MISSING");
  });

  test("leases and check go on, and say so", async () => {
    const leases = await flanneld(hosts[0], ["leases", "ls"], NOBODY);
    expect(leases.exitCode).toBe(0);
    expect(leases.stderr).toContain("warning NOT_ROOT: this is uid 65534");
    const check = await flanneld(hosts[2], ["check"], NOBODY);
    expect(check.exitCode).toBe(1);
    expect(check.stdout).toContain("error PRIVILEGE_MISSING");
  });
});

describe("leases", () => {
  test("ls shows every node, and by its exit code whether all is in order", async () => {
    const { code, json } = await ask(hosts[0], ["leases", "ls"]);
    expect({ code, config: json.config }).toEqual({ code: 0, config: "valid" });
    expect(
      json.leases.map((lease: { attrs: { publicIP: string } }) => lease.attrs.publicIP).toSorted(),
    ).toEqual([hosts[0].ipv4, hosts[1].ipv4]);
    for (const { kind, ageSeconds, ttlSeconds } of json.leases) {
      expect({ kind, sum: ageSeconds + ttlSeconds }).toEqual({ kind: "lease", sum: 86_400 });
    }
    await cluster.etcd.ctl("put", `${PREFIX}/subnets/.lock`, "x");
    const { stdout, exitCode } = await flanneld(hosts[0], ["leases", "ls"]);
    await cluster.etcd.ctl("del", `${PREFIX}/subnets/.lock`);
    expect(exitCode).toBe(1);
    expect(stdout.split("\n")[0]).toMatch(/^SUBNET +OWNER +NODE +BACKEND +AGE +TTL +NOTE$/);
    expect(stdout).toContain("junk: the key is not a subnet");
  });

  test("reserve and release", async () => {
    const keys = await Promise.all(
      hosts.slice(0, 2).map(async (host) => (await ownLease(cluster, host))?.key),
    );
    const free = [77, 78, 79].find((n) => !keys.some((key) => key?.startsWith(`10.244.${n}.`)));
    const subnet = `10.244.${free}.0/24`;
    const subnets = `${subnet},fd00:10:244:77::/64`;
    const reserve = (...more: string[]) => flanneld(hosts[0], ["leases", "reserve", subnets, ...more]);
    const release = (...more: string[]) => flanneld(hosts[0], ["leases", "release", subnet, ...more]);
    expect(await reserve("--for", hosts[2].ipv4)).toMatchObject({ exitCode: 0, stderr: "" });
    expect((await reserve("--for", hosts[2].ipv4)).stdout).toContain("was reserved already");
    const other = await reserve("--for", hosts[3].ipv4, "--force");
    expect(other.exitCode).toBe(2);
    expect(other.stderr).toContain("error LEASE_TAKEN");
    await using daemon = Daemon.start(hosts[2], { endpoints: endpointFor(hosts[2], cluster.switch) });
    await daemon.ready;
    const taken = await release();
    expect(taken.stderr).toContain("error LEASE_IN_USE");
    await daemon.stop();
    // On its own host, where no daemon runs, it needs no force.
    expect(await flanneld(hosts[2], ["leases", "release", subnet])).toMatchObject({ exitCode: 0 });
    expect((await release()).stderr).toContain("error LEASE_UNKNOWN");
    expect(await flanneld(hosts[2], ["cleanup"])).toMatchObject({ exitCode: 0 });
  });

  test("a living node's lease is released by force only, and that node takes it back", async () => {
    const { json } = await ask(hosts[0], ["leases", "ls"]);
    const { key } = json.leases.find(
      (lease: { attrs: { publicIP: string } }) => lease.attrs.publicIP === hosts[1].ipv4,
    );
    const refused = await flanneld(hosts[0], ["leases", "release", key]);
    expect(refused).toMatchObject({ exitCode: 2, stdout: "" });
    expect(refused.stderr).toContain("error LEASE_IN_USE");
    expect(await flanneld(hosts[0], ["leases", "release", key, "--force"])).toMatchObject({ exitCode: 0 });
    await until(async () => (await cluster.etcd.get(`${PREFIX}/subnets/${key}`)) !== undefined, {
      message: "the node does not take its lease back",
    });
  });

  test("without etcd the fault says so", async () => {
    const { exitCode, stderr } = await flanneld(hosts[0], [
      "leases",
      "ls",
      "--etcd-endpoints=http://127.0.0.1:1",
    ]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("error ETCD_UNREACHABLE");
  });
});

describe("check", () => {
  const findings = async (host: Host, ...args: string[]) => {
    const { code, json } = await ask(host, ["check", ...args]);
    expect(code).toBe(json.ok ? 0 : 1);
    return json.checks.flatMap((item: { findings: { code: string; severity: string }[] }) => item.findings);
  };
  const errors = async (host: Host, ...args: string[]) =>
    codesOf(
      (await findings(host, ...args)).filter(({ severity }: { severity: string }) => severity === "error"),
    );

  test("a bare host is in order, and is as before", async () => {
    const before = await dumpNetwork(hosts[2]);
    const files = readdirSync(hosts[2].directory);
    expect(await errors(hosts[2])).toEqual([]);
    expect(await dumpNetwork(hosts[2])).toBe(before);
    expect(readdirSync(hosts[2].directory)).toEqual(files);
  });

  test("a running one too", async () => {
    expect(await errors(hosts[0])).toEqual([]);
  });

  test("what is in the way is found", async () => {
    const { namespace } = hosts[2];
    const listener = namespace.spawn("socat", "UDP4-LISTEN:8472,fork", "/dev/null");
    await namespace.exec(
      "sh",
      "-ec",
      "ip link add lan0 type bridge; ip address add 10.244.9.1/24 dev lan0; ip link set lan0 up",
    );
    await namespace.exec("sh", "-ec", "echo 0 > /proc/sys/net/ipv4/ip_forward; iptables -P FORWARD DROP");
    try {
      const found = await until(
        async () => {
          const all = await findings(hosts[2]);
          return codesOf(all).includes("PORT_BUSY") ? all : undefined;
        },
        { message: "PORT_BUSY is not found", deadline: 20_000 },
      );
      expect(codesOf(found)).toEqual(
        expect.arrayContaining(["NETWORK_OVERLAP", "FORWARDING_OFF", "FIREWALL_FORWARD"]),
      );
    } finally {
      listener.kill();
      await namespace.exec("sh", "-ec", "ip link delete lan0; echo 1 > /proc/sys/net/ipv4/ip_forward");
      await namespace.exec("sh", "-ec", "iptables -P FORWARD ACCEPT; nft flush ruleset");
    }
  });

  test("etcd: nobody there, no config, a bad one", async () => {
    expect(await errors(hosts[2], "--etcd-endpoints=http://127.0.0.1:1")).toEqual(["ETCD_UNREACHABLE"]);
    expect(await errors(hosts[2], "--etcd-prefix=/elsewhere")).toEqual(["CONFIG_MISSING"]);
    await cluster.etcd.ctl("put", "/bad/config", '{"Network": "10.0.0.0/32"}');
    expect(await errors(hosts[2], "--etcd-prefix=/bad")).toEqual(["CONFIG_INVALID"]);
  });
});

describe("probe", () => {
  const probe = async (...args: string[]) => ask(hosts[0], ["probe", ...args]);
  const inside = (host: Host, text: string) => host.namespace.exec("sh", "-ec", text);

  /** What `explain` says of the last probe. */
  const explainProbe = async (address: string) => {
    const { json } = await ask(hosts[0], ["explain", address]);
    return json.probe;
  };

  test("both families of a peer are in order", async () => {
    const [{ address: before }] = (await probe()).json.peers;
    expect((await flanneld(hosts[0], ["explain", before])).stdout).toMatch(
      /^PROBE +ok, \d+ s ago, [\d.]+ ms, MTU 1430, TCP passes /m,
    );
    const { code, json } = await probe();
    expect({ code, mtu: json.mtu }).toEqual({ code: 0, mtu: 1430 });
    expect(json.peers).toHaveLength(2);
    for (const peer of json.peers) {
      expect(peer).toMatchObject({
        role: "vtep",
        sent: 5,
        received: 5,
        mtu: 1430,
        tcp: "refused",
        findings: [],
      });
      expect(peer.rttMs).toBeGreaterThan(0);
    }
    for (const { address, rttMs } of json.peers) {
      const told = await explainProbe(address);
      expect(told).toMatchObject({ address, sent: 5, received: 5, mtu: 1430, tcp: "refused", verdict: "ok" });
      expect(told.rttMs).toBeCloseTo(rttMs, 2);
      expect(Math.abs(Date.now() - Date.parse(told.at))).toBeLessThan(60_000);
    }
    const unknown = await flanneld(hosts[0], ["probe", "192.0.2.250"]);
    expect(unknown.exitCode).toBe(2);
    expect(unknown.stderr).toContain("error PEER_UNKNOWN");
  });

  test("TCP that vanishes is told apart from ping", async () => {
    const drop = "nft add table inet t; nft add chain inet t i '{ type filter hook input priority 0; }'";
    await inside(hosts[1], `${drop}; nft add rule inet t i iifname flannel.1 meta l4proto tcp drop`);
    try {
      const { code, json } = await probe(hosts[1].ipv4);
      expect(code).toBe(1);
      const [v4, v6] = json.peers;
      expect(v4).toMatchObject({ received: 5, tcp: "timeout", findings: [{ code: "PROBE_TCP_CHECKSUM" }] });
      expect(v4.findings[0].text).toContain("checksum offload of flannel.1 is on");
      expect(v6).toMatchObject({ tcp: "refused", findings: [] });
    } finally {
      await inside(hosts[1], "nft delete table inet t");
    }
  });

  test("a link that carries less than it should", async () => {
    const port = Switch.port(hosts[1].number);
    await cluster.switch.namespace.ip(`link set ${port} mtu 1400`);
    try {
      const { code, json } = await probe();
      expect(code).toBe(1);
      // 50 and 70 bytes of encapsulation; a veth takes 4 bytes more than its MTU, room for a VLAN tag.
      expect(json.peers.map(({ mtu }: { mtu: number }) => mtu)).toEqual([1354, 1334]);
      expect(json.peers.flatMap((peer: { findings: { code: string }[] }) => codesOf(peer.findings))).toEqual([
        "PROBE_MTU",
        "PROBE_MTU",
      ]);
    } finally {
      await cluster.switch.namespace.ip(`link set ${port} mtu 1500`);
    }
  });

  test("a peer that is gone", async () => {
    await hosts[1].isolate();
    try {
      const { code, json } = await probe();
      expect(code).toBe(1);
      for (const peer of json.peers) expect(codesOf(peer.findings)).toEqual(["PROBE_UNREACHABLE"]);
      const { subnet } = json.peers[0];
      expect(await explainProbe(subnet.split("/")[0])).toMatchObject({
        received: 0,
        verdict: "PROBE_UNREACHABLE",
      });
    } finally {
      await hosts[1].rejoin();
    }
  });

  test("a host that never joined", async () => {
    const { exitCode, stderr } = await flanneld(hosts[2], ["probe"]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("error NOT_JOINED");
  });
});

test("ChecksumOffload is followed while the daemon runs", async () => {
  const state = async (device: string) =>
    /tx-checksum-ip-generic: (\w+)/.exec(await hosts[0].namespace.exec("ethtool", "-k", device))?.[1];
  const original = networkConfig("dual");
  for (const wanted of ["off", "on"]) {
    await cluster.configure({ ...original, Backend: { Type: "vxlan", ChecksumOffload: wanted } });
    for (const device of ["flannel.1", "flannel-v6.1"]) {
      await until(async () => (await state(device)) === wanted, { message: `${device} is not ${wanted}` });
    }
  }
  await cluster.configure(original);
});

test("a second daemon for the same subnet file is refused by the pid of the first, which goes on", async () => {
  await using second = Daemon.start(hosts[0], { endpoints: endpointFor(hosts[0], cluster.switch) });
  const line = await second.waitForLog(({ code }) => code === "ALREADY_RUNNING");
  expect(await second.ended()).toMatchObject({ code: 1 });
  const { json } = await ask(hosts[0], ["status"]);
  expect(json.ready).toBe(true);
  expect(line.msg).toContain(`pid ${json.pid} `);
});

describe("cleanup", () => {
  const FLAGS = ["--ip-masq", "--ip-blackhole-route"];

  test.each(["SIGTERM", "SIGKILL"] as const)(
    "after %s nothing is left, and a second time is fine",
    async (signal) => {
      const host = hosts[3];
      const before = await dumpNetwork(host);
      await using daemon = Daemon.start(host, { endpoints: endpointFor(host, cluster.switch), flags: FLAGS });
      await daemon.ready;
      const refused = await flanneld(host, ["cleanup"]);
      expect(refused).toMatchObject({ exitCode: 2, stdout: "" });
      expect(refused.stderr).toContain("error ALREADY_RUNNING");
      expect(refused.stderr).toContain(`pid ${daemon.pid}`);
      await daemon.stop(signal);
      const running = await dumpNetwork(host);
      const { json: dry } = await ask(host, ["cleanup", "--dry-run"]);
      expect(await dumpNetwork(host)).toBe(running);
      expect(dry.plan.join("\n")).toContain("device flannel.1,");
      expect(existsSync(host.subnetFile)).toBe(true);
      const { code, json } = await ask(host, ["cleanup"]);
      expect({ code, left: json.left, plan: json.plan }).toEqual({ code: 0, left: [], plan: dry.plan });
      expect(await dumpNetwork(host)).toBe(before);
      expect(readdirSync(host.directory).filter((name) => name.startsWith("subnet.env"))).toEqual([]);
      const second = await ask(host, ["cleanup"]);
      expect(second).toMatchObject({ code: 0, json: { plan: [], left: [] } });
    },
  );

  test("a second network on the host is left alone", async () => {
    const host = hosts[3];
    const before = await dumpNetwork(host);
    const endpoints = endpointFor(host, cluster.switch);
    const config = { ...networkConfig("v4", { Type: "vxlan", VNI: 7 }), Network: "10.99.0.0/16" };
    await cluster.etcd.ctl("put", "/second/config", JSON.stringify(config));
    const file = join(host.directory, "second.env");
    await using first = Daemon.start(host, { endpoints });
    const flags = ["--etcd-prefix=/second", `--subnet-file=${file}`, "--iptables-forward-rules=false"];
    await using second = Daemon.start(host, { endpoints, flags });
    await Promise.all([first.ready, second.ready]);
    await second.stop();
    const theirs = await host.namespace.ip("-d link show flannel.1");
    const missing = join(host.directory, "missing.env");
    const unsure = await flanneld(host, ["cleanup"], { subnetFile: missing });
    expect(unsure.stderr).toContain("error CLEANUP_UNSURE");
    const done = await flanneld(host, ["cleanup", "--etcd-prefix=/second"], { subnetFile: file });
    expect(done).toMatchObject({ exitCode: 0, stderr: "" });
    expect(done.stdout).toContain("device flannel.7,");
    expect(await host.namespace.ip("-d link show flannel.1")).toBe(theirs);
    expect(existsSync(host.subnetFile)).toBe(true);
    await first.stop();
    expect(await flanneld(host, ["cleanup"])).toMatchObject({ exitCode: 0 });
    expect(await dumpNetwork(host)).toBe(before);
  });
});

test("bundle: an archive for its owner only, without a secret", async () => {
  const folder = mkdtempSync(join(tmpdir(), "flannel-bundle-"));
  try {
    const secrets = ["hunter2-psk-value", "hunter2-token-value", "hunter2-password"];
    const backend = { Type: "vxlan", PSK: secrets[0], Auth: { token: secrets[1] } };
    await cluster.etcd.ctl("put", "/secret/config", JSON.stringify(networkConfig("dual", backend)));
    const file = join(folder, "bundle.tar.gz");
    const env = { FLANNELD_ETCD_PASSWORD: secrets[2] ?? "" };
    const run = () => flanneld(hosts[0], ["bundle", file, "--etcd-prefix=/secret"], { env });
    const { stdout, exitCode } = await run();
    expect(exitCode).toBe(0);
    expect(stdout).toStartWith(`${file}: `);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    await hosts[0].namespace.exec("tar", "xzf", file, "-C", folder);
    const [top = ""] = readdirSync(folder).filter((name) => name.startsWith("flannel-bundle-"));
    const names = readdirSync(join(folder, top), { recursive: true, encoding: "utf8" });
    for (const name of [
      "status.json",
      "journal.json",
      "config.json",
      "leases.json",
      "check.json",
      "options.json",
    ]) {
      expect(names).toContain(name);
      JSON.parse(readFileSync(join(folder, top, name), "utf8"));
    }
    for (const name of [
      "version.txt",
      "kernel/links.txt",
      "kernel/fdb.txt",
      "firewall/nft.txt",
      "subnet.env",
    ]) {
      expect(names).toContain(name);
    }
    expect(readFileSync(join(folder, top, "kernel/links.txt"), "utf8")).toContain("flannel.1");
    const all = names
      .map((name) => join(folder, top, name))
      .filter((path) => statSync(path).isFile())
      .map((path) => readFileSync(path, "utf8"))
      .join("\n");
    for (const secret of secrets) expect(all).not.toContain(secret);
    expect(all).toContain("[redacted]");
    expect((await run()).stderr).toContain("error BUNDLE_FILE");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
