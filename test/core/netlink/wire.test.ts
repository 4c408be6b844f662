import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { CachedDeviceNames } from "../../../core/netlink/devices.ts";
import type { Exchange } from "../../../core/netlink/exchange.ts";
import { decodeError } from "../../../core/netlink/exchange.ts";
import { decodeAddress } from "../../../core/netlink/families/address.ts";
import { decodeFdb } from "../../../core/netlink/families/fdb.ts";
import { decodeLink, encodeLinkCreate, isDeviceName } from "../../../core/netlink/families/link.ts";
import { decodeNeighbour, encodeNeighbour } from "../../../core/netlink/families/neighbour.ts";
import { decodeNexthop } from "../../../core/netlink/families/nexthop.ts";
import { decodeRoute, decodeRouteGet } from "../../../core/netlink/families/route-state.ts";
import { decodeNotices } from "../../../core/netlink/notices.ts";
import { MessageBuilder } from "../../../core/netlink/wire/builder.ts";
import { RTM_NEWLINK, RTM_NEWNEXTHOP } from "../../../core/netlink/wire/constants.ts";
import { MessageCursor } from "../../../core/netlink/wire/reader.ts";
import { Fault } from "../../../core/observe/fault.ts";
import { inNamespace } from "../../lab/in-namespace.ts";
import { addFlannel, FLANNEL, IMPLEMENTATIONS, openHost, put } from "./host.ts";

const names = { nameOf: (index: number) => (index > 0 ? `if${index}` : undefined) };
const decoders = [
  (message: MessageCursor) => decodeLink(message),
  (message: MessageCursor) => decodeAddress(message, names),
  (message: MessageCursor) => decodeNeighbour(message, names),
  (message: MessageCursor) => decodeFdb(message, names),
  (message: MessageCursor) => decodeNexthop(message, names),
  (message: MessageCursor) => decodeRoute(message, names),
  (message: MessageCursor) => decodeRouteGet(message, names),
  (message: MessageCursor) => decodeError(message),
];

/** Runs every decoder over every message; throws whatever is not a Fault. */
function decodeAll(bytes: Uint8Array): void {
  for (const decode of decoders) onlyFaults(() => walk(bytes, decode));
  onlyFaults(() => decodeNotices(bytes, new CachedDeviceNames(names.nameOf), ({ state }) => state));
}

function walk(bytes: Uint8Array, visit: (message: MessageCursor) => unknown): number {
  const cursor = new MessageCursor(bytes);
  let count = 0;
  while (cursor.next()) {
    count++;
    onlyFaults(() => visit(cursor));
  }
  return count;
}

function onlyFaults(work: () => unknown): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
  }
}

/** Real dumps of every family, as the kernel wrote them. */
async function recordReplies(): Promise<Uint8Array[]> {
  await using host = await openHost(IMPLEMENTATIONS[0]![1], "record");
  await addFlannel(host.kernel);
  const dev = "flannel.1";
  await host.kernel.apply(
    put(
      { kind: "address", dev, address: "10.5.0.0/32" },
      { kind: "neighbour", dev, ip: "10.5.2.0", mac: FLANNEL.mac },
      { kind: "fdb", dev, mac: FLANNEL.mac, dst: "192.0.2.2" },
      { kind: "nexthop", id: 7, dev, via: "10.5.2.0", onlink: true },
      { kind: "nexthop-route", dst: "10.5.2.0/24", nexthop: 7 },
      { kind: "route", dst: "fd00:5::/64", dev, via: "fd00:5::", onlink: true },
    ),
  );
  await host.ns.ip("route add 198.51.100.0/24 nexthop via 192.0.2.8 dev eth0 nexthop via 192.0.2.9 dev eth0");
  const { Exchange } = await import("../../../core/netlink/exchange.ts");
  const exchange: Exchange = inNamespace(
    host.ns,
    () => new Exchange({ batchBytes: 1024, receiveBuffer: 1 << 20 }),
  );
  const recorded: Uint8Array[] = [];
  const keep = (message: MessageCursor): undefined => {
    recorded.push(message.bytes.slice(message.start - 16, message.end));
  };
  // Message type and length of the fixed header; family 0 or the one given.
  const dumps: [type: number, header: number, family: number][] = [
    [18, 16, 0],
    [22, 8, 0],
    [26, 12, 2],
    [26, 12, 10],
    [30, 12, 2],
    [30, 12, 7],
    [106, 8, 0],
  ];
  try {
    for (const [type, header, family] of dumps) {
      await exchange.dump((builder, sequence) => {
        builder.begin(type, 0x300, sequence);
        builder.u32(family);
        for (let at = 4; at < header; at += 4) builder.u32(0);
        builder.end();
      }, keep);
    }
  } finally {
    exchange.close();
  }
  return recorded;
}

describe("the decoder", () => {
  test("of random bytes ends, and throws nothing but faults", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => decodeAll(bytes)),
      { numRuns: 2000 },
    );
  });

  test("of random messages with a right header ends, and throws nothing but faults", () => {
    const type = fc.constantFrom(2, 3, 16, 17, 20, 21, 24, 25, 28, 29, 104, 105);
    fc.assert(
      fc.property(type, fc.uint8Array({ maxLength: 300 }), (kind, payload) => {
        const bytes = new Uint8Array(16 + payload.length);
        const view = new DataView(bytes.buffer);
        view.setUint32(0, bytes.length, true);
        view.setUint16(4, kind, true);
        view.setUint16(6, 0x200, true);
        bytes.set(payload, 16);
        decodeAll(bytes);
      }),
      { numRuns: 2000 },
    );
  });

  test("of real replies, whole, cut and altered, ends and throws nothing but faults", async () => {
    const recorded = await recordReplies();
    expect(recorded.length).toBeGreaterThan(15);
    for (const bytes of recorded) {
      expect(walk(bytes, () => {})).toBe(1);
      for (let length = 0; length < bytes.length; length++) decodeAll(bytes.subarray(0, length));
    }
    const alteration = fc.record({
      which: fc.nat(recorded.length - 1),
      edits: fc.array(fc.record({ at: fc.nat(2000), value: fc.nat(255) }), { minLength: 1, maxLength: 8 }),
      cut: fc.option(fc.nat(2000)),
    });
    fc.assert(
      fc.property(alteration, ({ which, edits, cut }) => {
        const bytes = recorded[which]!.slice();
        for (const { at, value } of edits) bytes[at % bytes.length] = value;
        decodeAll(cut === null ? bytes : bytes.subarray(0, cut % bytes.length));
      }),
      { numRuns: 5000 },
    );
  });

  test("of a notice that is cut off says that notices were lost", () => {
    const chunk = new Uint8Array([40, 0, 0, 0, RTM_NEWLINK, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
    expect(() => decodeNotices(chunk, new CachedDeviceNames(names.nameOf), ({ state }) => state)).toThrow(
      expect.objectContaining({ code: "NETLINK_OVERRUN" }),
    );
  });
});

describe("the builder", () => {
  test("writes addresses and MACs that read back the same", () => {
    const octet = fc.nat(255);
    const mac = fc
      .tuple(octet, octet, octet, octet, octet, octet)
      .map((bytes) => bytes.map((byte) => byte.toString(16).padStart(2, "0")).join(":"));
    const ip = fc.oneof(fc.ipV4(), fc.constantFrom("fd00:10:5::", "2001:db8::1", "::1", "1:2:3:4:5:6:7:8"));
    const builder = new MessageBuilder(1024);
    fc.assert(
      fc.property(mac, ip, fc.integer({ min: 1, max: 2 ** 31 - 1 }), (lladdr, address, index) => {
        builder.clear();
        encodeNeighbour(builder, 9, "put", { kind: "neighbour", dev: "x", ip: address, mac: lladdr }, index);
        const cursor = new MessageCursor(builder.bytes.subarray(0, builder.length));
        expect(cursor.next()).toBe(true);
        expect(cursor.sequence).toBe(9);
        expect(decodeNeighbour(cursor, names)).toEqual({
          dev: `if${index}`,
          ip: address,
          mac: lladdr,
          state: 0x80,
        });
        expect(cursor.next()).toBe(false);
      }),
    );
  });

  test.each(["", "02:00:00:00:00", "02:00:00:00:00:0g", "02-00-00-00-00-01", "02:00:00:00:00:001"])(
    "refuses the MAC %p",
    (mac) => {
      const builder = new MessageBuilder(1024);
      builder.begin(RTM_NEWNEXTHOP, 0, 1);
      expect(() => builder.attributeMac(1, mac)).toThrow(
        expect.objectContaining({ code: "NETLINK_BAD_OBJECT" }),
      );
      builder.cancel();
      expect(builder.length).toBe(0);
    },
  );

  test("pads names so that nothing of an earlier message shows through", () => {
    const builder = new MessageBuilder(1024);
    builder.bytes.fill(0xff);
    encodeLinkCreate(builder, 1, { ...FLANNEL, name: "ab" }, 5);
    const cursor = new MessageCursor(builder.bytes.subarray(0, builder.length));
    cursor.next();
    expect(decodeLink(cursor)).toMatchObject({
      state: { name: "ab", mac: FLANNEL.mac, mtu: FLANNEL.mtu, type: "vxlan" },
      vxlan: { underlay: 5, attrs: { vni: 1, local: "192.0.2.1", port: 8472 } },
    });
    expect(builder.length % 4).toBe(0);
  });

  test.each([
    ["eth0", true],
    ["flannel-v6.1", true],
    ["exactly15bytes-", true],
    ["sixteen-bytes--x", false],
    ["ünïcödé-näme", false],
    ["", false],
    [".", false],
    ["..", false],
    ["a/b", false],
    ["a b", false],
    ["a:b", false],
  ])("knows whether %p can be a device", (name, expected) => {
    expect(isDeviceName(name)).toBe(expected);
  });
});
