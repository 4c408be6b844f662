import { containsPrefix, type Prefix, parsePrefix } from "../net/prefix.ts";
import type { Kernel } from "../netlink/kernel.ts";
import type { Log } from "../observe/log.ts";
import { findStaleDevices } from "./device.ts";

/** `ip link delete`: removes devices an earlier configuration of this very network left behind, and says so. */
export async function removeStaleDevices(
  kernel: Kernel,
  wanted: ReadonlySet<string>,
  networks: readonly Prefix[],
  log: Log,
): Promise<void> {
  const inOurs = (await kernel.addresses()).filter(({ address }) => {
    const prefix = parsePrefix(address);
    return prefix !== undefined && networks.some((network) => containsPrefix(network, prefix));
  });
  const devices = new Set(inOurs.map((address) => address.dev));
  for (const name of findStaleDevices(await kernel.links(), wanted, devices)) {
    await kernel.deleteLink(name);
    log.info(`removed device ${name}, left by an earlier configuration`);
  }
}
