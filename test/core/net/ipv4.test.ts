import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import ipaddr from "ipaddr.js";
import { formatIPv4, parseIPv4, parseIPv4At } from "../../../core/net/ipv4.ts";

// Property tests on a busy machine take longer than the 5 s Bun grants.
setDefaultTimeout(60_000);

const uint32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });

describe("parseIPv4", () => {
  test.each([
    ["0.0.0.0", 0],
    ["1.2.3.4", 0x01020304],
    ["127.0.0.1", 0x7f000001],
    ["192.168.255.0", 0xc0a8ff00],
    ["255.255.255.255", 0xffffffff],
  ])("%s", (text, address) => {
    expect(parseIPv4(text)).toBe(address);
    expect(formatIPv4(address)).toBe(text);
  });

  test.each([
    "",
    ".",
    "1",
    "1.2.3",
    "1.2.3.",
    ".1.2.3",
    "1..2.3",
    "1.2.3.4.",
    "1.2.3.4.5",
    "1*2*3*4",
    "1,2,3,4",
    "01.2.3.4",
    "1.2.3.04",
    "1.2.3.00",
    "000.0.0.0",
    "256.0.0.0",
    "1.2.3.256",
    "1.2.3.999",
    "1111.2.3.4",
    " 1.2.3.4",
    "1.2.3.4 ",
    "1.2.3.4\n",
    "-1.2.3.4",
    "+1.2.3.4",
    "0x1.2.3.4",
    "1.2.3.a",
    "1.2.3.4/24",
    "١.٢.٣.٤",
    "::1",
    "::ffff:1.2.3.4",
    "16909060",
  ])("refuses %p", (text) => {
    expect(parseIPv4(text)).toBeUndefined();
  });

  test("round trip, and the same reading as ipaddr.js", () => {
    fc.assert(
      fc.property(uint32, (address) => {
        const text = formatIPv4(address);
        expect(parseIPv4(text)).toBe(address);
        expect(
          ipaddr.IPv4.parse(text)
            .toByteArray()
            .reduce((sum, octet) => sum * 256 + octet, 0),
        ).toBe(address);
      }),
    );
  });

  test("accepts only what it would write itself", () => {
    const nearly = fc
      .array(fc.constantFrom(..."0123456789. :a-"), { maxLength: 16 })
      .map((parts) => parts.join(""));
    fc.assert(
      fc.property(nearly, (text) => {
        const address = parseIPv4(text);
        if (address !== undefined) expect(formatIPv4(address)).toBe(text);
      }),
      { numRuns: 2000 },
    );
  });

  test("reads a part of a text", () => {
    expect(parseIPv4At("x10.0.0.1y", 1, 9)).toBe(0x0a000001);
    expect(parseIPv4At("10.0.0.12", 0, 8)).toBe(0x0a000001);
  });
});
