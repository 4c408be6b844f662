import type { ExternalInterface } from "../../plugins/sdk/facts.ts";
import type { NodeIdentity } from "../host/node-id.ts";
import type { Families, LeaseAttrs, LeaseData } from "../lease/lease.ts";

/** What the own lease says: the addresses peers use, the backend's data, and who we are. */
export function composeAttrs(
  data: LeaseData,
  external: ExternalInterface,
  families: Families,
  identity: NodeIdentity,
): LeaseAttrs {
  return {
    backendType: data.backendType,
    ...(families.ipv4 && external.publicIP !== undefined ? { publicIP: external.publicIP } : {}),
    ...(families.ipv6 && external.publicIPv6 !== undefined ? { publicIPv6: external.publicIPv6 } : {}),
    ...(data.ipv4 === undefined ? {} : { backendData: data.ipv4 }),
    ...(data.ipv6 === undefined ? {} : { backendV6Data: data.ipv6 }),
    nodeId: identity.nodeId,
    bootId: identity.bootId,
  };
}
