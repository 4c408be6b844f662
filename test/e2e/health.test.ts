/**
 * Health that means something: every reason not to be ready is broken on a running daemon, told with its code, and
 * repaired; metrics move; commands tell the same from a terminal.
 *
 *   h1 (flanneld, health server) ── ext0 ─┬─ switch + etcd
 *   h2 (flanneld) ────────────────── ext0 ┘
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, rmdirSync, rmSync, statSync } from "node:fs";
import { AGENT_METRICS } from "../../core/agent/metrics.ts";
import { findValue, type ParsedMetric, parseExposition } from "../core/observe/exposition.ts";
import { Cluster, networkConfig, PREFIX } from "../lab/cluster.ts";
import { type Daemon, executable } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { until } from "../lab/until.ts";
import { askHttp, command, readExplanation, readJournal, readStatus } from "./ask.ts";
import { ownLease, putLeases } from "./leases.ts";

const TIMEOUT = 90_000;
/** A reason has to show within this time, and to go again. */
const DEADLINE = 10_000;
const FLAGS = ["--healthz-port=8081", "--subnet-lease-ttl=10s", "--subnet-lease-renew-margin=5s"];

let cluster: Cluster;
let [h1, h2]: Host[] = [];
let daemon: Daemon;

/** Higher subnets are those of peers that are made up. */
const CONFIG = { ...networkConfig("v4"), SubnetMax: "10.244.190.0" };

beforeAll(async () => {
  cluster = await Cluster.create({ hosts: 2, config: CONFIG });
  [h1, h2] = cluster.hosts;
  daemon = cluster.startDaemon(h1!, { flags: FLAGS });
  await Promise.all([daemon.ready, cluster.startDaemon(h2!).ready]);
}, TIMEOUT);
afterAll(() => cluster[Symbol.asyncDispose]());

const isReady = async (host = h1!) => (await askHttp(host, "/readyz")).status === 200;

async function metrics(host = h1!): Promise<readonly ParsedMetric[]> {
  return parseExposition((await askHttp(host, "/metrics")).body);
}

describe("the health server", () => {
  test("answers upstream's words on upstream's paths, whatever the method", async () => {
    for (const method of ["GET", "POST", "PUT"]) {
      expect(await askHttp(h1!, "/healthz", { method })).toMatchObject({
        status: 200,
        body: "flanneld is running",
      });
    }
    expect(await askHttp(h1!, "/readyz")).toMatchObject({ status: 200, body: "flanneld is ready" });
    expect(await askHttp(h1!, "/livez")).toMatchObject({ status: 200, body: "flanneld is alive" });
    expect(await askHttp(h1!, "/")).toMatchObject({ status: 404 });
    const verbose = await askHttp(h1!, "/readyz?verbose");
    expect(JSON.parse(verbose.body)).toEqual({ ready: true, reasons: [] });
  });

  test(
    "says why it is not ready while it starts",
    async () => {
      const flags = [
        "--etcd-prefix=/later",
        "--healthz-port=8090",
        "--subnet-file",
        `${h2!.directory}/later.env`,
      ];
      await using starting = cluster.startDaemon(h2!, { flags });
      await starting.waitForLog(({ code }) => code === "CONFIG_MISSING");
      const ask = (path: string) => askHttp(h2!, path, { port: 8090 });
      expect(await ask("/healthz")).toMatchObject({ status: 200 });
      expect(await ask("/readyz")).toMatchObject({ status: 503, body: "flanneld is not ready yet" });
      const { body } = await ask("/readyz?verbose");
      expect(JSON.parse(body).reasons.map(({ code }: { code: string }) => code)).toEqual([
        "CONFIG_MISSING",
        "STARTING",
      ]);
      parseExposition((await ask("/metrics")).body);
      expect(await starting.stop()).toMatchObject({ code: 0 });
    },
    TIMEOUT,
  );

  test(
    "a busy port is a finding and no end; it is served as soon as it is free",
    async () => {
      const blocker = h2!.namespace.spawn("socat", "TCP4-LISTEN:8091,reuseaddr,fork", "EXEC:true");
      const listens = () => h2!.namespace.exec("sh", "-ec", "ss -ltn | grep -q ':8091 '");
      await until(async () => (await listens()) === "", { message: "socat does not listen" });
      const file = `${h2!.directory}/busy.env`;
      const flags = ["--healthz-port=8091", "--subnet-file", file, "--etcd-prefix=/busy"];
      await cluster.etcd.ctl("put", "/busy/config", JSON.stringify(networkConfig("v4", { Type: "alloc" })));
      await using busy = cluster.startDaemon(h2!, { flags });
      await busy.ready;
      await busy.waitForLog(({ code }) => code === "HEALTH_PORT_BUSY");
      const status = await h2!.namespace.run([executable(), "status", "--subnet-file", file]);
      expect(status.exitCode).toBe(1);
      expect(status.stdout).toContain("not ready: HEALTH_PORT_BUSY");
      blocker.kill();
      await blocker.exited;
      await until(async () => (await askHttp(h2!, "/readyz", { port: 8091 })).status === 200, {
        message: () => `the port is never served\n${busy.tail()}`,
        deadline: 20_000,
      });
      const { milliseconds, code } = await busy.stop();
      expect(code).toBe(0);
      expect(milliseconds).toBeLessThan(2_000);
    },
    TIMEOUT,
  );
});

describe("a reason not to be ready", () => {
  let ownKey = "";
  beforeAll(async () => {
    ownKey = `${PREFIX}/subnets/${(await ownLease(cluster, h1!))!.key}`;
  });
  const config = (text: string) => cluster.etcd.ctl("put", `${PREFIX}/config`, text);
  const run = (text: string) => h1!.namespace.exec("sh", "-ec", text);

  test.each<[what: string, code: string, breakIt: () => unknown, repairIt: () => unknown]>([
    [
      "the device cannot be made",
      "DATAPLANE_BROKEN",
      () => run("ip link delete flannel.1; ip link add blocker type vxlan id 1 dstport 8472"),
      () => run("ip link delete blocker"),
    ],
    [
      "the subnet file cannot be written",
      "SUBNET_FILE",
      () => {
        rmSync(h1!.subnetFile);
        mkdirSync(h1!.subnetFile);
      },
      () => rmdirSync(h1!.subnetFile),
    ],
    [
      "a bad config is stored",
      "CONFIG_REFUSED",
      () => config('{"Network": "10.244.0.0/33"}'),
      () => config(JSON.stringify(CONFIG)),
    ],
    [
      "the address of the interface is gone",
      "INTERFACE_LOST",
      () => run("ip address delete 192.0.2.1/24 dev ext0"),
      () => run("ip address add 192.0.2.1/24 dev ext0; ip route replace default via 192.0.2.254 dev ext0"),
    ],
    [
      "another node has taken the lease",
      "LEASE_CONFLICT",
      () =>
        cluster.etcd.ctl("put", ownKey, '{"PublicIP":"192.0.2.77","PublicIPv6":null,"BackendType":"vxlan"}'),
      () => cluster.etcd.ctl("del", ownKey),
    ],
    [
      "another node claims part of the subnet",
      "PEER_REJECTED",
      () =>
        putLeases(cluster, [
          {
            key: ownKey.split("/").at(-1)!.replace(/24$/, "25"),
            value: { PublicIP: "192.0.2.78", PublicIPv6: null, BackendType: "host-gw" },
          },
        ]),
      () => cluster.etcd.ctl("del", ownKey.replace(/24$/, "25")),
    ],
    [
      "the kernel refuses a peer's route",
      "DATAPLANE_REFUSED",
      async () => {
        // A gateway that is an address of this very host.
        await run("ip address add 10.244.197.0/32 dev lo");
        const data = { VNI: 1, VtepMAC: "02:00:00:00:00:97" };
        const value = { PublicIP: "192.0.2.97", PublicIPv6: null, BackendType: "vxlan", BackendData: data };
        await putLeases(cluster, [{ key: "10.244.197.0-24", value }]);
      },
      async () => {
        await run("ip address delete 10.244.197.0/32 dev lo");
        await cluster.etcd.ctl("del", `${PREFIX}/subnets/10.244.197.0-24`);
      },
    ],
    [
      "the table of iptables holds what iptables cannot show",
      "TRAFFIC_FAILED",
      () =>
        run(
          "nft add set ip filter s '{ type ipv4_addr; }'; nft add chain ip filter strange; nft add rule ip filter strange ip saddr @s masquerade",
        ),
      () =>
        run(
          "nft flush chain ip filter strange; nft delete chain ip filter strange; nft delete set ip filter s",
        ),
    ],
    [
      "the host's new address cannot be used",
      "HANDOVER_FAILED",
      () =>
        run(
          "ip link delete flannel.1; ip link add blocker type vxlan id 1 dstport 8472; ip address delete 192.0.2.1/24 dev ext0; ip address add 192.0.2.61/24 dev ext0; ip route replace default via 192.0.2.254 dev ext0",
        ),
      async () => {
        await run("ip link delete blocker");
        const uses = (address: string) =>
          until(async () => (await isReady()) && (await readStatus(h1!)).interface?.ipv4 === address, {
            message: () => daemon.tail(),
            deadline: 2 * DEADLINE,
          });
        await uses("192.0.2.61");
        await run(
          "ip address delete 192.0.2.61/24 dev ext0; ip address add 192.0.2.1/24 dev ext0; ip route replace default via 192.0.2.254 dev ext0",
        );
        await uses("192.0.2.1");
      },
    ],
    ["etcd is away", "ETCD_UNREACHABLE", () => cluster.etcd.stop(), () => cluster.etcd.spawn()],
    [
      "etcd is away until the lease has run out",
      "LEASE_RENEWAL",
      () => cluster.etcd.stop(),
      () => cluster.etcd.spawn(),
    ],
  ])(
    "%s: %s, until it is repaired",
    async (_, code, breakIt, repairIt) => {
      await until(isReady, { message: () => daemon.tail(), deadline: DEADLINE });
      await breakIt();
      // A lease that was just renewed takes its whole time to run out.
      const deadline = code === "LEASE_RENEWAL" ? 2 * DEADLINE : DEADLINE;
      const answer = await until(
        async () => {
          const given = await askHttp(h1!, "/readyz");
          return given.status === 503 && given.body.includes(`"${code}"`) ? given : undefined;
        },
        { message: () => `never unready for ${code}\n${daemon.tail()}`, deadline },
      );
      expect(answer.type).toBe("application/json");
      const { ready, reasons } = JSON.parse(answer.body);
      expect(ready).toBe(false);
      for (const reason of reasons) {
        for (const part of ["code", "title", "text", "fix"]) expect(reason[part]).not.toBe("");
      }
      // The process lives: a restart would mend none of this.
      expect((await askHttp(h1!, "/livez")).status).toBe(200);
      const status = await command(h1!, "status");
      expect(status.exitCode).toBe(1);
      expect(status.stdout).toMatch(new RegExp(`^STATE +not ready: .*${code}`));
      expect(findValue(await metrics(), "flannel_ready")).toBe(0);
      expect(findValue(await metrics(), "flannel_findings", { code, severity: "error" })).toBeGreaterThan(0);
      await repairIt();
      await until(isReady, { message: () => `never ready again\n${daemon.tail()}`, deadline: 2 * DEADLINE });
      expect((await command(h1!, "status")).exitCode).toBe(0);
      expect(daemon.running).toBe(true);
    },
    TIMEOUT,
  );
});

test(
  "metrics move with what happens",
  async () => {
    await until(isReady, { message: () => daemon.tail(), deadline: DEADLINE });
    const before = await metrics();
    const get = (name: string, labels = {}) => findValue(before, name, labels) ?? 0;
    for (const { name, samples } of before) {
      const declared = AGENT_METRICS.find((metric) => metric.name === name)?.labels ?? [];
      for (const { labels } of samples) {
        const { le: _, ...own } = labels;
        expect([name, ...Object.keys(own).sort()]).toEqual([name, ...declared.toSorted()]);
      }
    }
    expect(get("flannel_ready")).toBe(1);
    expect(get("flannel_lease_seconds_left")).toBeGreaterThan(0);
    expect(get("flannel_lease_seconds_left")).toBeLessThanOrEqual(10);
    expect(get("flannel_lease_state", { state: "held" })).toBe(1);
    expect(get("flannel_peers_wanted")).toBe(1);
    expect(get("flannel_peers_programmed")).toBe(1);
    // What was broken on purpose above has left its traces.
    for (const name of ["flannel_store_reconnects_total", "flannel_failed_looks_total"])
      expect(get(name)).toBeGreaterThan(0);
    expect(get("flannel_store_failures_total", { kind: "unreachable" })).toBeGreaterThan(0);
    expect(get("flannel_repairs_total", { object: "link" })).toBeGreaterThan(0);

    const data = { VNI: 1, VtepMAC: "02:00:00:00:00:99" };
    await putLeases(cluster, [
      {
        key: "10.244.199.0-24",
        value: { PublicIP: "192.0.2.99", PublicIPv6: null, BackendType: "vxlan", BackendData: data },
      },
      { key: "10.244.198.0-24", value: { PublicIP: "192.0.2.98", PublicIPv6: null, BackendType: "host-gw" } },
    ]);
    const route = (await h1!.namespace.exec("ip", "route", "show", "dev", "flannel.1")).split(" ")[0]!;
    await h1!.namespace.exec("ip", "route", "delete", route);
    await h1!.namespace.exec("iptables", "-F", "FLANNEL-FWD");
    const moved = [
      ["flannel_repairs_total", { object: "route" }],
      ["flannel_rule_repairs_total", { rules: "iptables" }],
      ["flannel_lease_renewals_total", {}],
      ["flannel_store_watch_events_total", {}],
      ["flannel_store_requests_total", { call: "leaseKeepAlive" }],
      ["flannel_store_request_seconds_count", { call: "leaseKeepAlive" }],
      ["process_cpu_seconds_total", {}],
    ] as const;
    const after = await until(
      async () => {
        const now = await metrics();
        return moved.every(([name, labels]) => (findValue(now, name, labels) ?? 0) > get(name, labels))
          ? now
          : undefined;
      },
      {
        message: async () => {
          const now = await metrics();
          return moved
            .map(([name, labels]) => `${name} ${get(name, labels)} → ${findValue(now, name, labels)}`)
            .join("\n");
        },
        deadline: 20_000,
      },
    );
    expect(findValue(after, "flannel_peers_wanted")).toBe(3);
    expect(findValue(after, "flannel_peers_programmed")).toBe(2);
    expect(findValue(after, "flannel_peers_failing", { reason: "unusable" })).toBe(1);
  },
  TIMEOUT,
);

describe("commands", () => {
  test("status tells the whole node, as JSON and as text", async () => {
    const report = await readStatus(h1!);
    const lease = (await ownLease(cluster, h1!))!;
    expect(report).toMatchObject({
      ready: true,
      reasons: [],
      phase: "serving",
      interface: { name: "ext0", mtu: 1500, ipv4: "192.0.2.1", publicIP: "192.0.2.1" },
      config: { source: `etcd key ${PREFIX}/config` },
      backend: { type: "vxlan", plugin: "vxlan" },
      lease: { key: lease.key, state: "held" },
      subnetFile: h1!.subnetFile,
    });
    expect(report.node?.id).toBe(String(lease.value?.nodeId ?? report.node?.id));
    expect(report.lease?.secondsLeft).toBeGreaterThan(0);
    expect(report.loops.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        "lease",
        "peers",
        "data path",
        "subnet file",
        "host",
        "config",
        "status socket",
      ]),
    );
    const { stdout, stderr, exitCode } = await command(h1!, "status");
    expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
    for (const text of ["STATE      ready", lease.key, "vxlan", "ext0 192.0.2.1", report.node!.id])
      expect(stdout).toContain(text);
  });

  test(
    "explain tells whose an address is, how it is reached, and what led to it",
    async () => {
      const other = (await ownLease(cluster, h2!))!;
      const inOther = other.key.replace("0-24", "9");
      const peer = await readExplanation(h1!, inOther);
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
      const { stdout } = await command(h1!, "explain", inOther);
      expect(stdout).toContain("ip route replace");

      // Somebody else's more specific route is told.
      await h1!.namespace.ip(`route add ${inOther}/32 via 192.0.2.254 dev ext0`);
      const stolen = await readExplanation(h1!, inOther);
      expect(stolen).toMatchObject({ exitCode: 1, ok: false, route: { dev: "ext0" } });
      expect(stolen.problems[0]).toContain("takes ext0 instead of flannel.1");
      await h1!.namespace.ip(`route delete ${inOther}/32`);

      const unusable = await readExplanation(h1!, "10.244.198.7");
      expect(unusable).toMatchObject({ exitCode: 1, scope: "peer", ok: false });
      expect(unusable.problems.join()).toContain("host-gw");
      const own = (await ownLease(cluster, h1!))!.key.replace("0-24", "9");
      expect(await readExplanation(h1!, own)).toMatchObject({ exitCode: 1, scope: "own" });
      expect(await readExplanation(h1!, "10.244.0.1")).toMatchObject({ exitCode: 1, scope: "unassigned" });
      expect(await readExplanation(h1!, "198.51.100.1")).toMatchObject({ exitCode: 1, scope: "outside" });
      expect(await readExplanation(h1!, "::1")).toMatchObject({ exitCode: 1, scope: "outside" });
    },
    TIMEOUT,
  );

  test("journal tells what happened, in order", async () => {
    const entries = await readJournal(h1!);
    const kinds = new Set(entries.map(({ kind }) => kind));
    for (const kind of ["daemon", "lease", "peer", "repair", "finding"] as const)
      expect(kinds).toContain(kind);
    const texts = entries.map(({ text }) => text);
    expect(texts[0]).toMatch(/^flanneld \S+ started, pid \d+$/);
    expect(texts.some((text) => text.startsWith("added 10.244.199.0-24: 192.0.2.99"))).toBe(true);
    expect(texts.some((text) => /^error LEASE_CONFLICT /.test(text))).toBe(true);
    expect(texts.some((text) => /^error LEASE_CONFLICT over: /.test(text))).toBe(true);
    expect(texts.some((text) => /^repaired in the kernel: .*1 route/.test(text))).toBe(true);
    const { stdout, exitCode } = await command(h1!, "journal");
    expect(exitCode).toBe(0);
    expect(stdout.trimEnd().split("\n")).toHaveLength((await readJournal(h1!)).length);
  });

  test("who is not root is told so, and that nothing runs is exit code 2", async () => {
    const asNobody = (...words: string[]) =>
      h1!.namespace.run(["setpriv", "--reuid=65534", "--clear-groups", executable(), ...words]);
    for (const words of [["status"], ["journal"], ["explain", "10.244.0.1"]]) {
      const refused = await asNobody(...words);
      expect(refused).toMatchObject({ exitCode: 2, stdout: "" });
      expect(refused.stderr).toContain("error PRIVILEGE_MISSING");
      expect(refused.stderr).toContain("uid 65534");
      const nothing = await h1!.namespace.run([
        executable(),
        ...words,
        "--subnet-file=/nonexistent/subnet.env",
      ]);
      expect(nothing).toMatchObject({ exitCode: 2, stdout: "" });
      expect(nothing.stderr).toContain("error DAEMON_NOT_RUNNING");
    }
    const bad = await command(h1!, "explain", "10.244.0.300");
    expect(bad.exitCode).toBe(2);
    expect(bad.stderr).toContain("error FLAG_INVALID");
  });

  test(
    "the socket is root's alone and goes with the daemon; a killed one leaves it, and the next replaces it",
    async () => {
      const socket = `${h2!.subnetFile}.sock`;
      const former = cluster.daemons.find(({ host, running }) => host === h2 && running)!;
      expect(statSync(socket).mode & 0o7777).toBe(0o600);
      await former.kill();
      expect(existsSync(socket)).toBe(true);
      expect((await command(h2!, "status")).stderr).toContain("DAEMON_NOT_RUNNING");
      await using next = cluster.startDaemon(h2!);
      await next.ready;
      expect((await command(h2!, "status")).exitCode).toBe(0);
      await next.stop();
      expect(existsSync(socket)).toBe(false);
    },
    TIMEOUT,
  );
});
