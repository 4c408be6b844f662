import { describe, expect, test } from "bun:test";
import type { Families } from "flannel/sdk";
import { devicesOf, podMtu } from "../../../backends/wireguard/devices.ts";
import { optionFindings } from "../../../backends/wireguard/findings.ts";
import { derivePublicKey, generatePrivateKey, isPublicKey } from "../../../backends/wireguard/key.ts";
import { options } from "../../../backends/wireguard/options.ts";
import { FACTS } from "../facts.ts";
import { DUAL, IPV4, IPV6, keyOf, optionsWith } from "./leases.ts";

const issuesOf = (raw: Readonly<Record<string, unknown>>) => {
  const result = options["~standard"].validate(raw);
  return result instanceof Promise ? [] : (result.issues ?? []).map(({ message }) => message);
};

describe("options", () => {
  test("have upstream's names and defaults", () => {
    expect(optionsWith()).toEqual({
      ListenPort: 51820,
      ListenPortV6: 51821,
      MTU: 0,
      PSK: "",
      PersistentKeepaliveInterval: 0,
      Mode: "separate",
    });
  });

  test.each([
    ["short", Buffer.alloc(31, 1).toString("base64")],
    ["long", Buffer.alloc(33, 1).toString("base64")],
    ["hex", Buffer.alloc(32, 1).toString("hex")],
    ["base64url", Buffer.alloc(32, 0xff).toString("base64url")],
    ["with a line end", `${keyOf(1)}\n`],
    ["a number", 12345],
  ])("a PSK that is %s is refused without being shown", (_, PSK) => {
    const issues = issuesOf({ PSK });
    expect(issues).toHaveLength(1);
    expect(issues[0]).toContain("wg genpsk");
    expect(issues[0]).not.toContain(String(PSK));
  });

  test("a mode is one of four, in any case; ports and intervals have 16 bits", () => {
    expect(optionsWith({ Mode: "IPv6" }).Mode).toBe("ipv6");
    expect(issuesOf({ Mode: "both" })).toEqual(['Mode must be "separate", "auto", "ipv4" or "ipv6"']);
    expect(issuesOf({ ListenPort: 0, ListenPortV6: 65536, PersistentKeepaliveInterval: -1 })).toHaveLength(3);
    expect(issuesOf({ MTU: 600 })).toHaveLength(1);
  });
});

describe("devices", () => {
  test("are one per family in mode separate, else one for both", () => {
    const [v4, v6] = [
      { name: "flannel-wg", port: 51820, carries: ["ipv4"] },
      { name: "flannel-wg-v6", port: 51821, carries: ["ipv6"] },
    ] as const;
    expect(devicesOf(optionsWith(), DUAL)).toEqual([v4, v6]);
    expect(devicesOf(optionsWith(), IPV6)).toEqual([v6]);
    expect(devicesOf(optionsWith({ Mode: "auto", ListenPort: 7 }), DUAL)).toEqual([
      { name: "flannel-wg", port: 7, carries: ["ipv4", "ipv6"] },
    ]);
    expect(devicesOf(optionsWith({ Mode: "ipv6" }), IPV4)).toEqual([
      { name: "flannel-wg", port: 51820, carries: ["ipv4"] },
    ]);
  });

  test("leave 80 bytes for the encapsulation, of the interface or of a lower option", () => {
    expect(podMtu(optionsWith(), FACTS)).toBe(1420);
    expect(podMtu(optionsWith({ MTU: 1400 }), FACTS)).toBe(1320);
    expect(podMtu(optionsWith({ MTU: 9000 }), FACTS)).toBe(1420);
  });

  test("that do not fit the host or the network are findings", () => {
    const codes = (raw: Readonly<Record<string, unknown>>, families: Families) =>
      optionFindings(optionsWith(raw), families, FACTS).map(({ code, severity }) => `${severity} ${code}`);
    expect(codes({}, DUAL)).toEqual([]);
    expect(codes({ MTU: 9000 }, IPV4)).toEqual(["warning WIREGUARD_MTU_CLAMPED"]);
    expect(codes({ MTU: 1300 }, DUAL)).toEqual(["error WIREGUARD_MTU_IPV6"]);
    expect(codes({ MTU: 1300 }, IPV4)).toEqual([]);
    expect(codes({ Mode: "ipv4" }, IPV6)).toEqual(["error WIREGUARD_MODE"]);
    expect(codes({ Mode: "auto" }, IPV6)).toEqual([]);
    expect(codes({ ListenPort: 51821 }, DUAL)).toEqual(["error WIREGUARD_PORTS_EQUAL"]);
    expect(codes({ ListenPort: 51821 }, IPV4)).toEqual([]);
    expect(codes({ ListenPort: 51821, Mode: "auto" }, DUAL)).toEqual([]);
  });
});

describe("keys", () => {
  test("are derived as `wg pubkey` does it", () => {
    const secret = Buffer.from(Array.from({ length: 32 }, (_, n) => n)).toString("base64");
    expect(derivePublicKey(secret)).toBe("j0DFrbaPJWJK5bIU6nZ6bslNgp09e14a0bpvPiE4KF8=");
    expect(() => derivePublicKey("c2VjcmV0")).toThrow("not a WireGuard key");
  });

  test("made anew are clamped and differ", () => {
    const keys = Array.from({ length: 20 }, generatePrivateKey);
    expect(new Set(keys).size).toBe(20);
    for (const key of keys) {
      const bytes = Buffer.from(key, "base64");
      expect([bytes.length, (bytes[0] ?? 0) & 7, (bytes[31] ?? 0) & 0xc0]).toEqual([32, 0, 0x40]);
      expect(isPublicKey(derivePublicKey(key))).toBe(true);
    }
  });

  test("all zeros, other lengths and other types are none", () => {
    for (const value of [Buffer.alloc(32).toString("base64"), "", "x", 7, null, keyOf(3).slice(0, -1)]) {
      expect(isPublicKey(value)).toBe(false);
    }
  });
});
