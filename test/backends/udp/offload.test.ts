import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Coalescer, type PacketSink } from "../../../backends/udp/datapath/coalescer.ts";
import { COUNTER, COUNTERS } from "../../../backends/udp/datapath/counters.ts";
import { Segmenter, type SegmentSink } from "../../../backends/udp/datapath/segmenter.ts";
import { Arena } from "../../../backends/udp/packet/arena.ts";
import { createSum } from "../../../backends/udp/packet/checksum.ts";
import { VNET } from "../../../backends/udp/packet/virtio.ts";
import { buildPacket, checksum, findMistake, type PacketSpec, pseudoHeader } from "./packets.ts";

const MSS = 1_000;
const arena = new Arena(1024 * 1024);
const sum = createSum(arena);
const BUFFER = arena.reserve(128 * 1024);
const RECEIVED = arena.reserve(512 * 1024);

/** Collects segments as they would leave. */
function collectSegments(): SegmentSink & { readonly packets: Uint8Array[]; flush(): void } {
  const packets: Uint8Array[] = [];
  let pieces: (readonly [number, number])[] = [];
  let waiting: (typeof pieces)[] = [];
  let room = 20;
  const take = (list: typeof pieces) =>
    Buffer.concat(list.map(([offset, length]) => arena.bytes.slice(offset, offset + length)));
  return {
    packets,
    begin() {
      if (room === 0) return false;
      room -= 1;
      pieces = [];
      waiting.push(pieces);
      return true;
    },
    piece(offset, length) {
      pieces.push([offset, length]);
    },
    // Only now: whatever a piece points to has to stay until the flush.
    flush() {
      packets.push(...waiting.map(take));
      waiting = [];
      room = 20;
    },
  };
}

/** Collects what is written to the device, with its virtio header. */
function collectWrites(): PacketSink & { readonly writes: { header: Buffer; packet: Buffer }[] } {
  const writes: { header: Buffer; packet: Buffer }[] = [];
  let pieces: (readonly [number, number])[] = [];
  const finish = (list: typeof pieces) => {
    const bytes = Buffer.concat(list.map(([offset, length]) => arena.bytes.slice(offset, offset + length)));
    writes.push({ header: bytes.subarray(0, 10), packet: bytes.subarray(10) });
  };
  const clear = (ip: number) => arena.bytes.fill(0, ip - 10, ip);
  return {
    writes,
    hasRoom: true,
    write(ip, length) {
      clear(ip);
      finish([[ip - 10, length + 10]]);
    },
    begin(ip, length) {
      clear(ip);
      pieces = [[ip - 10, length + 10]];
    },
    piece(offset, length) {
      pieces.push([offset, length]);
    },
    writePieces() {
      finish(pieces);
    },
  };
}

let sinkInUse: ReturnType<typeof collectSegments> | undefined;
const segmenter = new Segmenter(arena, sum, () => {
  sinkInUse?.flush();
  segmenter.reset();
});

/** What the kernel hands over: one large packet, its checksum not complete. */
function segment(spec: PacketSpec, size = MSS): readonly Uint8Array[] {
  const packet = buildPacket(spec);
  const sink = collectSegments();
  sinkInUse = sink;
  arena.bytes.set(packet, BUFFER);
  const start = spec.version === 4 ? 20 : 40;
  const isUdp = spec.protocol === "udp";
  expect(segmenter.segment(sink, 0, BUFFER, packet.length, start, size, isUdp)).toBeTrue();
  sink.flush();
  return sink.packets;
}

/** Hands packets to a coalescer as they lie in a receive buffer, and returns what came out. */
function coalesce(packets: readonly Uint8Array[], joins = { tcp: true, udp: true }) {
  const counters = new Float64Array(COUNTERS.length);
  const sink = collectWrites();
  const coalescer = new Coalescer({ arena, sum, counters, writer: sink }, joins);
  let at = RECEIVED + 16;
  const places = packets.map((packet) => {
    arena.bytes.set(packet, at);
    at += packet.length;
    return at - packet.length;
  });
  for (const [n, place] of places.entries()) coalescer.offer(place, packets[n]!.length);
  coalescer.flush();
  return { writes: sink.writes, badChecksums: counters[COUNTER.badChecksums] };
}

function payloadOf(packet: Uint8Array, { version, protocol, options }: PacketSpec): Uint8Array {
  const l4 = version === 4 ? 20 : 40;
  return packet.subarray(l4 + (protocol === "udp" ? 8 : 20 + (options?.length ?? 0)));
}

const filled = (length: number) => Uint8Array.from({ length }, (_, n) => (n * 7 + (n >> 8)) & 0xff);

const KINDS = ([4, 6] as const).flatMap((version) =>
  (["tcp", "udp"] as const).map((protocol) => [`IPv${version} ${protocol}`, { version, protocol }] as const),
);

describe.each(KINDS)("%s", (_, kind) => {
  const tcp = kind.protocol === "tcp";
  const options = tcp ? Uint8Array.from([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]) : new Uint8Array(0);
  const spec: PacketSpec = {
    ...kind,
    payload: filled(45_500),
    options,
    flags: 0x10 | 0x08 | 0x80,
    sequence: 0xffffff00,
  };

  test("a large packet becomes packets that are right in themselves and carry the same bytes", () => {
    const packets = segment(spec);
    expect(packets.length).toBe(46);
    expect(packets.map(findMistake)).toEqual(packets.map(() => undefined));
    expect(Buffer.concat(packets.map((packet) => payloadOf(packet, spec)))).toEqual(
      Buffer.from(spec.payload),
    );
    if (!tcp) return;
    const l4 = kind.version === 4 ? 20 : 40;
    const views = packets.map((packet) => Buffer.from(packet));
    expect(views.map((view) => view.readUInt32BE(l4 + 4))).toEqual(
      views.map((__, n) => (0xffffff00 + n * MSS) >>> 0),
    );
    // CWR is the first one's, PSH the last one's.
    expect(views.map((view) => view[l4 + 13])).toEqual([0x90, ...Array<number>(44).fill(0x10), 0x18]);
    if (kind.version === 4)
      expect(views.map((view) => view.readUInt16BE(4))).toEqual(views.map((__, n) => 7 + n));
  });

  test("what was cut is joined again, with headers the kernel can work with", () => {
    const packets = segment({ ...spec, flags: 0x18 });
    const { writes } = coalesce(packets);
    expect(writes.length).toBe(1);
    const { header, packet } = writes[0]!;
    const l4 = kind.version === 4 ? 20 : 40;
    expect(Buffer.from(payloadOf(packet, spec))).toEqual(Buffer.from(spec.payload));
    expect(header[VNET.flags]).toBe(1);
    expect(header[VNET.gsoType]).toBe(tcp ? (kind.version === 4 ? 1 : 4) : 5);
    expect(header.readUInt16LE(VNET.headerLength)).toBe(l4 + (tcp ? 32 : 8));
    expect(header.readUInt16LE(VNET.gsoSize)).toBe(MSS);
    expect(header.readUInt16LE(VNET.checksumStart)).toBe(l4);
    const field = l4 + header.readUInt16LE(VNET.checksumOffset);
    expect(packet.readUInt16BE(field)).toBe(~checksum([pseudoHeader(packet, packet.length - l4)]) & 0xffff);
    if (kind.version === 4) expect(checksum([packet.subarray(0, 20)])).toBe(0);
  });

  test("a packet with a wrong checksum is passed on as it is, and joined with nothing", () => {
    const packets = segment({ ...spec, payload: filled(5_000), flags: 0x10 }).map((each) =>
      Uint8Array.from(each),
    );
    packets[2]![packets[2]!.length - 1]! ^= 1;
    const { writes, badChecksums } = coalesce(packets);
    expect(badChecksums).toBe(1);
    expect(writes.length).toBe(3);
    expect(Uint8Array.from(writes[1]!.packet)).toEqual(packets[2]!);
    expect([...writes[1]!.header]).toEqual(Array<number>(10).fill(0));
  });

  test("other flows, hops, sizes and sequences are not joined", () => {
    const next = (n: number, change: Partial<PacketSpec> = {}) =>
      buildPacket({ ...kind, payload: filled(MSS), sequence: 1000 + n * MSS, id: 7 + n, ...change });
    const strangers: Partial<PacketSpec>[] = [
      { sourcePort: 999 },
      { ttl: 9 },
      { payload: filled(MSS + 1) },
      ...(tcp ? [{ sequence: 77 }, { flags: 0x11 }, { flags: 0x02 }] : []),
      ...(kind.version === 4 ? [{ dontFragment: false }] : []),
    ];
    for (const change of strangers) {
      const packets = [next(0), next(1), next(2, change)];
      const { writes } = coalesce(packets);
      expect([change, writes.length]).toEqual([change, 2]);
      expect(Uint8Array.from(writes[1]!.packet)).toEqual(Uint8Array.from(packets[2]!));
    }
  });

  test("without offloads everything is written as it came", () => {
    const packets = segment({ ...spec, payload: filled(5_000), flags: 0x10 }).map((each) =>
      Uint8Array.from(each),
    );
    const { writes } = coalesce(packets, { tcp: false, udp: false });
    expect(writes.map(({ packet }) => Uint8Array.from(packet))).toEqual(packets);
  });
});

test("any mix of packets comes out with the same bytes, in order, and every packet or segment right", () => {
  const packet = fc.record({
    version: fc.constantFrom(4 as const, 6 as const),
    protocol: fc.constantFrom("tcp" as const, "udp" as const),
    payload: fc.integer({ min: 0, max: 300 }).map(filled),
    sequence: fc.constantFrom(1000, 1100, 1200, 1300),
    flags: fc.constantFrom(0x10, 0x18, 0x11, 0x02),
    ttl: fc.constantFrom(63, 64),
    id: fc.constantFrom(7, 8, 9),
    dontFragment: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(packet, { maxLength: 30 }), (specs) => {
      const packets = specs.map(buildPacket);
      const { writes } = coalesce(packets);
      const payloads = (list: readonly Uint8Array[]) =>
        Buffer.concat(
          list.map((each) => {
            const l4 = each[0]! >>> 4 === 4 ? 20 : 40;
            const isUdp = each[l4 === 20 ? 9 : 6] === 17;
            return each.subarray(l4 + (isUdp ? 8 : 20));
          }),
        );
      expect(payloads(writes.map((write) => write.packet))).toEqual(payloads(packets));
      for (const { header, packet: written } of writes) {
        if (header[VNET.gsoType] === 0) expect(findMistake(written)).toBeUndefined();
      }
    }),
    { numRuns: 200 },
  );
});

test("random bytes are passed on untouched and never throw", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ minLength: 20, maxLength: 120 }), { maxLength: 20 }), (packets) => {
      const { writes } = coalesce(packets);
      expect(Buffer.concat(writes.map(({ packet }) => packet))).toEqual(Buffer.concat(packets));
    }),
    { numRuns: 300 },
  );
});
