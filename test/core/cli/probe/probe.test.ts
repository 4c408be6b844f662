import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Instruments, measure, sweepMtu } from "../../../../core/cli/probe/measure.ts";
import { isMeant, planTargets } from "../../../../core/cli/probe/targets.ts";
import type { PingOptions } from "../../../../core/host/ping.ts";
import type { TcpOutcome } from "../../../../core/host/tcp.ts";
import type { Lease } from "../../../../core/lease/lease.ts";

const PEER: Lease = {
  key: "10.5.2.0-24&fd00:5:2::-64",
  subnets: { ipv4: "10.5.2.0/24", ipv6: "fd00:5:2::/64" },
  attrs: { backendType: "vxlan", publicIP: "192.0.2.2", publicIPv6: "2001:db8::2", nodeId: "n-2" },
};
const OWN = { ipv4: "10.5.1.0/24", ipv6: "fd00:5:1::/64" };

describe("targets", () => {
  test("a tunnel's end has the base address of its subnet, one per family that we have too", () => {
    expect(planTargets([PEER], OWN)).toMatchObject([
      { family: 4, addresses: [{ address: "10.5.2.0", role: "vtep" }] },
      { family: 6, addresses: [{ address: "fd00:5:2::", role: "vtep" }] },
    ]);
    expect(planTargets([PEER], { ipv4: "10.5.1.0/24" })).toHaveLength(1);
  });

  test("elsewhere the gateway of the containers is tried, then the host", () => {
    const peer = { ...PEER, attrs: { ...PEER.attrs, backendType: "host-gw" } };
    expect(planTargets([peer], { ipv4: "10.5.1.0/24" })[0]?.addresses).toEqual([
      { address: "10.5.2.1", role: "gateway" },
      { address: "192.0.2.2", role: "host" },
    ]);
  });

  test.each([
    "10.5.2.0-24&fd00:5:2::-64",
    "10.5.2.7",
    "10.5.2.9/24",
    "fd00:5:2::77",
    "192.0.2.2",
    "2001:db8::2",
    "n-2",
  ])("%s means this peer", (text) => {
    expect(isMeant(PEER, text)).toBe(true);
  });

  test.each(["", "10.5.3.1", "10.5.2.0/25", "192.0.2.3", "n-3", "x"])("%p does not", (text) => {
    expect(isMeant(PEER, text)).toBe(false);
  });
});

test("the sweep finds the largest size that passes", async () => {
  const sizes = fc.record({
    most: fc.integer({ min: 600, max: 9_000 }),
    real: fc.integer({ min: 0, max: 9_500 }),
  });
  await fc.assert(
    fc.asyncProperty(sizes, async ({ most, real }) => {
      let tries = 0;
      const found = await sweepMtu(most, 576, async (size) => {
        tries += 1;
        return size <= real;
      });
      expect(found).toBe(real >= most ? most : real >= 576 ? real : 0);
      expect(tries).toBeLessThan(17);
    }),
  );
});

/** A network that carries packets up to `mtu`, and treats TCP as told. */
function network(mtu: number, tcp: TcpOutcome, lost = 0): Instruments {
  return {
    ping: async (address, { count, payload = 56 }: PingOptions) => {
      const passes = address === "10.5.2.0" && payload + 28 <= mtu;
      const received = passes ? count - (count > 2 ? lost : 0) : 0;
      return { sent: count, received, times: [3, 1, 2].slice(0, received) };
    },
    tcp: async () => tcp,
    offload: async () => ({ dev: "flannel.1", on: true }),
  };
}

describe("a peer", () => {
  const [target] = planTargets([PEER], { ipv4: "10.5.1.0/24" });
  const probe = (instruments: Instruments) => measure(target!, 1450, instruments);

  test("in order", async () => {
    expect(await probe(network(1450, { outcome: "refused" }))).toMatchObject({
      address: { address: "10.5.2.0" },
      sent: 5,
      received: 5,
      rtt: 2,
      mtu: 1450,
      tcp: "refused",
      findings: [],
    });
  });

  test("that does not answer", async () => {
    const { findings, ...rest } = await probe(network(0, { outcome: "timeout" }));
    expect(findings).toMatchObject([{ code: "PROBE_UNREACHABLE", severity: "error" }]);
    expect(rest).not.toHaveProperty("tcp");
  });

  test("behind a link that is too small", async () => {
    const { mtu, findings } = await probe(network(1402, { outcome: "accepted" }));
    expect(mtu).toBe(1402);
    expect(findings).toMatchObject([{ code: "PROBE_MTU", severity: "error" }]);
    expect(findings[0]?.fix).toContain("48");
  });

  test("that answers ping and not TCP", async () => {
    const { findings } = await probe(network(1450, { outcome: "timeout" }));
    expect(findings).toMatchObject([{ code: "PROBE_TCP_CHECKSUM", severity: "error" }]);
    expect(findings[0]?.text).toContain("checksum offload of flannel.1 is on");
  });

  test("whose firewall rejects TCP", async () => {
    const { findings } = await probe(network(1450, { outcome: "unreachable", reason: "EHOSTUNREACH" }));
    expect(findings).toMatchObject([{ code: "PROBE_TCP_BLOCKED", severity: "error" }]);
  });

  test("with losses", async () => {
    const { findings } = await probe(network(1450, { outcome: "refused" }, 2));
    expect(findings).toMatchObject([{ code: "PROBE_LOSS", severity: "warning" }]);
  });
});
