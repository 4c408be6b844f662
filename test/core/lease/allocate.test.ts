import { expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { type AllocationRequest, chooseSubnets, isLegal } from "../../../core/lease/allocate.ts";
import type { Subnets } from "../../../core/lease/lease.ts";
import type { SubnetRanges } from "../../../core/lease/store.ts";
import { formatIPv4, parseIPv4 } from "../../../core/net/ipv4.ts";
import { formatIPv6, parseIPv6 } from "../../../core/net/ipv6.ts";
import {
  formatPrefix,
  overlaps,
  type Prefix,
  parsePrefix,
  prefix4,
  prefix6,
} from "../../../core/net/prefix.ts";
import { anySubnets, range4, range6 } from "./arbitrary.ts";
import { cost } from "./cost.ts";

// Properties and timings are only slow on a machine that is busy with other suites.
setDefaultTimeout(30_000);

function choose(request: Partial<AllocationRequest> & { ranges: SubnetRanges }): Subnets {
  const allocation = chooseSubnets({ taken: [], random: Math.random, ...request });
  if ("exhausted" in allocation) throw new Error(`exhausted: ${JSON.stringify(allocation.exhausted)}`);
  return allocation.subnets;
}

/** Every block of a small range, by walking it. */
function walk(ranges: SubnetRanges): { ipv4: string[]; ipv6: string[] } {
  const all = { ipv4: [] as string[], ipv6: [] as string[] };
  if (ranges.ipv4) {
    const { subnetMin, subnetMax, subnetLen } = ranges.ipv4;
    for (let at = parseIPv4(subnetMin)!; at <= parseIPv4(subnetMax)!; at += 2 ** (32 - subnetLen)) {
      all.ipv4.push(`${formatIPv4(at)}/${subnetLen}`);
    }
  }
  if (ranges.ipv6) {
    const { subnetMin, subnetMax, subnetLen } = ranges.ipv6;
    for (let at = parseIPv6(subnetMin)!; at <= parseIPv6(subnetMax)!; at += 1n << BigInt(128 - subnetLen)) {
      all.ipv6.push(`${formatIPv6(at)}/${subnetLen}`);
    }
  }
  return all;
}

function clear(block: string, taken: readonly Subnets[]): boolean {
  const prefix = parsePrefix(block) as Prefix;
  return !taken.some(({ ipv4, ipv6 }) =>
    [ipv4, ipv6].some((text) => text !== undefined && overlaps(prefix, parsePrefix(text) as Prefix)),
  );
}

/** Ranges of 1..40 blocks in 10.3.0.0/16 and fc00::/48, and taken subnets in, around and across them. */
const scene = fc
  .record({
    first: fc.nat(200),
    count: fc.integer({ min: 1, max: 40 }),
    families: fc.constantFrom("4", "6", "46"),
    taken: fc.array(
      fc.oneof(
        { weight: 1, arbitrary: anySubnets },
        {
          weight: 20,
          arbitrary: fc
            .tuple(fc.nat(0xffff), fc.integer({ min: 19, max: 31 }))
            .map(([low, length]) => ({ ipv4: formatPrefix(prefix4(0x0a030000 + low, length)) })),
        },
        {
          weight: 20,
          arbitrary: fc.tuple(fc.nat(0xff), fc.integer({ min: 58, max: 127 })).map(([low, length]) => ({
            ipv6: formatPrefix(prefix6((parseIPv6("fc00::") as bigint) + (BigInt(low) << 64n), length)),
          })),
        },
      ),
      { maxLength: 60 },
    ),
    random: fc.double({ min: 0, max: 1, noNaN: true }),
  })
  .map(({ first, count, families, taken, random }) => {
    const last = Math.min(first + count - 1, 255);
    const at6 = (index: number) => formatIPv6((parseIPv6("fc00::") as bigint) + (BigInt(index) << 64n));
    const ranges: SubnetRanges = {
      ...(families.includes("4") && {
        ipv4: range4({ subnetMin: `10.3.${first}.0`, subnetMax: `10.3.${last}.0` }),
      }),
      ...(families.includes("6") && { ipv6: range6({ subnetMin: at6(first), subnetMax: at6(last) }) }),
    };
    return { ranges, taken, random };
  });

test("property: the choice is free, legal, aligned; exhausted exactly when every block is taken", () => {
  fc.assert(
    fc.property(scene, ({ ranges, taken, random }) => {
      const all = walk(ranges);
      const free4 = all.ipv4.filter((block) => clear(block, taken));
      const free6 = all.ipv6.filter((block) => clear(block, taken));
      const allocation = chooseSubnets({ ranges, taken, random: () => random });
      if ("exhausted" in allocation) {
        const { family, total, used } = allocation.exhausted;
        expect(family === 4 ? free4 : free6).toEqual([]);
        expect(total).toBe(family === 4 ? all.ipv4.length : all.ipv6.length);
        expect(used).toBe(total);
        return;
      }
      const { subnets } = allocation;
      expect(isLegal(subnets, ranges)).toBeUndefined();
      if (ranges.ipv4) expect(free4).toContain(subnets.ipv4 as string);
      if (ranges.ipv6) expect(free6).toContain(subnets.ipv6 as string);
      // The rank of the random number is the rank of the block: so all free blocks are equally likely.
      if (ranges.ipv4)
        expect(subnets.ipv4).toBe(free4[Math.min(Math.floor(random * free4.length), free4.length - 1)]!);
    }),
    { numRuns: 500 },
  );
});

test("every free block beyond upstream's first 100 candidates is met about equally often", () => {
  const ranges = { ipv4: range4() };
  const taken = Array.from({ length: 55 }, (_, i) => ({ ipv4: `10.3.${i * 4 + 1}.0/24` }));
  const free = walk(ranges).ipv4.filter((block) => clear(block, taken));
  expect(free.length).toBe(200);
  const rounds = 20_000;
  const met = new Map<string, number>();
  for (let round = 0; round < rounds; round++) {
    const { ipv4 } = choose({ ranges, taken });
    met.set(ipv4 as string, (met.get(ipv4 as string) ?? 0) + 1);
  }
  expect([...met.keys()].sort()).toEqual([...free].sort());
  const expected = rounds / free.length;
  const chiSquare = free.reduce((sum, block) => sum + ((met.get(block) ?? 0) - expected) ** 2 / expected, 0);
  // 199 degrees of freedom: above 310 less than once in a million runs.
  expect(chiSquare).toBeLessThan(310);
});

test("families are chosen independently of each other", () => {
  const numbers = [0, 0.999];
  const subnets = choose({ ranges: { ipv4: range4(), ipv6: range6() }, random: () => numbers.shift() ?? 0 });
  expect(subnets).toEqual({ ipv4: "10.3.1.0/24", ipv6: "fc00:0:0:ffbe::/64" });
});

test("never-used blocks come first, then the ones free for longest", () => {
  const ranges = { ipv4: range4({ subnetMax: "10.3.4.0" }) };
  const freed = (block: number, freedAt: number) => ({ subnets: { ipv4: `10.3.${block}.0/24` }, freedAt });
  const recentlyFreed = [freed(1, 50), freed(2, 10), freed(1, 5), freed(4, 30)];
  const taken: Subnets[] = [];
  const order: string[] = [];
  for (let i = 0; i < 4; i++) {
    const subnets = choose({ ranges, taken, recentlyFreed });
    order.push(subnets.ipv4 as string);
    taken.push(subnets);
  }
  expect(order).toEqual(["10.3.3.0/24", "10.3.2.0/24", "10.3.4.0/24", "10.3.1.0/24"]);
  expect(chooseSubnets({ ranges, taken, recentlyFreed, random: Math.random })).toHaveProperty("exhausted");
});

test("the whole address space, its ends and a reversed range", () => {
  const top = {
    ipv4: range4({ network: "255.255.0.0/16", subnetMin: "255.255.255.0", subnetMax: "255.255.255.0" }),
  };
  expect(choose({ ranges: top })).toEqual({ ipv4: "255.255.255.0/24" });
  const all = {
    ipv4: range4({ network: "0.0.0.0/0", subnetLen: 30, subnetMin: "0.0.0.0", subnetMax: "255.255.255.252" }),
  };
  expect(choose({ ranges: all, random: () => 1 })).toEqual({ ipv4: "255.255.255.252/30" });
  const reversed = { ipv4: range4({ subnetMin: "10.3.9.0", subnetMax: "10.3.8.0" }) };
  expect(chooseSubnets({ ranges: reversed, taken: [], random: Math.random })).toMatchObject({
    exhausted: { family: 4, total: 0, used: 0 },
  });
  const huge = {
    ipv6: range6({
      network: "::/0",
      subnetLen: 126,
      subnetMin: "::",
      subnetMax: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffc",
    }),
  };
  expect(isLegal(choose({ ranges: huge }), huge)).toBeUndefined();
});

test("20,000 taken, in a /8 of /30 blocks or in IPv6, cost no walk through the blocks", () => {
  const at4 = (index: number) => `${formatIPv4(0x0a000000 + ((index * 7919) % 4_194_304) * 4)}/30`;
  const at6 = (index: number) => `fc00:0:0:${((index * 7919) % 65_536).toString(16)}::/64`;
  const wide = range4({
    network: "10.0.0.0/8",
    subnetLen: 30,
    subnetMin: "10.0.0.4",
    subnetMax: "10.255.255.252",
  });
  const taken4 = Array.from({ length: 20_000 }, (_, i) => ({ ipv4: at4(i) }));
  const taken6 = Array.from({ length: 20_000 }, (_, i) => ({ ipv6: at6(i) }));
  expect(cost("allocate IPv4", () => choose({ ranges: { ipv4: wide }, taken: taken4 }))).toBeLessThan(6);
  expect(cost("allocate IPv6", () => choose({ ranges: { ipv6: range6() }, taken: taken6 }))).toBeLessThan(15);
});

test.each<[Subnets, SubnetRanges, string | undefined]>([
  [{ ipv4: "10.3.1.0/24" }, { ipv4: range4() }, undefined],
  [{ ipv4: "10.3.255.0/24" }, { ipv4: range4() }, undefined],
  [{ ipv4: "10.3.0.0/24" }, { ipv4: range4() }, "lies outside"],
  [{ ipv4: "10.4.1.0/24" }, { ipv4: range4() }, "lies outside"],
  [{ ipv4: "10.3.1.0/25" }, { ipv4: range4() }, "is a /25, the network config gives out /24"],
  [{ ipv4: "10.3.1.0/24", ipv6: "fc00:0:0:1::/64" }, { ipv4: range4() }, "has IPv6 off"],
  [{ ipv4: "10.3.1.0/24" }, { ipv4: range4(), ipv6: range6() }, "no IPv6 subnet"],
  [{ ipv4: "10.3.1.0/24", ipv6: "fc00:0:0:1::/64" }, { ipv4: range4(), ipv6: range6() }, undefined],
  [{ ipv4: "10.3.1.0/24", ipv6: "fc00::/64" }, { ipv4: range4(), ipv6: range6() }, "lies outside"],
  [{ ipv6: "fc00:0:0:1::/64" }, { ipv6: range6() }, undefined],
  [{ ipv6: "fc00:0:0:1::/64" }, { ipv4: range4(), ipv6: range6() }, "no IPv4 subnet"],
  [{ ipv4: "junk" }, { ipv4: range4() }, "not an IPv4 prefix"],
])("legal or not, case %#", (subnets, ranges, reason) => {
  const found = isLegal(subnets, ranges);
  if (reason === undefined) expect(found).toBeUndefined();
  else expect(found).toContain(reason);
});
