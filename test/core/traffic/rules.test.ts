import { describe, expect, test } from "bun:test";
import { type AddressMatch, planRules, type Rule, withoutRandomPorts } from "../../../core/traffic/rules.ts";
import { INTENT } from "./machine.ts";

const FOUR = INTENT.ipv4!;

/** What a rule set does to a packet: the first rule that matches counts. */
function fate(rules: readonly Rule[], packet: { from: string; to: string; mark?: number }): string {
  const matches = (address: string, match: AddressMatch | undefined) => {
    if (!match) return true;
    const [base = "", length = ""] = match.prefix.split("/");
    const bits = (text: string) => text.split(".").reduce((sum, octet) => sum * 256 + Number(octet), 0);
    const size = 2 ** (32 - Number(length));
    const inside = Math.floor(bits(address) / size) === Math.floor(bits(base) / size);
    return inside !== (match.not ?? false);
  };
  const rule = rules.find(
    ({ mark, source, destination }) =>
      (!mark || ((packet.mark ?? 0) & mark.mask) === mark.value) &&
      matches(packet.from, source) &&
      matches(packet.to, destination),
  );
  return rule?.verdict ?? "none";
}

describe("masquerade rules", () => {
  const { masquerade } = planRules(
    4,
    { ...FOUR, masqExclude: ["192.168.0.0/16", "10.244.1.128/25"] },
    INTENT,
  );

  test.each([
    ["own pod to the world", { from: "10.244.1.5", to: "8.8.8.8" }, "masquerade-random"],
    ["own pod to an excluded network", { from: "10.244.1.5", to: "192.168.7.7" }, "return"],
    ["excluded pod to the world", { from: "10.244.1.200", to: "8.8.8.8" }, "return"],
    ["own pod to a pod elsewhere", { from: "10.244.1.5", to: "10.244.2.5" }, "return"],
    ["pod elsewhere to an own pod", { from: "10.244.2.5", to: "10.244.1.5" }, "return"],
    ["the world to an own pod", { from: "8.8.8.8", to: "10.244.1.5" }, "return"],
    ["this host to a pod elsewhere", { from: "192.0.2.1", to: "10.244.2.5" }, "masquerade-random"],
    [
      "an excluded network to a pod elsewhere",
      { from: "192.168.7.7", to: "10.244.2.5" },
      "masquerade-random",
    ],
    ["pod to multicast", { from: "10.244.1.5", to: "224.0.0.251" }, "none"],
    ["strangers", { from: "192.0.2.1", to: "8.8.8.8" }, "none"],
    ["marked by kube-proxy", { from: "10.244.1.5", to: "8.8.8.8", mark: 0x4000 }, "return"],
    ["marked by it and others", { from: "10.244.1.5", to: "8.8.8.8", mark: 0x14001 }, "return"],
    ["marked by others", { from: "10.244.1.5", to: "8.8.8.8", mark: 0x8000 }, "masquerade-random"],
  ])("%s", (_, packet, verdict) => {
    expect(fate(masquerade, packet)).toBe(verdict);
  });

  test("every one of them is reached by some packet", () => {
    const packets = ["10.244.1.5", "10.244.1.200", "10.244.2.5", "192.168.7.7", "8.8.8.8", "224.0.0.1"]
      .flatMap((from) => ["10.244.1.5", "10.244.2.5", "192.168.7.7", "8.8.8.8"].map((to) => ({ from, to })))
      .flatMap((packet) => [packet, { ...packet, mark: 0x4000 }]);
    const reached = packets.map((packet) => masquerade.findIndex((rule) => fate([rule], packet) !== "none"));
    for (const at of masquerade.keys()) expect(reached).toContain(at);
  });

  test("the excluded come before anything is masqueraded; all of it, too", () => {
    const all = planRules(4, { ...FOUR, masqExclude: ["0.0.0.0/0"] }, INTENT).masquerade;
    expect(fate(all, { from: "10.244.1.5", to: "8.8.8.8" })).toBe("return");
    expect(all.flatMap(({ source, destination }) => [source?.prefix, destination?.prefix])).not.toContain(
      "0.0.0.0/0",
    );
  });
});

test("host bits are masked off", () => {
  const wanted = { network: "10.244.7.7/16", subnet: "10.244.1.1/24", masqExclude: ["192.168.1.1/16"] };
  const plain = { ...FOUR, masqExclude: ["192.168.0.0/16"] };
  expect(planRules(4, wanted, INTENT)).toEqual(planRules(4, plain, INTENT));
});

test("each set can be off, and ports need not be random", () => {
  expect(planRules(4, FOUR, { ...INTENT, masquerade: false })).toMatchObject({ masquerade: [] });
  expect(planRules(4, FOUR, { ...INTENT, forward: false })).toMatchObject({ forward: [] });
  expect(planRules(4, FOUR, { ...INTENT, fullyRandom: false })).toEqual(
    withoutRandomPorts(planRules(4, FOUR, INTENT)),
  );
});

test.each(["10.244.0.0", "fd00::/48", ""])("%p is no network of IPv4", (network) => {
  expect(() => planRules(4, { ...FOUR, network }, INTENT)).toThrow(
    expect.objectContaining({ code: "TRAFFIC_INTENT" }),
  );
});
