import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { writeSysctl } from "../../../core/host/sysctl.ts";

test("a value that is already so is not written", () => {
  // Read-only even for root: a write would fail.
  const value = readFileSync("/proc/sys/kernel/ostype", "utf8").trim();
  expect(writeSysctl({ kind: "sysctl", path: "kernel/ostype", value })).toBeUndefined();
  expect(writeSysctl({ kind: "sysctl", path: "kernel/ostype", value: "Plan 9" })).toMatch(
    /^\/proc\/sys\/kernel\/ostype: E\w+$/,
  );
});

test("one that does not exist is told, not thrown", () => {
  const missing = { kind: "sysctl", path: "net/ipv6/conf/no-such-device/accept_ra", value: "0" } as const;
  expect(writeSysctl(missing)).toBe("/proc/sys/net/ipv6/conf/no-such-device/accept_ra: ENOENT");
});
