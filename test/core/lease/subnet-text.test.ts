import { expect, test } from "bun:test";
import fc from "fast-check";
import { encodeKey } from "../../../core/lease/key.ts";
import { parseSubnets } from "../../../core/lease/subnet-text.ts";
import { anySubnets } from "./arbitrary.ts";

test("every lease can be named by its key and by its subnets", () => {
  fc.assert(
    fc.property(anySubnets, (subnets) => {
      expect(parseSubnets(encodeKey(subnets))).toEqual(subnets);
      expect(parseSubnets([subnets.ipv4, subnets.ipv6].filter(Boolean).join(","))).toEqual(subnets);
    }),
  );
});

test.each([
  ["10.244.5.1/24", { ipv4: "10.244.5.0/24" }],
  ["fd00:0::1/64, 10.1.2.0-24", { ipv4: "10.1.2.0/24", ipv6: "fd00::/64" }],
])("%s is understood", (text, subnets) => {
  expect(parseSubnets(text)).toEqual(subnets);
});

test.each(["", "10.244.5.0", "10.244.5.0/33", "10.1.0.0/24,10.2.0.0/24", "10.1.0.0/24,", "x"])(
  "%p is not",
  (text) => {
    expect(parseSubnets(text)).toBeUndefined();
  },
);
