import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { isIPv6 } from "node:net";
import fc from "fast-check";
import ipaddr from "ipaddr.js";
import { formatIPv6, isIPv4Mapped, parseIPv6 } from "../../../core/net/ipv6.ts";

// Property tests on a busy machine take longer than the 5 s Bun grants.
setDefaultTimeout(60_000);

/** ipaddr.js reads this old form (RFC 4291 §2.5.5.1) as `::ffff:1.2.3.4`. */
const ipv4Compatible = /^::\d+\./;

/** Groups with many zeros, so that runs to compress are common. */
const addresses = fc
  .array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff })), { minLength: 8, maxLength: 8 })
  .map((groups) => groups.reduce((sum, group) => (sum << 16n) | BigInt(group), 0n));

function viaIpaddr(text: string): bigint {
  return ipaddr.IPv6.parse(text).parts.reduce((sum, part) => (sum << 16n) | BigInt(part), 0n);
}

describe("IPv6 text", () => {
  test.each([
    ["::", "::"],
    ["::1", "::1"],
    ["1::", "1::"],
    ["FC00::", "fc00::"],
    ["fc00:0:0:1:0:0:0:0", "fc00:0:0:1::"],
    ["2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
    ["2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"],
    ["2001:0db8::0001", "2001:db8::1"],
    ["1:0:0:2:0:0:0:3", "1:0:0:2::3"],
    ["0:0:1:0:0:0:0:0", "0:0:1::"],
    ["1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"],
    ["::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"],
    ["::ffff:1.2.3.4", "::ffff:1.2.3.4"],
    ["::ffff:102:304", "::ffff:1.2.3.4"],
    ["64:ff9b::192.0.2.33", "64:ff9b::c000:221"],
    ["1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"],
    ["ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ])("%s is written %s", (text, canonical) => {
    const address = parseIPv6(text);
    expect(address).toBe(viaIpaddr(text));
    expect(formatIPv6(address!)).toBe(canonical);
  });

  test.each([
    "",
    ":",
    ":::",
    "1",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9",
    "1:2:3:4:5:6:7:",
    ":2:3:4:5:6:7:8",
    "1::2::3",
    "1:2:3:4::5:6:7:8",
    "12345::",
    "00001::",
    "g::",
    "fe80::1%eth0",
    "1.2.3.4",
    "::1.2.3",
    "::01.2.3.4",
    "::1.2.3.4:5",
    "1:2:3:4:5:6:7:1.2.3.4",
    "::1.2.3.256",
    " ::1",
    "::1 ",
    "::1/64",
    "[::1]",
    "::-1",
    "::ffff:1.2.3.4.5",
  ])("refuses %p", (text) => {
    expect(parseIPv6(text)).toBeUndefined();
  });

  test("round trip, and the same as ipaddr.js both ways", () => {
    fc.assert(
      fc.property(addresses, (address) => {
        const text = formatIPv6(address);
        expect(parseIPv6(text)).toBe(address);
        expect(viaIpaddr(text)).toBe(address);
        const bytes = Array.from({ length: 16 }, (_, at) => Number((address >> BigInt(120 - 8 * at)) & 255n));
        if (!isIPv4Mapped(address)) expect(text).toBe(new ipaddr.IPv6(bytes).toRFC5952String());
      }),
      { numRuns: 1000 },
    );
  });

  test("accepts nothing that others cannot read", () => {
    const nearly = fc.array(fc.constantFrom("0", "1", "f", "ffff", ":", "::", ".", "9", "g"), {
      maxLength: 16,
    });
    fc.assert(
      fc.property(nearly, (parts) => {
        const text = parts.join("");
        const address = parseIPv6(text);
        if (address === undefined) return;
        expect(isIPv6(text)).toBe(true);
        if (!ipv4Compatible.test(text)) expect(viaIpaddr(text)).toBe(address);
      }),
      { numRuns: 5000 },
    );
  });

  test("a dotted tail alone is the low 32 bits", () => {
    expect(parseIPv6("::1.2.3.4")).toBe(0x01020304n);
    expect(formatIPv6(0x01020304n)).toBe("::102:304");
  });

  test("IPv4-mapped", () => {
    expect(isIPv4Mapped(parseIPv6("::ffff:0.0.0.0")!)).toBe(true);
    expect(isIPv4Mapped(parseIPv6("::fffe:1.2.3.4")!)).toBe(false);
    expect(isIPv4Mapped(parseIPv6("1::ffff:1.2.3.4")!)).toBe(false);
  });
});
