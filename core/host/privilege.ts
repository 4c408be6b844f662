import { readFileSync } from "node:fs";
import { Fault } from "../observe/fault.ts";

/** Bit of CAP_NET_ADMIN in the capability masks (linux/capability.h). */
const CAP_NET_ADMIN = 12n;

/** Whether the effective capabilities in the text of /proc/self/status include CAP_NET_ADMIN. */
export function hasNetAdmin(status: string): boolean {
  const mask = /^CapEff:\s*([0-9a-f]+)/m.exec(status)?.[1];
  return mask === undefined || ((BigInt(`0x${mask}`) >> CAP_NET_ADMIN) & 1n) === 1n;
}

/** Throws Fault `PRIVILEGE_MISSING` when this process may not change the network. */
export function requireNetAdmin(): void {
  let status: string;
  try {
    status = readFileSync("/proc/self/status", "utf8");
  } catch {
    return;
  }
  if (hasNetAdmin(status)) return;
  throw new Fault(
    "PRIVILEGE_MISSING",
    "this process lacks CAP_NET_ADMIN, so it cannot change devices and routes",
    {
      hint: "Run flanneld as root, or give it the capability (systemd: AmbientCapabilities=CAP_NET_ADMIN).",
    },
  );
}
