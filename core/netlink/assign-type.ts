import { readFileSync } from "node:fs";

/**
 * NET_ADDR_* of a device (who chose its MAC), from /sys/class/net: rtnetlink does not carry it. Undefined where sysfs
 * is missing or shows another network namespace, which the index tells.
 */
export function readAddressAssignType(name: string, index: number): number | undefined {
  if (readNumber(name, "ifindex") !== index) return undefined;
  return readNumber(name, "addr_assign_type");
}

function readNumber(name: string, file: string): number | undefined {
  try {
    const value = Number(readFileSync(`/sys/class/net/${name}/${file}`, "utf8"));
    return Number.isInteger(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
