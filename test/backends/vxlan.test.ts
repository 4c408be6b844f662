import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { HostFacts, Peer } from "flannel/sdk";
import vxlan from "../../backends/vxlan/index.ts";
import { deriveMac, readMac } from "../../backends/vxlan/mac.ts";
import type { Options } from "../../backends/vxlan/options.ts";
import { DEFAULTS, device, FACTS, GOLDEN_PEER, vxlanWith } from "./facts.ts";

const IPV4 = { ipv4: true, ipv6: false };
const IPV6 = { ipv4: false, ipv6: true };
const withMtu = (mtu: number): HostFacts => ({ ...FACTS, external: { ...FACTS.external, mtu } });

describe("the devices", () => {
  test("have upstream's names and attributes, one per family", () => {
    const [v4, v6] = vxlanWith({ VNI: 5, Port: 4789 }).links(FACTS);
    expect(v4).toEqual({
      name: "flannel.5",
      type: "vxlan",
      mtu: 1450,
      mac: deriveMac("n1", "flannel.5"),
      vxlan: { vni: 5, underlay: "ext0", local: "192.0.2.1", port: 4789, learning: false, gbp: false },
    });
    expect(v6).toEqual({
      name: "flannel-v6.5",
      type: "vxlan",
      mtu: 1430,
      mac: deriveMac("n1", "flannel-v6.5"),
      vxlan: { vni: 5, underlay: "ext0", local: "fd00:db8::1", port: 4789, learning: false, gbp: false },
    });
  });

  test("leave the port to the kernel unless one is given", () => {
    expect(vxlanWith().links(FACTS)[0]).not.toHaveProperty("vxlan.port");
  });

  test("carry the options that are on", () => {
    expect(vxlanWith({ GBP: true, Learning: true }, IPV4).links(FACTS)[0]).toMatchObject({
      vxlan: { gbp: true, learning: true },
    });
  });

  test("are those of the enabled families only", () => {
    expect(
      vxlanWith({}, IPV4)
        .links(FACTS)
        .map((link) => link.name),
    ).toEqual(["flannel.1"]);
    expect(
      vxlanWith({}, IPV6)
        .links(FACTS)
        .map((link) => link.name),
    ).toEqual(["flannel-v6.1"]);
  });

  test("send from the interface's own address, whatever is published (A22)", () => {
    const nat = { ...FACTS, external: { ...FACTS.external, publicIP: "203.0.113.5" } };
    expect(vxlanWith({}, IPV4).links(nat)[0]).toMatchObject({ vxlan: { local: "192.0.2.1" } });
  });
});

describe("the MTU", () => {
  test.each<[string, number, number, { ipv4: boolean; ipv6: boolean }, number, readonly number[]]>([
    ["IPv4", 1500, 0, IPV4, 1450, [1450]],
    ["IPv6, whose outer header is longer", 1500, 0, IPV6, 1430, [1430]],
    ["dual stack: the smaller one for pods", 1500, 0, { ipv4: true, ipv6: true }, 1430, [1450, 1430]],
    ["jumbo frames", 9000, 0, IPV4, 8950, [8950]],
    ["MTU is that of the underlay, not of pods", 9000, 1500, IPV4, 1450, [1450]],
    ["MTU never above what the interface carries", 1400, 1500, IPV4, 1350, [1350]],
  ])("%s", (_, external, MTU, families, pods, devices) => {
    const backend = vxlanWith({ MTU }, families);
    expect(backend.mtu(withMtu(external))).toBe(pods);
    expect(backend.links(withMtu(external)).map((link) => link.mtu)).toEqual([...devices]);
  });

  test("of pods is never above what the device really has", () => {
    const links = { "flannel.1": device("flannel.1", "02:00:00:00:00:01", 1300) };
    expect(vxlanWith({}, IPV4).mtu({ ...FACTS, links })).toBe(1300);
  });

  test("that is too large is told beforehand", async () => {
    const common = { families: IPV4, networks: {}, nodeId: "n1", facts: FACTS };
    const findings = (MTU: number) => vxlan.check?.({ ...common, options: { ...DEFAULTS, MTU } }) ?? [];
    expect(await findings(1500)).toEqual([]);
    expect(await findings(9000)).toMatchObject([
      { code: "VXLAN_MTU_CLAMPED", severity: "warning", text: expect.stringContaining("9000") },
    ]);
  });
});

describe("the lease", () => {
  test("says VNI and the MAC that the kernel has, in upstream's order of fields", () => {
    const links = {
      "flannel.5": device("flannel.5", "6e:f9:5f:0e:8f:79"),
      "flannel-v6.5": device("flannel-v6.5", "ce:56:24:8b:56:10"),
    };
    const data = vxlanWith({ VNI: 5 }).publish({ ...FACTS, links });
    expect(JSON.stringify(data.ipv4)).toBe('{"VNI":5,"VtepMAC":"6e:f9:5f:0e:8f:79"}');
    expect(JSON.stringify(data.ipv6)).toBe('{"VNI":5,"VtepMAC":"ce:56:24:8b:56:10"}');
    expect(data.backendType).toBe("vxlan");
  });

  test("never lacks a MAC, also while the device is away", () => {
    expect(vxlanWith({}, IPV4).publish(FACTS)).toEqual({
      backendType: "vxlan",
      ipv4: { VNI: 1, VtepMAC: deriveMac("n1", "flannel.1") },
    });
  });

  test("brings the base address to each device, and no router advertisements", () => {
    const subnets = { ipv4: "10.244.1.0/24", ipv6: "fd00:10:244:2f::/64" };
    expect(vxlanWith({ VNI: 5 }).own({ subnets }, FACTS)).toEqual([
      { kind: "sysctl", path: "net/ipv6/conf/flannel.5/accept_ra", value: "0" },
      { kind: "address", dev: "flannel.5", address: "10.244.1.0/32" },
      { kind: "sysctl", path: "net/ipv6/conf/flannel-v6.5/accept_ra", value: "0" },
      { kind: "address", dev: "flannel-v6.5", address: "fd00:10:244:2f::/128" },
    ]);
  });

  test("leaves the checksum offload alone, unless it is on or off", () => {
    const subnets = { ipv4: "10.244.1.0/24", ipv6: "fd00:10:244:2f::/64" };
    const offloads = (options: Partial<Options>) =>
      vxlanWith(options)
        .own({ subnets }, FACTS)
        .filter((object) => object.kind === "offload");
    expect(offloads({})).toEqual([]);
    for (const ChecksumOffload of ["on", "off"] as const) {
      const on = ChecksumOffload === "on";
      expect(offloads({ ChecksumOffload })).toEqual([
        { kind: "offload", dev: "flannel.1", feature: "tx-checksum-ip-generic", on },
        { kind: "offload", dev: "flannel-v6.1", feature: "tx-checksum-ip-generic", on },
      ]);
    }
  });
});

describe("a peer", () => {
  test("is reached as upstream reaches it", () => {
    expect(vxlanWith({ VNI: 5 }).peer(GOLDEN_PEER, FACTS)).toEqual({
      objects: [
        { kind: "neighbour", dev: "flannel.5", ip: "10.244.2.0", mac: "9a:79:64:f1:18:b6" },
        { kind: "fdb", dev: "flannel.5", mac: "9a:79:64:f1:18:b6", dst: "192.0.2.2" },
        { kind: "route", dst: "10.244.2.0/24", via: "10.244.2.0", dev: "flannel.5", onlink: true },
        { kind: "neighbour", dev: "flannel-v6.5", ip: "fd00:10:244:25::", mac: "fa:34:c4:fb:6f:b0" },
        { kind: "fdb", dev: "flannel-v6.5", mac: "fa:34:c4:fb:6f:b0", dst: "fd00:db8::2" },
        {
          kind: "route",
          dst: "fd00:10:244:25::/64",
          via: "fd00:10:244:25::",
          dev: "flannel-v6.5",
          onlink: true,
        },
      ],
    });
  });

  test("on our link is routed to directly with DirectRouting, and tunnelled to where it is not", () => {
    const far = { ...GOLDEN_PEER.ipv4!, publicIP: "198.51.100.2" };
    const { objects } = vxlanWith({ DirectRouting: true }).peer({ ...GOLDEN_PEER, ipv4: far }, FACTS);
    expect(objects.map((object) => object.kind)).toEqual(["neighbour", "fdb", "route", "route"]);
    expect(objects.at(-1)).toEqual({
      kind: "route",
      dst: "fd00:10:244:25::/64",
      via: "fd00:db8::2",
      dev: "ext0",
    });
  });

  test("on our link needs no MAC for direct routing", () => {
    const bare: Peer = { ...GOLDEN_PEER, ipv4: { subnet: "10.244.2.0/24", publicIP: "192.0.2.2" } };
    expect(vxlanWith({ DirectRouting: true }, IPV4).peer(bare, FACTS).problems).toBeUndefined();
  });

  test("with one bad half is reached over the other", () => {
    const half = { ...GOLDEN_PEER, ipv4: { ...GOLDEN_PEER.ipv4!, data: { VNI: 5 } } };
    const { objects, problems } = vxlanWith({ VNI: 5 }).peer(half, FACTS);
    expect(objects.map((object) => object.kind)).toEqual(["neighbour", "fdb", "route"]);
    expect(problems).toEqual(['has no usable VtepMAC for ipv4: {"VNI":5}']);
  });

  test("whose data is huge does not make the log huge", () => {
    const half = { ...GOLDEN_PEER.ipv4!, data: { VtepMAC: "x".repeat(100_000) } };
    const { problems } = vxlanWith({}, IPV4).peer({ key: "k", backendType: "vxlan", ipv4: half }, FACTS);
    expect(problems?.[0]?.length).toBeLessThan(200);
  });

  test.each([
    ["a lease of 0.13, without VNI", { VtepMAC: "9a:79:64:f1:18:b6" }, "9a:79:64:f1:18:b6"],
    [
      "capitals and dashes, as Windows writes them",
      { VNI: 1, VtepMAC: "9A-79-64-F1-18-B6" },
      "9a:79:64:f1:18:b6",
    ],
  ])("%s", (_, data, mac) => {
    const half = { ...GOLDEN_PEER.ipv4!, data };
    const plan = vxlanWith({}, IPV4).peer({ key: "k", backendType: "vxlan", ipv4: half }, FACTS);
    expect(plan.objects[1]).toMatchObject({ kind: "fdb", mac });
  });
});

describe("MACs", () => {
  test("derived ones are stable, locally administered, unicast, and differ by node and device", () => {
    expect(deriveMac("n1", "flannel.1")).toBe(deriveMac("n1", "flannel.1"));
    const macs = new Set(
      Array.from({ length: 1000 }, (_, at) => {
        const mac = deriveMac(`node-${at}`, at % 2 ? "flannel.1" : "flannel-v6.1");
        const first = Number.parseInt(mac.slice(0, 2), 16);
        expect(mac).toMatch(/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/);
        expect(first & 3).toBe(2);
        expect(readMac(mac)).toBe(mac);
        return mac;
      }),
    );
    expect(macs.size).toBe(1000);
    expect(deriveMac("n1", "flannel.1")).not.toBe(deriveMac("n1", "flannel-v6.1"));
  });

  test.each([
    "00:00:00:00:00:00",
    "ff:ff:ff:ff:ff:ff",
    "01:00:5e:00:00:01",
    "9a:79:64:f1:18",
    "9a:79:64:f1:18:b6:00",
  ])("%s is no peer's", (mac) => {
    expect(readMac(mac)).toBeUndefined();
  });

  test("anything else is undefined, never a throw", () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        const mac = readMac(value);
        if (mac !== undefined) expect(mac).toMatch(/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/);
      }),
    );
  });
});

describe("options", () => {
  const validate = async (value: unknown) => vxlan.options["~standard"].validate(value);

  test("default as upstream's, also where a key is null", async () => {
    expect(await validate({})).toMatchObject({ value: DEFAULTS });
    const nulls = Object.fromEntries(Object.keys(DEFAULTS).map((name) => [name, null]));
    expect(await validate(nulls)).toMatchObject({ value: DEFAULTS });
  });

  test.each([
    ["VNI", 16_777_215],
    ["VNI", 0],
    ["Port", 65_535],
    ["MTU", 646],
    ["MTU", 0],
    ["DirectRouting", true],
    ["ChecksumOffload", "off"],
  ])("%s may be %p", async (name, value) => {
    expect(await validate({ [name]: value })).toMatchObject({ value: { [name]: value } });
  });

  test.each([
    ["VNI", 16_777_216],
    ["VNI", -1],
    ["VNI", 1.5],
    ["VNI", "1"],
    ["Port", 65_536],
    ["MTU", 645],
    ["MTU", 65_536],
    ["GBP", "true"],
    ["Learning", 1],
    ["DirectRouting", {}],
    ["ChecksumOffload", false],
  ])("%s may not be %p, and the message names it", async (name, value) => {
    const result = await validate({ [name]: value });
    expect(result.issues?.map((issue) => issue.message)).toEqual([
      expect.stringContaining(`${name} must be`),
    ]);
  });
});
