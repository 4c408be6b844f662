import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { type NetworkConfig, readNetworkConfig } from "../../../core/config/network.ts";
import type { SubnetRange } from "../../../core/lease/store.ts";
import { formatIPv4 } from "../../../core/net/ipv4.ts";
import { formatIPv6 } from "../../../core/net/ipv6.ts";
import { containsPrefix, formatPrefix, parsePrefix, prefix4, prefix6 } from "../../../core/net/prefix.ts";
import { Fault } from "../../../core/observe/fault.ts";

// Many runs on a busy machine take longer than the 5 s Bun grants.
setDefaultTimeout(60_000);

/** Work done since `before`, which unlike the clock does not depend on what else the machine does. */
function cpuMilliseconds(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

const octets = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const wide = fc.bigInt({ min: 0n, max: (1n << 128n) - 1n });

/** Configs around the borders of what is legal. */
const configs4 = fc
  .tuple(
    octets,
    fc.integer({ min: 0, max: 32 }),
    fc.option(fc.integer({ min: 0, max: 33 })),
    fc.option(octets),
    fc.option(octets),
    fc.boolean(),
  )
  .map(([address, length, subnetLen, min, max, near]) => {
    const { base } = prefix4(address, length);
    // Bounds that lie in the network and on a likely boundary, or anywhere at all.
    const bound = (at: number) =>
      formatIPv4(
        near
          ? prefix4((base + (at % 2 ** (32 - length))) >>> 0, subnetLen ? Math.min(subnetLen, 32) : 24).base
          : at,
      );
    return {
      Network: `${formatIPv4(address)}/${length}`,
      ...(subnetLen === null ? {} : { SubnetLen: subnetLen }),
      ...(min === null ? {} : { SubnetMin: bound(min) }),
      ...(max === null ? {} : { SubnetMax: bound(max) }),
    };
  });

const configs6 = fc
  .tuple(
    wide,
    fc.integer({ min: 0, max: 128 }),
    fc.option(fc.integer({ min: 0, max: 129 })),
    fc.option(wide),
    fc.option(wide),
    fc.boolean(),
  )
  .map(([address, length, subnetLen, min, max, near]) => {
    const { base } = prefix6(address, length);
    const bound = (at: bigint) =>
      formatIPv6(
        near
          ? prefix6(base + (at % (1n << BigInt(128 - length))), subnetLen ? Math.min(subnetLen, 128) : 64)
              .base
          : at,
      );
    return {
      EnableIPv6: true,
      IPv6Network: `${formatIPv6(address)}/${length}`,
      ...(subnetLen === null ? {} : { IPv6SubnetLen: subnetLen }),
      ...(min === null ? {} : { IPv6SubnetMin: bound(min) }),
      ...(max === null ? {} : { IPv6SubnetMax: bound(max) }),
    };
  });

function readOrFault(text: string): NetworkConfig | Fault {
  try {
    return readNetworkConfig(text, "net.json").config;
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
}

function checkRange(range: SubnetRange, longest: number): void {
  const network = parsePrefix(range.network)!;
  expect(formatPrefix(network)).toBe(range.network);
  expect(network.length).toBeGreaterThan(0);
  expect(range.subnetLen).toBeGreaterThanOrEqual(network.length + 2);
  expect(range.subnetLen).toBeLessThanOrEqual(longest);
  const [min, max] = [range.subnetMin, range.subnetMax].map((address) => {
    const subnet = parsePrefix(`${address}/${range.subnetLen}`)!;
    expect(formatPrefix(subnet)).toBe(`${address}/${range.subnetLen}`);
    expect(containsPrefix(network, subnet)).toBe(true);
    return subnet.base;
  });
  expect(min! <= max!).toBe(true);
}

function checkConfig(config: NetworkConfig): void {
  expect(config.families.ipv4 || config.families.ipv6).toBe(true);
  expect(config.ipv4 !== undefined).toBe(config.families.ipv4);
  expect(config.ipv6 !== undefined).toBe(config.families.ipv6);
  if (config.ipv4) checkRange(config.ipv4, 30);
  if (config.ipv6) checkRange(config.ipv6, 126);
  expect(config.backend.type).toBe(config.backend.typeAsWritten.toLowerCase());
  expect(config.backend.type).not.toBe("");
  expect(structuredClone(config)).toEqual(config);
}

/** The config with every named key set to the value its message proposes. */
function applyProposals(config: Record<string, unknown>, fault: Fault): Record<string, unknown> | undefined {
  const repaired = { ...config };
  for (const { message } of [fault, ...fault.others.filter(({ code }) => code === "CONFIG_INVALID")]) {
    const [, key, value] = /key "(\w+)".*; nearest legal value is (\S+)$/.exec(message) ?? [];
    if (key === undefined || value === undefined) return undefined;
    repaired[key] = key.endsWith("Len") ? Number(value) : value;
  }
  return repaired;
}

describe("every config is either refused with a fault or sound", () => {
  for (const [family, configs] of [
    ["IPv4", configs4],
    ["IPv6", configs6],
  ] as const) {
    test(family, () => {
      let accepted = 0;
      fc.assert(
        fc.property(configs, (config) => {
          const full = family === "IPv4" ? config : { EnableIPv4: false, ...config };
          const result = readOrFault(JSON.stringify(full));
          if (result instanceof Fault) expect(result.code).toBe("CONFIG_INVALID");
          else checkConfig(result);
          if (!(result instanceof Fault)) accepted++;
        }),
        { numRuns: 2_000 },
      );
      expect(accepted).toBeGreaterThan(100);
    });

    test(`${family}: following every "nearest legal value" gives a legal config`, () => {
      fc.assert(
        fc.property(configs, (config) => {
          let full: Record<string, unknown> = family === "IPv4" ? config : { EnableIPv4: false, ...config };
          // The network first, then what depends on it.
          for (let round = 0; round < 2; round++) {
            const result = readOrFault(JSON.stringify(full));
            if (!(result instanceof Fault)) return;
            const repaired = applyProposals(full, result);
            if (!repaired) {
              expect(result.message).toMatch(/whole address space|IPv6 form/);
              return;
            }
            full = repaired;
          }
          const result = readOrFault(JSON.stringify(full));
          expect(result instanceof Fault ? result.message : "").toBe("");
        }),
        { numRuns: 2_000 },
      );
    });
  }
});

describe("fuzz: a fault or a sound config, nothing else", () => {
  const settle = (text: string): void => {
    const result = readOrFault(text);
    if (result instanceof Fault) {
      expect(result.message).toMatch(/^net\.json:/);
      for (const other of result.others) expect(other).toBeInstanceOf(Fault);
    } else checkConfig(result);
  };

  test("arbitrary bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => settle(new TextDecoder().decode(bytes))),
      { numRuns: 2_000 },
    );
  });

  test("arbitrary JSON under known keys", () => {
    const keys = fc.constantFrom(
      "Network",
      "network",
      "SubnetLen",
      "SubnetMin",
      "SubnetMax",
      "IPv6Network",
      "EnableIPv6",
      "EnableIPv4",
      "IPv6SubnetLen",
      "Backend",
      "Type",
      "__proto__",
      "constructor",
    );
    const values = fc.oneof(
      fc.jsonValue({ maxDepth: 3 }),
      fc.constantFrom("10.3.0.0/16", "fd00::/48", { Type: "vxlan" }, 24, true, "10.3.1.0"),
    );
    fc.assert(
      fc.property(fc.dictionary(keys, values), (config) => settle(JSON.stringify(config))),
      { numRuns: 3_000 },
    );
  });

  test("a valid document with characters changed, removed and added", () => {
    const valid =
      '{"EnableIPv6":true,"Network":"10.3.0.0/16","SubnetLen":24,"IPv6Network":"fd00::/48","SubnetMin":"10.3.1.0","Backend":{"Type":"vxlan","VNI":1}}';
    const edits = fc.array(
      fc.tuple(
        fc.nat(valid.length),
        fc.nat(2),
        fc.constantFrom(..."{}[]\":,0123456789.-+eE\\/ \n'#xN\u0000\ud800é"),
      ),
      { minLength: 1, maxLength: 4 },
    );
    fc.assert(
      fc.property(edits, (list) => {
        settle(
          list.reduce(
            (text, [at, removed, added]) => text.slice(0, at) + added + text.slice(at + removed),
            valid,
          ),
        );
      }),
      { numRuns: 5_000 },
    );
  });

  test("large hostile documents take bounded time", () => {
    const long = "x".repeat(1_400_000);
    const before = process.cpuUsage();
    settle(`{"${long}": 1}`);
    settle(`{"Network": "${long}"}`);
    settle(`{"Network": "${"1.".repeat(700_000)}"}`);
    settle(`{"Network": "${":".repeat(700_000)}"}`);
    settle(`{"SubnetLen": ${"9".repeat(1_400_000)}, "Network": "10.3.0.0/16"}`);
    settle(`{${'"ab":1,'.repeat(200_000)}"Network":"10.3.0.0/16"}`);
    settle(`{"Backend":{"Type":"${long}"},"Network":"10.3.0.0/16"}`);
    expect(cpuMilliseconds(before)).toBeLessThan(10_000);
  });
});
