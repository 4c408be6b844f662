import { describe, expect, test } from "bun:test";
import type { BackendPlugin, DeclarativeBackend, HostFacts } from "flannel/sdk";
import alloc from "../../backends/alloc/index.ts";
import hostGw from "../../backends/host-gw/index.ts";
import { FACTS } from "./facts.ts";

const common = { families: { ipv4: true, ipv6: true }, networks: {}, nodeId: "n1", options: {} };

function configure<Options extends object>(plugin: BackendPlugin<Options>): DeclarativeBackend {
  const backend = plugin.configure({ ...common, options: {} as Options });
  if (backend.mode !== "declarative") throw new Error("not declarative");
  return backend;
}

describe("host-gw", () => {
  const backend = configure(hostGw);

  test("reaches a peer through its own address, as upstream does", () => {
    const peer = {
      key: "10.244.1.0-24&fd00:1::-64",
      backendType: "host-gw",
      ipv4: { subnet: "10.244.1.0/24", publicIP: "192.0.2.2" },
      ipv6: { subnet: "fd00:1::/64", publicIP: "fd00:db8::2" },
    };
    expect(backend.peer(peer, FACTS).objects).toEqual([
      { kind: "route", dst: "10.244.1.0/24", via: "192.0.2.2", dev: "ext0" },
      { kind: "route", dst: "fd00:1::/64", via: "fd00:db8::2", dev: "ext0" },
    ]);
  });

  test("needs no device, address or data of its own, and gives pods the whole MTU", () => {
    expect([backend.links(FACTS), backend.own({ subnets: { ipv4: "10.244.2.0/24" } }, FACTS)]).toEqual([
      [],
      [],
    ]);
    expect(backend.publish(FACTS)).toEqual({ backendType: "host-gw" });
    expect(backend.mtu(FACTS)).toBe(1500);
  });

  test.each<[string, Partial<HostFacts["external"]>, readonly string[]]>([
    ["the interface's own address", {}, []],
    ["no address of a family that is off", { ipv6: undefined, publicIPv6: undefined } as object, []],
    ["another IPv4 address", { publicIP: "203.0.113.5" }, ["--public-ip"]],
    ["another IPv6 address", { publicIPv6: "2001:db8::5" }, ["--public-ipv6"]],
    ["two others", { publicIP: "203.0.113.5", publicIPv6: "2001:db8::5" }, ["--public-ip", "--public-ipv6"]],
  ])("publishing %s", async (_, change, flags) => {
    const facts = { ...FACTS, external: { ...FACTS.external, ...change } };
    const findings = (await hostGw.check?.({ ...common, facts })) ?? [];
    expect(findings.map(({ code, severity }) => `${code} ${severity}`)).toEqual(
      flags.map(() => "HOST_GW_NAT error"),
    );
    for (const [at, flag] of flags.entries()) {
      expect(findings[at]?.text).toStartWith(`${flag} is `);
      expect(findings[at]?.fix).toContain(`Remove ${flag}`);
    }
  });
});

describe("alloc", () => {
  const backend = configure(alloc);

  test("gives out a subnet and nothing else: no type in the lease, no peers watched, no objects", () => {
    expect(backend.ignoresPeers).toBe(true);
    expect(backend.publish(FACTS)).toEqual({ backendType: "" });
    expect(backend.links(FACTS)).toEqual([]);
    expect(backend.own({ subnets: { ipv4: "10.244.2.0/24" } }, FACTS)).toEqual([]);
    expect(backend.mtu(FACTS)).toBe(1500);
    const peer = {
      key: "k",
      backendType: "vxlan",
      ipv4: { subnet: "10.244.1.0/24", publicIP: "192.0.2.2" },
    };
    expect(backend.peer(peer, FACTS)).toEqual({ objects: [] });
  });
});
