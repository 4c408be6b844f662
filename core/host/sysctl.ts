import { readFileSync, writeFileSync } from "node:fs";
import type { SysctlObject } from "../netlink/objects.ts";

/**
 * `sysctl -w`: writes the value when it differs. Returns undefined, or why it could not (the sysctl may not exist,
 * e.g. where IPv6 is off).
 */
export function writeSysctl(object: SysctlObject): string | undefined {
  const file = `/proc/sys/${object.path}`;
  try {
    if (readFileSync(file, "utf8").trim() !== object.value) writeFileSync(file, object.value);
    return undefined;
  } catch (error) {
    return `${file}: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`;
  }
}
