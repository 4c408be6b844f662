import { describe, expect, test } from "bun:test";
import type { DeclarativeBackend, HostFacts, Peer } from "flannel/sdk";
import ipip from "../../backends/ipip/index.ts";
import { FACTS } from "./facts.ts";

const common = { families: { ipv4: true, ipv6: false }, networks: {}, nodeId: "n1" };

/** The options as the daemon reads them, and the backend of these. */
async function ipipWith(raw: Readonly<Record<string, unknown>> = {}): Promise<DeclarativeBackend> {
  const result = await ipip.options["~standard"].validate(raw);
  if (result.issues) throw new Error(result.issues.map(({ message }) => message).join("; "));
  const backend = ipip.configure({ ...common, options: result.value });
  if (backend.mode !== "declarative") throw new Error("not declarative");
  return backend;
}

const peer = (publicIP: string, backendType = "ipip"): Peer => ({
  key: "10.244.2.0-24",
  backendType,
  ipv4: { subnet: "10.244.2.0/24", publicIP },
});
const withMtu = (mtu: number): HostFacts => ({ ...FACTS, external: { ...FACTS.external, mtu } });

test("one device without a far end, with the interface's own address, as upstream makes it", async () => {
  const backend = await ipipWith();
  const behindNat = { ...FACTS, external: { ...FACTS.external, publicIP: "203.0.113.5" } };
  expect(backend.links(behindNat)).toEqual([
    {
      name: "flannel.ipip",
      type: "ipip",
      mtu: 1480,
      ipip: { local: "192.0.2.1", ttl: 0, pmtudisc: false },
    },
  ]);
  expect(backend.publish(FACTS)).toEqual({ backendType: "ipip" });
  expect(backend.own({ subnets: { ipv4: "10.244.1.0/24" } }, FACTS)).toEqual([
    { kind: "address", dev: "flannel.ipip", address: "10.244.1.0/32" },
  ]);
  expect(backend.own({ subnets: {} }, FACTS)).toEqual([]);
});

test("a peer is the gateway to its own subnet, through the tunnel; another backend's peer is none", async () => {
  const backend = await ipipWith();
  const tunnel = { kind: "route", dst: "10.244.2.0/24", dev: "flannel.ipip", onlink: true };
  for (const address of ["192.0.2.2", "198.51.100.2"]) {
    expect(backend.peer(peer(address), FACTS)).toEqual({ objects: [{ ...tunnel, via: address } as never] });
  }
  expect(backend.peer({ key: "k", backendType: "ipip" }, FACTS)).toEqual({ objects: [] });
  expect(backend.peer(peer("192.0.2.2", "vxlan"), FACTS)).toEqual({
    objects: [],
    problems: ['uses backend "vxlan", this node uses "ipip"'],
  });
});

test("DirectRouting: a plain route to a peer on the own link, the tunnel to others", async () => {
  const backend = await ipipWith({ DirectRouting: true });
  expect(backend.usesRoutes).toBe(true);
  expect(backend.peer(peer("192.0.2.2"), FACTS).objects).toEqual([
    { kind: "route", dst: "10.244.2.0/24", via: "192.0.2.2", dev: "ext0" },
  ]);
  expect(backend.peer(peer("198.51.100.2"), FACTS).objects).toEqual([
    { kind: "route", dst: "10.244.2.0/24", via: "198.51.100.2", dev: "flannel.ipip", onlink: true },
  ]);
});

test("pods get the MTU of the device, which an operator may have lowered", async () => {
  const backend = await ipipWith();
  expect(backend.mtu(FACTS)).toBe(1480);
  const device = { name: "flannel.ipip", index: 9, type: "ipip", up: true, running: true, loopback: false };
  expect(backend.mtu({ ...FACTS, links: { "flannel.ipip": { ...device, mtu: 1400 } } })).toBe(1400);
  expect(backend.mtu({ ...FACTS, links: { "flannel.ipip": { ...device, mtu: 9000 } } })).toBe(1480);
});

test("only with MembersOnly protocol 4 is for members", async () => {
  expect((await ipipWith()).membersOnly).toBeUndefined();
  expect((await ipipWith({ MembersOnly: true })).membersOnly).toEqual([{ protocol: "ipip" }]);
});

describe("bad input", () => {
  test.each([
    [20, 0],
    [87, 67],
  ])("an interface with MTU %i is refused", async (mtu, left) => {
    const options = { DirectRouting: false, MembersOnly: false };
    const findings = (await ipip.check?.({ ...common, options, facts: withMtu(mtu) })) ?? [];
    expect(findings.map(({ code, severity }) => [code, severity])).toEqual([["IPIP_MTU", "error"]]);
    expect(findings[0]?.text).toBe(
      `ext0 has MTU ${mtu}; ${left} would be left inside of the tunnel, and IPv4 needs 68`,
    );
    expect(await ipip.check?.({ ...common, options, facts: withMtu(88) })).toEqual([]);
  });

  test.each([
    [{ DirectRouting: "yes" }, "DirectRouting must be true or false"],
    [{ MembersOnly: 1 }, "MembersOnly must be true or false"],
  ])("%p is told apart", async (raw, message) => {
    const refused = await ipipWith(raw).then(
      () => "accepted",
      (error: Error) => error.message,
    );
    expect(refused).toBe(message);
  });

  test("null is the default, as upstream reads it", async () => {
    const backend = await ipipWith({ DirectRouting: null, MembersOnly: null });
    expect([backend.usesRoutes, backend.membersOnly]).toEqual([false, undefined]);
  });
});
