import { existsSync, rmSync } from "node:fs";
import type { Host, Subnets } from "flannel/sdk";
import { DEVICE_NAMES } from "./devices.ts";
import type { KeyPlaces } from "./key-file.ts";
import { findGuards, guardOf } from "./layout.ts";

/** What is on this host of us. */
export interface Left {
  readonly devices: readonly string[];
  /** Networks with a guard. */
  readonly guards: readonly string[];
  readonly files: readonly string[];
  /** The same, one line each. */
  readonly lines: readonly string[];
}

/** The kinds our devices have: of the kernel, and of WireGuard in user space. */
const KINDS: ReadonlySet<string | undefined> = new Set(["wireguard", "tun"]);

/**
 * Devices, guards, and the key file where places are given. A file that `WIREGUARD_KEY_FILE` names is the operator's,
 * and upstream's place is upstream's.
 */
export async function findLeft({ kernel }: Host, networks: Subnets, places?: KeyPlaces): Promise<Left> {
  const links = await Promise.all(DEVICE_NAMES.map((name) => kernel.link(name)));
  const devices = links.flatMap((link) => (link && KINDS.has(link.type) ? [link.name] : []));
  const guards = await findGuards(kernel, networks);
  const files = places && places.named === undefined && existsSync(places.durable) ? [places.durable] : [];
  const lines = [
    ...devices.map((name) => `device ${name}, with the addresses, routes and entries on it`),
    ...guards.map((network) => `route blackhole ${network} metric ${guardOf(network).metric} proto 140`),
    ...files.map((file) => `file ${file}`),
  ];
  return { devices, guards, files, lines };
}

/** `ip link delete`, `ip route delete`, `rm`; what is gone already is fine. The guards go last. */
export async function removeLeft({ kernel }: Host, { devices, guards, files }: Left): Promise<void> {
  for (const name of devices) await kernel.deleteLink(name);
  await kernel.apply(guards.map((network) => ({ action: "delete", object: guardOf(network) })));
  for (const file of files) rmSync(file, { force: true });
}
