import type { Fault } from "../observe/fault.ts";
import { EEXIST, EOPNOTSUPP } from "./errno.ts";
import {
  kindUnsupportedFault,
  linkConflictFault,
  linkExistsFault,
  type Refusal,
  refusalFault,
} from "./faults.ts";
import type { Kernel } from "./kernel.ts";
import type { VxlanAttrs, WantedLink } from "./objects.ts";

/** Why a device could not be created, in the operator's terms; looks around in the kernel for what is in the way. */
export async function creationFault(
  kernel: Pick<Kernel, "link" | "links">,
  wanted: WantedLink,
  refusal: Refusal,
): Promise<Fault> {
  if (refusal.errno === EOPNOTSUPP) return kindUnsupportedFault(wanted.name, wanted.type);
  if (refusal.errno !== EEXIST) {
    return refusalFault(
      `create the ${wanted.type} device "${wanted.name}"`,
      refusal,
      "See the network config.",
    );
  }
  if (wanted.type === "wireguard" || (await kernel.link(wanted.name))) return linkExistsFault(wanted.name);
  // EEXIST without a device of that name: another one has what only one may have.
  const links = await kernel.links();
  if (wanted.type === "ipip") {
    const { local = "any", remote = "any" } = wanted.ipip;
    const holder = links.find(
      ({ ipip }) =>
        ipip !== undefined && (ipip.local ?? "any") === local && (ipip.remote ?? "any") === remote,
    );
    return linkConflictFault(wanted.name, "ipip", `local ${local}, remote ${remote}`, holder?.name);
  }
  const { vni, port } = wanted.vxlan;
  const holder = links.find(
    ({ vxlan }) =>
      vxlan?.vni === vni &&
      (port === undefined || vxlan.port === port) &&
      isOverIPv6(vxlan) === isOverIPv6(wanted.vxlan),
  );
  return linkConflictFault(wanted.name, "vxlan", refusal.text || `VNI ${vni}`, holder?.name);
}

/** VXLAN_F_IPV6 is set by an IPv6 address of either end, else the outer family is IPv4 (vxlan_config_validate()). */
function isOverIPv6({ local, group }: VxlanAttrs): boolean {
  return [local, group].some((address) => address?.includes(":"));
}

/** `mtu 1400 address 02:… up`, for messages. */
export function describeLinkChange(change: { mtu?: number; mac?: string; up?: boolean }): string {
  const parts: string[] = [];
  if (change.mtu !== undefined) parts.push(`mtu ${change.mtu}`);
  if (change.mac !== undefined) parts.push(`address ${change.mac}`);
  if (change.up !== undefined) parts.push(change.up ? "up" : "down");
  return parts.join(" ");
}
