/**
 * What a running daemon can be asked: `flanneld status`, `explain`, `journal`, `bundle`, and who may.
 *
 *   h1, h2 (vxlan, dual stack, running) ── switch + etcd
 */

import { describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StatusReport } from "../../../core/agent/status.ts";
import { networkConfig, PREFIX } from "../../lab/cluster.ts";
import { Daemon } from "../../lab/daemon.ts";
import { endpointFor } from "../../lab/switch-etcd.ts";
import { until } from "../../lab/until.ts";
import { command, readExplanation, readJournal, readStatus } from "../ask.ts";
import { ownLease, putLeases } from "../leases.ts";
import { CommandCluster } from "./cluster.ts";

const lab = new CommandCluster({ hosts: 2, running: 2 });
const h1 = () => lab.host(1);
const h2 = () => lab.host(2);
/** An IPv4 address in the subnets of a key. */
const addressIn = (key: string) => key.replace(/0-24&.*/, "9");
const NOBODY = { uid: 65_534 };

test("status tells the whole node, as JSON and as text", async () => {
  const report = await readStatus(h1());
  const lease = (await ownLease(lab.cluster, h1()))!;
  expect(report).toMatchObject({
    ready: true,
    reasons: [],
    phase: "serving",
    interface: { name: "ext0", mtu: 1500, ipv4: "192.0.2.1", publicIP: "192.0.2.1" },
    config: { source: `etcd key ${PREFIX}/config` },
    backend: { type: "vxlan", plugin: "vxlan" },
    lease: { key: lease.key, state: "held" },
    subnetFile: h1().subnetFile,
  });
  expect(report.node?.id).toBe(String(lease.value?.nodeId ?? report.node?.id));
  expect(report.lease?.secondsLeft).toBeGreaterThan(0);
  expect(report.loops.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["lease", "peers", "data path", "subnet file", "host", "config", "status socket"]),
  );
  const { stdout, stderr, exitCode } = await command(h1(), "status");
  expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
  for (const text of ["STATE      ready", lease.key, "vxlan", "ext0 192.0.2.1", report.node!.id])
    expect(stdout).toContain(text);
});

test("explain tells whose an address is, how it is reached, and what led to it", async () => {
  const other = (await ownLease(lab.cluster, h2()))!;
  const inOther = addressIn(other.key);
  const peer = await readExplanation(h1(), inOther);
  expect(peer).toMatchObject({
    exitCode: 0,
    ok: true,
    scope: "peer",
    lease: { key: other.key },
    node: { publicIP: "192.0.2.2" },
    backend: { type: "vxlan", data: { VNI: 1 } },
    route: { dev: "flannel.1", mtu: 1450, up: true },
    problems: [],
  });
  expect(peer.journal.at(0)?.text).toContain(other.key);
  const { stdout } = await command(h1(), "explain", inOther);
  expect(stdout).toContain("ip route replace");

  // Somebody else's more specific route is told.
  await h1().namespace.ip(`route add ${inOther}/32 via 192.0.2.254 dev ext0`);
  const stolen = await readExplanation(h1(), inOther);
  expect(stolen).toMatchObject({ exitCode: 1, ok: false, route: { dev: "ext0" } });
  expect(stolen.problems[0]).toContain("takes ext0 instead of flannel.1");
  await h1().namespace.ip(`route delete ${inOther}/32`);

  await putLeases(lab.cluster, [
    { key: "10.244.198.0-24", value: { PublicIP: "192.0.2.98", PublicIPv6: null, BackendType: "host-gw" } },
  ]);
  const unusable = await until(
    async () => {
      const explained = await readExplanation(h1(), "10.244.198.7");
      return explained.scope === "peer" && explained;
    },
    { message: "the lease is not seen" },
  );
  expect(unusable).toMatchObject({ exitCode: 1, scope: "peer", ok: false });
  expect(unusable.problems.join()).toContain("host-gw");
  const own = addressIn((await ownLease(lab.cluster, h1()))!.key);
  expect(await readExplanation(h1(), own)).toMatchObject({ exitCode: 1, scope: "own" });
  expect(await readExplanation(h1(), "10.244.0.1")).toMatchObject({ exitCode: 1, scope: "unassigned" });
  expect(await readExplanation(h1(), "198.51.100.1")).toMatchObject({ exitCode: 1, scope: "outside" });
  expect(await readExplanation(h1(), "::1")).toMatchObject({ exitCode: 1, scope: "outside" });
  await lab.cluster.etcd.ctl("del", `${PREFIX}/subnets/10.244.198.0-24`);
});

test("journal tells what happened, in order", async () => {
  const own = (await ownLease(lab.cluster, h1()))!.key;
  const other = { PublicIP: "192.0.2.77", PublicIPv6: null, BackendType: "vxlan" };
  const data = { VNI: 1, VtepMAC: "02:00:00:00:00:99" };
  await putLeases(lab.cluster, [
    { key: "10.244.199.0-24", value: { ...other, PublicIP: "192.0.2.99", BackendData: data } },
    { key: own, value: other },
  ]);
  const route = (await h1().namespace.exec("ip", "route", "show", "dev", "flannel.1")).split(" ")[0]!;
  await h1().namespace.ip(`route delete ${route}`);
  const texts = async () => (await readJournal(h1())).map(({ text }) => text);
  const has = (pattern: RegExp) =>
    until(async () => (await texts()).some((text) => pattern.test(text)), {
      message: async () => `${pattern}\n${(await texts()).join("\n")}`,
    });
  await has(/^error LEASE_CONFLICT /);
  await lab.cluster.etcd.ctl("del", `${PREFIX}/subnets/${own}`);
  await has(/^error LEASE_CONFLICT over: /);
  await has(/^repaired in the kernel: .*1 route/);
  const entries = await readJournal(h1());
  const kinds = new Set(entries.map(({ kind }) => kind));
  for (const kind of ["daemon", "lease", "peer", "repair", "finding"] as const) expect(kinds).toContain(kind);
  expect(entries[0]?.text).toMatch(/^flanneld \S+ started, pid \d+$/);
  expect(entries.some(({ text }) => text.startsWith("added 10.244.199.0-24: 192.0.2.99"))).toBe(true);
  await lab.cluster.etcd.ctl("del", `${PREFIX}/subnets/10.244.199.0-24`);
  const { stdout, exitCode } = await command(h1(), "journal");
  expect(exitCode).toBe(0);
  expect(stdout.trimEnd().split("\n").length).toBeGreaterThanOrEqual(entries.length);
});

test("a second daemon for the same subnet file is refused by the pid of the first, which goes on", async () => {
  await using second = Daemon.start(lab.host(1), { endpoints: endpointFor(lab.host(1), lab.cluster.switch) });
  const line = await second.waitForLog(({ code }) => code === "ALREADY_RUNNING");
  expect(await second.ended()).toMatchObject({ code: 1 });
  const { json } = await lab.ask<StatusReport>(lab.host(1), ["status"]);
  expect(json.ready).toBe(true);
  expect(line.msg).toContain(`pid ${json.pid} `);
});

test("bundle: an archive for its owner only, without a secret", async () => {
  const folder = mkdtempSync(join(tmpdir(), "flannel-bundle-"));
  try {
    const secrets = ["hunter2-psk-value", "hunter2-token-value", "hunter2-password"];
    const backend = { Type: "vxlan", PSK: secrets[0], Auth: { token: secrets[1] } };
    await lab.cluster.etcd.ctl("put", "/secret/config", JSON.stringify(networkConfig("dual", backend)));
    const file = join(folder, "bundle.tar.gz");
    const env = { FLANNELD_ETCD_PASSWORD: secrets[2] ?? "" };
    const run = () => lab.run(h1(), ["bundle", file, "--etcd-prefix=/secret"], { env });
    const { stdout, exitCode } = await run();
    expect(exitCode).toBe(0);
    expect(stdout).toStartWith(`${file}: `);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    await h1().namespace.exec("tar", "xzf", file, "-C", folder);
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

describe("without root", () => {
  test.each(["status", "explain 10.244.1.1", "journal", "probe", "cleanup", "bundle"])(
    "%s says so, and does nothing",
    async (line) => {
      const args = line.split(" ");
      const { stdout, stderr, exitCode } = await lab.run(h1(), args, NOBODY);
      expect({ stdout, exitCode }).toEqual({ stdout: "", exitCode: 2 });
      expect(stderr).toContain("error PRIVILEGE_MISSING");
      expect(stderr).toContain("uid 65534");
    },
  );

  test("the daemon says so", async () => {
    const { stderr, exitCode } = await lab.run(h2(), ["run"], NOBODY);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("PRIVILEGE_MISSING");
  });

  test("leases and check go on, and say so", async () => {
    const leases = await lab.run(h1(), ["leases", "ls"], NOBODY);
    expect(leases.exitCode).toBe(0);
    expect(leases.stderr).toContain("warning NOT_ROOT: this is uid 65534");
    const check = await lab.run(h2(), ["check"], NOBODY);
    expect(check.exitCode).toBe(1);
    expect(check.stdout).toContain("error PRIVILEGE_MISSING");
  });
});

test("that nothing runs is told; a bad address is a mistake", async () => {
  for (const words of [["status"], ["journal"], ["explain", "10.244.0.1"]]) {
    const asked = [...words, "--subnet-file=/nonexistent/subnet.env"];
    const nothing = await lab.run(h1(), asked);
    expect(nothing).toMatchObject({ exitCode: 2, stdout: "" });
    expect(nothing.stderr).toContain("error DAEMON_NOT_RUNNING");
  }
  const bad = await command(h1(), "explain", "10.244.0.300");
  expect(bad.exitCode).toBe(2);
  expect(bad.stderr).toContain("error FLAG_INVALID");
});

test("the socket is root's alone and goes with the daemon; a killed one leaves it, and the next replaces it", async () => {
  const socket = `${h2().subnetFile}.sock`;
  const former = lab.cluster.daemons.find(({ host, running }) => host === h2() && running)!;
  expect(statSync(socket).mode & 0o7777).toBe(0o600);
  await former.kill();
  expect(existsSync(socket)).toBe(true);
  expect((await command(h2(), "status")).stderr).toContain("DAEMON_NOT_RUNNING");
  await using next = lab.cluster.startDaemon(h2());
  await next.ready;
  expect((await command(h2(), "status")).exitCode).toBe(0);
  await next.stop();
  expect(existsSync(socket)).toBe(false);
});
