import type { CloudBackend } from "../../plugins/sdk/cloud.ts";
import type { NetworkConfig } from "../config/network.ts";
import type { CloudDriver, CloudInput } from "../dataplane/cloud/driver.ts";
import { leftRoutesFinding, readLeftRoutes } from "../dataplane/cloud/left-routes.ts";
import type { LeaseRange } from "../dataplane/cloud/plan.ts";
import { parsePrefix } from "../net/prefix.ts";
import type { Health } from "../observe/health.ts";

/** The driver of a cloud backend; its code is imported now, other backends do without. */
export async function openCloudDriver(
  backend: CloudBackend,
  config: NetworkConfig,
  input: Omit<CloudInput, "backend" | "ranges">,
): Promise<CloudDriver> {
  const { CloudDriver } = await import("../dataplane/cloud/driver.ts");
  return new CloudDriver({ ...input, backend, ranges: leaseRangesOf(config) });
}

/** Raises `CLOUD_ROUTES_LEFT` where another backend left routes of this node in a cloud. */
export function reportLeftRoutes(file: string, backend: string, health: Health): void {
  const left = readLeftRoutes(file);
  if (left !== undefined && left.backend !== backend) health.raise(leftRoutesFinding(file, left));
}

/** The cluster networks with the prefix length of their leases. */
export function leaseRangesOf({ ipv4, ipv6 }: Pick<NetworkConfig, "ipv4" | "ipv6">): readonly LeaseRange[] {
  return [ipv4, ipv6].flatMap((range) => {
    const network = range && parsePrefix(range.network);
    return network ? [{ network, subnetLen: range.subnetLen }] : [];
  });
}
