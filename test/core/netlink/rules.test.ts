import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { IMPLEMENTATIONS, openHost } from "./host.ts";

setDefaultTimeout(30_000);

describe.each(IMPLEMENTATIONS)("routing rules through %s", (_, open) => {
  test.each([4, 6] as const)("of IPv%i: the one that is meant goes, others stay", async (family) => {
    await using host = await openHost(open);
    const ip = (line: string) => host.ns.ip(`-${family} ${line}`);
    await ip("rule add priority 220 table 220");
    await ip("rule add priority 220 table 221");
    await ip("rule add priority 219 table 220");
    const rule = { priority: 220, table: 220 };
    expect(await host.kernel.deleteRule(family, rule)).toBe(true);
    const left = await ip("rule show");
    expect(left).not.toMatch(/^220:.*lookup 220/m);
    expect(left).toMatch(/^220:.*lookup 221/m);
    expect(left).toMatch(/^219:.*lookup 220/m);
    expect(await host.kernel.deleteRule(family, rule)).toBe(false);
    expect(await ip("rule show")).toBe(left);
  });
});
