import { expect, test } from "bun:test";
import fc from "fast-check";
import { Arena } from "../../../backends/udp/packet/arena.ts";
import { createSum, sumBytes } from "../../../backends/udp/packet/checksum.ts";
import { decrementTtl, fold, swap16 } from "../../../backends/udp/packet/ip.ts";
import { buildPacket, findMistake } from "./packets.ts";

const arena = new Arena(256 * 1024);
const sum = createSum(arena);

test("the WebAssembly sum is that of the plain loop, at any place and length", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 67 }),
      fc.integer({ min: 0, max: 70_000 }),
      fc.nat(0xffffffff),
      fc.integer(),
      fc.boolean(),
      (offset, length, initial, seed, ones) => {
        let state = seed | 1;
        for (let at = offset; at < offset + length; at++) {
          state = Math.imul(state, 1_103_515_245) + 12_345;
          arena.bytes[at] = ones ? 0xff : state >>> 16;
        }
        const expected = sumBytes(arena.bytes, offset, length, initial);
        const got = sum(offset, length, initial);
        // Ones' complement has two zeros.
        expect(got % 0xffff).toBe(expected % 0xffff);
        expect(got).toBeLessThanOrEqual(0xffff);
      },
    ),
    { numRuns: 300 },
  );
  expect(sum(0, 0, 0)).toBe(0);
});

test("sums of pieces add up", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 2, maxLength: 200 }), fc.nat(100), (bytes, at) => {
      const cut = Math.min(bytes.length, at * 2);
      arena.bytes.set(bytes, 64);
      const whole = sum(64, bytes.length, 0);
      const parts = fold(sum(64, cut, 0) + sum(64 + cut, bytes.length - cut, 0));
      expect(parts % 0xffff).toBe(whole % 0xffff);
    }),
  );
});

test("a TTL that goes down leaves the checksum right, whatever it was", () => {
  for (let id = 0; id < 0x10000; id += 13) {
    const packet = buildPacket({
      version: 4,
      protocol: "udp",
      payload: new Uint8Array(4),
      ttl: 2 + (id % 250),
      id,
    });
    decrementTtl(new DataView(packet.buffer, packet.byteOffset), 0);
    expect(findMistake(packet)).toBeUndefined();
  }
});

test("a field of the wire as the word that is added up", () => {
  expect(swap16(0x1234)).toBe(0x3412);
  expect(swap16(0x12345)).toBe(0x4523);
});
