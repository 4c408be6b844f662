import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import {
  addressFamily,
  canonicalAddress,
  canonicalPrefix,
  containsAddress,
  containsPrefix,
  firstHost,
  formatPrefix,
  hasHostBits,
  nextPrefix,
  overlaps,
  type Prefix,
  parsePrefix,
  prefix4,
  prefix6,
  prefixSize,
} from "../../../core/net/prefix.ts";

// Property tests on a busy machine take longer than the 5 s Bun grants.
setDefaultTimeout(60_000);

const prefixes4 = fc
  .tuple(fc.integer({ min: 0, max: 2 ** 32 - 1 }), fc.integer({ min: 0, max: 32 }))
  .map(([address, length]) => prefix4(address, length));
const prefixes6 = fc
  .tuple(fc.bigInt({ min: 0n, max: (1n << 128n) - 1n }), fc.integer({ min: 0, max: 128 }))
  .map(([address, length]) => prefix6(address, length));
const prefixes: fc.Arbitrary<Prefix> = fc.oneof(prefixes4, prefixes6);

function prefix(text: string): Prefix {
  const parsed = parsePrefix(text);
  if (!parsed) throw new Error(`no prefix: ${text}`);
  return parsed;
}

describe("text", () => {
  test.each([
    ["10.3.0.0/16", "10.3.0.0/16", false],
    ["192.168.5.0/16", "192.168.0.0/16", true],
    ["10.0.0.0/08", "10.0.0.0/8", false],
    ["1.2.3.4/0", "0.0.0.0/0", true],
    ["1.2.3.4/32", "1.2.3.4/32", false],
    ["255.255.255.255/31", "255.255.255.254/31", true],
    ["FC00::/48", "fc00::/48", false],
    ["fc00:0:0:1::5/64", "fc00:0:0:1::/64", true],
    ["::/0", "::/0", false],
    ["::1/128", "::1/128", false],
    ["::ffff:10.1.2.3/104", "::ffff:10.0.0.0/104", true],
    ["::ffff:10.1.2.3/8", "::/8", true],
  ])("%s is %s", (text, canonical, hostBits) => {
    expect(canonicalPrefix(text)).toBe(canonical);
    expect(hasHostBits(text)).toBe(hostBits);
  });

  test.each([
    "",
    "/",
    "10.0.0.0",
    "10.0.0.0/",
    "10.0.0.0/33",
    "10.0.0.0/-1",
    "10.0.0.0/+8",
    "10.0.0.0/8 ",
    "10.0.0.0/8/8",
    "10.0.0.0/0x8",
    "10.0.0/8",
    "010.0.0.0/8",
    "fc00::/129",
    "fc00::1%eth0/64",
    "::ffff:010.0.0.1/96",
    "10.0.0.0/99999999999999999999",
    "/8",
    "10.0.0.0/255.0.0.0",
  ])("refuses %p", (text) => {
    expect(parsePrefix(text)).toBeUndefined();
    expect(hasHostBits(text)).toBe(false);
  });

  test("round trip", () => {
    fc.assert(fc.property(prefixes, (wanted) => expect(parsePrefix(formatPrefix(wanted))).toEqual(wanted)));
  });

  test("addresses", () => {
    expect(canonicalAddress("2001:DB8::0")).toBe("2001:db8::");
    expect(canonicalAddress("10.0.0.1")).toBe("10.0.0.1");
    expect(canonicalAddress("10.0.0.01")).toBeUndefined();
    expect(canonicalAddress("fe80::1%eth0")).toBeUndefined();
    expect(addressFamily("10.0.0.1")).toBe(4);
    expect(addressFamily("::ffff:10.0.0.1")).toBe(6);
    expect(addressFamily("host.example")).toBeUndefined();
    expect(addressFamily("::g")).toBeUndefined();
  });
});

describe("relations", () => {
  test.each([
    ["10.244.0.0/16", "10.244.0.0/16", true],
    ["10.244.0.0/16", "10.244.0.0/24", true],
    ["10.244.0.0/16", "10.244.255.0/24", true],
    ["10.244.0.0/16", "10.244.0.0/15", false],
    ["10.244.0.0/16", "192.168.0.0/24", false],
    ["2001:db8:1234::/48", "2001:db8:1234::/48", true],
    ["2001:db8:1234::/48", "2001:db8:1234::/64", true],
    ["2001:db8:1234::/48", "2001:db8:1234:ffff::/64", true],
    ["2001:db8:1234::/48", "2001:db8:1234::/47", false],
    ["2001:db8:1234::/48", "fe02::/32", false],
    ["0.0.0.0/0", "::/0", false],
    ["::/0", "10.0.0.0/8", false],
    ["::ffff:0:0/96", "10.0.0.0/8", false],
    ["0.0.0.0/0", "255.255.255.255/32", true],
  ])("%s contains %s: %p", (outer, inner, expected) => {
    expect(containsPrefix(prefix(outer), prefix(inner))).toBe(expected);
  });

  test("overlap needs one of the two to contain the other", () => {
    const pairs = fc.oneof(
      fc.tuple(prefixes4, prefixes4),
      fc.tuple(prefixes6, prefixes6),
      fc.tuple(prefixes4, prefixes6),
    );
    fc.assert(
      fc.property(pairs, fc.integer({ min: 0, max: 8 }), ([a, b], cut) => {
        const wide =
          a.family === 4
            ? prefix4(a.base, Math.min(cut, a.length))
            : prefix6(a.base, Math.min(cut, a.length));
        expect(containsPrefix(wide, a)).toBe(true);
        for (const outer of [a, wide]) {
          expect(overlaps(outer, b)).toBe(containsPrefix(outer, b) || containsPrefix(b, outer));
          expect(overlaps(b, outer)).toBe(overlaps(outer, b));
        }
      }),
    );
  });

  test("addresses inside and outside", () => {
    expect(containsAddress(prefix("10.3.0.0/16"), "10.3.255.255")).toBe(true);
    expect(containsAddress(prefix("10.3.0.0/16"), "10.4.0.0")).toBe(false);
    expect(containsAddress(prefix("10.3.0.0/16"), "::ffff:10.3.0.1")).toBe(false);
    expect(containsAddress(prefix("::/0"), "10.3.0.1")).toBe(false);
    expect(containsAddress(prefix("::/0"), "fe80::1%eth0")).toBe(false);
    expect(containsAddress(prefix("fc00::/48"), "fc00:0:0:ffff::1")).toBe(true);
    expect(containsAddress(prefix("0.0.0.0/0"), "nonsense")).toBe(false);
  });
});

describe("neighbours and ends", () => {
  test.each([
    ["1.2.3.0/24", "1.2.4.0/24", "1.2.3.1"],
    ["10.0.0.0/8", "11.0.0.0/8", "10.0.0.1"],
    ["127.255.255.254/31", "128.0.0.0/31", "127.255.255.255"],
    ["255.255.0.0/16", undefined, "255.255.0.1"],
    ["0.0.0.0/0", undefined, "0.0.0.1"],
    ["1.2.3.4/32", "1.2.3.5/32", "1.2.3.4"],
    ["fc00::/64", "fc00:0:0:1::/64", "fc00::1"],
    ["::1/128", "::2/128", "::1"],
    ["ffff::/16", undefined, "ffff::1"],
  ])("%s", (text, next, first) => {
    const following = nextPrefix(prefix(text));
    expect(following && formatPrefix(following)).toBe(next);
    expect(firstHost(prefix(text))).toBe(first);
  });

  test("next is adjacent: it touches and does not overlap", () => {
    fc.assert(
      fc.property(prefixes, (wanted) => {
        const next = nextPrefix(wanted);
        if (!next) return;
        expect(overlaps(wanted, next)).toBe(false);
        expect(BigInt(next.base) - BigInt(wanted.base)).toBe(BigInt(prefixSize(wanted)));
        expect(containsAddress(wanted, firstHost(wanted))).toBe(true);
      }),
    );
  });
});
