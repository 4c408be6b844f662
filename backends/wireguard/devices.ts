import type { Families, HostFacts } from "flannel/sdk";
import type { Options } from "./options.ts";

/** Bytes of encapsulation: outer IPv6 40, UDP 8, WireGuard's header 16 and its tag 16; 20 less over IPv4. */
const OVERHEAD = 80;

export type Family = "ipv4" | "ipv6";

/** A WireGuard device of this node. */
export interface Device {
  readonly name: string;
  readonly port: number;
  /** Families of the pods whose packets go through it. */
  readonly carries: readonly Family[];
}

/** Names of the devices, as upstream has them. */
export const DEVICE_NAMES = ["flannel-wg", "flannel-wg-v6"] as const;

/** The families that are on. */
export function familiesOf(families: Families): readonly Family[] {
  return (["ipv4", "ipv6"] as const).filter((family) => families[family]);
}

/** In mode `separate` one device per family, else one for both. */
export function devicesOf(
  { Mode, ListenPort, ListenPortV6 }: Options,
  families: Families,
): readonly Device[] {
  const [name, nameV6] = DEVICE_NAMES;
  if (Mode !== "separate") return [{ name, port: ListenPort, carries: familiesOf(families) }];
  return familiesOf(families).map((family) =>
    family === "ipv4"
      ? { name, port: ListenPort, carries: [family] }
      : { name: nameV6, port: ListenPortV6, carries: [family] },
  );
}

/** MTU of the devices and of pods: that of the option, never more than the external interface carries, less 80. */
export function podMtu({ MTU }: Options, { external }: HostFacts): number {
  return (MTU > 0 ? Math.min(MTU, external.mtu) : external.mtu) - OVERHEAD;
}
