import type { VxlanAttrs } from "../objects.ts";
import { familyOf, type MessageBuilder } from "../wire/builder.ts";
import {
  IFLA_VXLAN_GBP,
  IFLA_VXLAN_GROUP,
  IFLA_VXLAN_GROUP6,
  IFLA_VXLAN_ID,
  IFLA_VXLAN_L2MISS,
  IFLA_VXLAN_L3MISS,
  IFLA_VXLAN_LEARNING,
  IFLA_VXLAN_LINK,
  IFLA_VXLAN_LOCAL,
  IFLA_VXLAN_LOCAL6,
  IFLA_VXLAN_PORT,
  IFLA_VXLAN_PROXY,
  IFLA_VXLAN_RSC,
  IFLA_VXLAN_TOS,
  IFLA_VXLAN_TTL,
  IFLA_VXLAN_UDP_ZERO_CSUM6_RX,
  IFLA_VXLAN_UDP_ZERO_CSUM6_TX,
} from "../wire/constants.ts";
import type { AttributeCursor } from "../wire/reader.ts";

/** vxlan attributes with the underlay as an index. */
export interface RawVxlan {
  readonly attrs: Omit<VxlanAttrs, "underlay">;
  readonly underlay?: number;
}

/**
 * The IFLA_INFO_DATA of a vxlan device. What upstream sends explicitly (learning off, ttl, tos, proxy and the like
 * 0) is explicit here too, so that no changed kernel default can slip in; the port only when it is given, the gbp
 * flag only when true.
 */
export function encodeVxlan(builder: MessageBuilder, vxlan: VxlanAttrs, underlay: number | undefined): void {
  builder.attributeU32(IFLA_VXLAN_ID, vxlan.vni);
  if (underlay !== undefined) builder.attributeU32(IFLA_VXLAN_LINK, underlay);
  if (vxlan.local !== undefined) {
    builder.attributeAddress(familyOf(vxlan.local) === 4 ? IFLA_VXLAN_LOCAL : IFLA_VXLAN_LOCAL6, vxlan.local);
  }
  if (vxlan.group !== undefined) {
    builder.attributeAddress(familyOf(vxlan.group) === 4 ? IFLA_VXLAN_GROUP : IFLA_VXLAN_GROUP6, vxlan.group);
  }
  builder.attributeU8(IFLA_VXLAN_TTL, 0);
  builder.attributeU8(IFLA_VXLAN_TOS, 0);
  builder.attributeU8(IFLA_VXLAN_LEARNING, vxlan.learning ? 1 : 0);
  builder.attributeU8(IFLA_VXLAN_PROXY, 0);
  builder.attributeU8(IFLA_VXLAN_RSC, 0);
  builder.attributeU8(IFLA_VXLAN_L2MISS, vxlan.l2miss ? 1 : 0);
  builder.attributeU8(IFLA_VXLAN_L3MISS, 0);
  builder.attributeU8(IFLA_VXLAN_UDP_ZERO_CSUM6_TX, 0);
  builder.attributeU8(IFLA_VXLAN_UDP_ZERO_CSUM6_RX, 0);
  if (vxlan.port !== undefined && vxlan.port > 0) builder.attributePort(IFLA_VXLAN_PORT, vxlan.port);
  if (vxlan.gbp) builder.attributeFlag(IFLA_VXLAN_GBP);
}

/** The attributes as the kernel has them; switches are always present, also when off. */
export function decodeVxlan(attributes: AttributeCursor): RawVxlan {
  let vni = 0;
  let underlay = 0;
  let local: string | undefined;
  let group: string | undefined;
  let port: number | undefined;
  let learning = false;
  let l2miss = false;
  let gbp = false;
  while (attributes.next()) {
    switch (attributes.type) {
      case IFLA_VXLAN_ID:
        vni = attributes.u32();
        break;
      case IFLA_VXLAN_LINK:
        underlay = attributes.u32();
        break;
      case IFLA_VXLAN_LOCAL:
      case IFLA_VXLAN_LOCAL6:
        local = attributes.address();
        break;
      case IFLA_VXLAN_GROUP:
      case IFLA_VXLAN_GROUP6:
        group = attributes.address();
        break;
      case IFLA_VXLAN_PORT:
        port = attributes.port();
        break;
      case IFLA_VXLAN_LEARNING:
        learning = attributes.u8() !== 0;
        break;
      case IFLA_VXLAN_L2MISS:
        l2miss = attributes.u8() !== 0;
        break;
      case IFLA_VXLAN_GBP:
        gbp = true;
        break;
    }
  }
  const attrs = {
    vni,
    ...(local === undefined ? {} : { local }),
    ...(port === undefined ? {} : { port }),
    learning,
    gbp,
    ...(group === undefined ? {} : { group }),
    l2miss,
  };
  return underlay === 0 ? { attrs } : { attrs, underlay };
}
