import { expect, test } from "bun:test";
import fc from "fast-check";
import { decodeKey, describeSubnets, encodeKey } from "../../../core/lease/key.ts";
import { anySubnets } from "./arbitrary.ts";

test.each([
  ["10.5.72.0-24", { ipv4: "10.5.72.0/24" }],
  ["10.12.13.0-24", { ipv4: "10.12.13.0/24" }],
  ["10.12.13.0-24&fd00:12:13::-56", { ipv4: "10.12.13.0/24", ipv6: "fd00:12:13::/56" }],
  ["fd00:10:244:5::-64", { ipv6: "fd00:10:244:5::/64" }],
  ["0.0.0.0-0", { ipv4: "0.0.0.0/0" }],
  ["10.0.0.2-31", { ipv4: "10.0.0.2/31" }],
  ["::-0", { ipv6: "::/0" }],
  ["fd00::2-127", { ipv6: "fd00::2/127" }],
])("key %s names its subnets, and back", (key, subnets) => {
  expect(decodeKey(key)).toEqual(subnets);
  expect(encodeKey(subnets)).toBe(key);
});

test("a key with IPv6 written the long way is read as upstream reads it, into canonical text", () => {
  expect(decodeKey("10.1.1.0-24&fd00:0:0:1:0:0:0:0-64")).toEqual({
    ipv4: "10.1.1.0/24",
    ipv6: "fd00:0:0:1::/64",
  });
});

test.each([
  // Upstream's own eleven.
  "10",
  "10.12.13.0",
  "10.12.13-24",
  "10.12.13.300-24",
  "10.12.13.0-24hi",
  "&2001::-56",
  "10.12.13.0-24&:12:13:-56",
  "10.12.13.0-24&20011::-56",
  "10.12.13.0-24&2001-56",
  "10.12.13.0-24&2001::",
  "10.12.13.0-24&2001::-56hi",
  // Lengths, host bits, anchors, spelling.
  "10.12.13.0-32",
  "10.244.9.0-33",
  "10.12.13.0-24&fd00::-128",
  "10.12.13.1-24",
  "10.12.13.0-24&fd00::1-64",
  "fd00::1-64",
  "x10.244.9.0-24",
  " 10.244.9.0-24",
  "10.244.9.0-24\n",
  "/10.244.9.0-24",
  "10.244.9.0-24/",
  "10.244.9.0-024",
  "10.244.9.0-+24",
  "10.244.9.0--24",
  "10.244.9.0-",
  "10.244.09.0-24",
  "10.244.9.0-24&",
  "10.244.9.0-24&FD00::-64",
  "10.244.9.0-24&fd00::-64&fd01::-64",
  "fd00::-64&10.244.9.0-24",
  "10.1.1.0-24&10.2.2.0-24",
  "::ffff:10.0.0.0-104",
  "fd00::%eth0-64",
  ".lock",
  "",
  "1".repeat(100_000),
])("key %p is refused", (key) => {
  expect(decodeKey(key)).toBeUndefined();
});

test("property: every key made is read back as it was", () => {
  fc.assert(
    fc.property(anySubnets, (subnets) => {
      expect(decodeKey(encodeKey(subnets))).toEqual(subnets);
    }),
  );
});

test("property: whatever is accepted is canonical; whatever is appended or put in front is refused", () => {
  const alphabet = fc.constantFrom(..."0123456789abcdef.:-&/x \n");
  const text = fc.string({ unit: alphabet, maxLength: 40 });
  fc.assert(
    fc.property(text, (key) => {
      const subnets = decodeKey(key);
      if (subnets) expect(decodeKey(encodeKey(subnets))).toEqual(subnets);
    }),
  );
  fc.assert(
    fc.property(anySubnets, fc.constantFrom("x", " ", "/", "-", "&", "\n"), (subnets, junk) => {
      expect(decodeKey(`${encodeKey(subnets)}${junk}`)).toBeUndefined();
      expect(decodeKey(`${junk}${encodeKey(subnets)}`)).toBeUndefined();
    }),
  );
});

test("subnets in a sentence", () => {
  expect(describeSubnets({ ipv4: "10.1.1.0/24" })).toBe("10.1.1.0/24");
  expect(describeSubnets({ ipv4: "10.1.1.0/24", ipv6: "fd00::/64" })).toBe("10.1.1.0/24 and fd00::/64");
});
