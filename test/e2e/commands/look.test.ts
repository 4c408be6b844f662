/**
 * `flanneld check` and `flanneld probe`: what is in the way before a start, and between hosts that run.
 *
 *   h1, h2 (vxlan, dual stack, running) ── switch + etcd ── h3 (bare)
 */
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { networkConfig } from "../../lab/cluster.ts";
import type { Host } from "../../lab/host.ts";
import { Switch } from "../../lab/switch.ts";
import { until } from "../../lab/until.ts";
import { dumpNetwork } from "../command.ts";
import { CommandCluster, codesOf } from "./cluster.ts";

type Findings = readonly { readonly code: string; readonly severity: string; readonly text: string }[];

interface Checked {
  readonly ok: boolean;
  readonly checks: readonly { readonly findings: Findings }[];
}

interface Probed {
  readonly mtu: number;
  readonly peers: readonly {
    readonly subnet: string;
    readonly address: string;
    readonly mtu: number;
    readonly rttMs: number;
    readonly findings: Findings;
  }[];
}

interface Explained {
  readonly probe: { readonly rttMs: number; readonly at: string };
}

const lab = new CommandCluster({ hosts: 3, running: 2 });

describe("check", () => {
  const findings = async (host: Host, ...args: string[]) => {
    const { code, json } = await lab.ask<Checked>(host, ["check", ...args]);
    expect(code).toBe(json.ok ? 0 : 1);
    return json.checks.flatMap((item) => item.findings);
  };
  const errors = async (host: Host, ...args: string[]) =>
    codesOf((await findings(host, ...args)).filter(({ severity }) => severity === "error"));

  test("a bare host is in order, and is as before", async () => {
    const before = await dumpNetwork(lab.host(3));
    const files = readdirSync(lab.host(3).directory);
    expect(await errors(lab.host(3))).toEqual([]);
    expect(await dumpNetwork(lab.host(3))).toBe(before);
    expect(readdirSync(lab.host(3).directory)).toEqual(files);
  });

  test("a running one too", async () => {
    expect(await errors(lab.host(1))).toEqual([]);
  });

  test("what is in the way is found", async () => {
    const { namespace } = lab.host(3);
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
          const all = await findings(lab.host(3));
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
    expect(await errors(lab.host(3), "--etcd-endpoints=http://127.0.0.1:1")).toEqual(["ETCD_UNREACHABLE"]);
    expect(await errors(lab.host(3), "--etcd-prefix=/elsewhere")).toEqual(["CONFIG_MISSING"]);
    await lab.cluster.etcd.ctl("put", "/bad/config", '{"Network": "10.0.0.0/32"}');
    expect(await errors(lab.host(3), "--etcd-prefix=/bad")).toEqual(["CONFIG_INVALID"]);
  });
});

describe("probe", () => {
  const probe = async (...args: string[]) => lab.ask<Probed>(lab.host(1), ["probe", ...args]);
  const inside = (host: Host, text: string) => host.namespace.exec("sh", "-ec", text);

  /** What `explain` says of the last probe. */
  const explainProbe = async (address: string) => {
    const { json } = await lab.ask<Explained>(lab.host(1), ["explain", address]);
    return json.probe;
  };

  test("both families of a peer are in order", async () => {
    const before = (await probe()).json.peers[0]!.address;
    expect((await lab.run(lab.host(1), ["explain", before])).stdout).toMatch(
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
    const unknown = await lab.run(lab.host(1), ["probe", "192.0.2.250"]);
    expect(unknown.exitCode).toBe(2);
    expect(unknown.stderr).toContain("error PEER_UNKNOWN");
  });

  test("TCP that vanishes is told apart from ping", async () => {
    const drop = "nft add table inet t; nft add chain inet t i '{ type filter hook input priority 0; }'";
    await inside(lab.host(2), `${drop}; nft add rule inet t i iifname flannel.1 meta l4proto tcp drop`);
    try {
      const { code, json } = await probe(lab.host(2).ipv4);
      expect(code).toBe(1);
      const [v4, v6] = json.peers;
      expect(v4).toMatchObject({ received: 5, tcp: "timeout", findings: [{ code: "PROBE_TCP_CHECKSUM" }] });
      expect(v4!.findings[0]!.text).toContain("checksum offload of flannel.1 is on");
      expect(v6).toMatchObject({ tcp: "refused", findings: [] });
    } finally {
      await inside(lab.host(2), "nft delete table inet t");
    }
  });

  test("a link that carries less than it should", async () => {
    const port = Switch.port(lab.host(2).number);
    await lab.cluster.switch.namespace.ip(`link set ${port} mtu 1400`);
    try {
      const { code, json } = await probe();
      expect(code).toBe(1);
      // 50 and 70 bytes of encapsulation; a veth takes 4 bytes more than its MTU, room for a VLAN tag.
      expect(json.peers.map(({ mtu }) => mtu)).toEqual([1354, 1334]);
      expect(json.peers.flatMap((peer) => codesOf(peer.findings))).toEqual(["PROBE_MTU", "PROBE_MTU"]);
    } finally {
      await lab.cluster.switch.namespace.ip(`link set ${port} mtu 1500`);
    }
  });

  test("a peer that is gone", async () => {
    await lab.host(2).isolate();
    try {
      const { code, json } = await probe();
      expect(code).toBe(1);
      for (const peer of json.peers) expect(codesOf(peer.findings)).toEqual(["PROBE_UNREACHABLE"]);
      const { subnet } = json.peers[0]!;
      expect(await explainProbe(subnet.split("/")[0]!)).toMatchObject({
        received: 0,
        verdict: "PROBE_UNREACHABLE",
      });
    } finally {
      await lab.host(2).rejoin();
    }
  });

  test("a host that never joined", async () => {
    const { exitCode, stderr } = await lab.run(lab.host(3), ["probe"]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("error NOT_JOINED");
  });
});

test("ChecksumOffload is followed while the daemon runs", async () => {
  const state = async (device: string) =>
    /tx-checksum-ip-generic: (\w+)/.exec(await lab.host(1).namespace.exec("ethtool", "-k", device))?.[1];
  const original = networkConfig("dual");
  for (const wanted of ["off", "on"]) {
    await lab.cluster.configure({ ...original, Backend: { Type: "vxlan", ChecksumOffload: wanted } });
    for (const device of ["flannel.1", "flannel-v6.1"]) {
      await until(async () => (await state(device)) === wanted, { message: `${device} is not ${wanted}` });
    }
  }
  await lab.cluster.configure(original);
});
