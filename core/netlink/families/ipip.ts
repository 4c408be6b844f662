import type { IpipAttrs } from "../objects.ts";
import type { MessageBuilder } from "../wire/builder.ts";
import {
  IFLA_IPTUN_LOCAL,
  IFLA_IPTUN_PMTUDISC,
  IFLA_IPTUN_REMOTE,
  IFLA_IPTUN_TOS,
  IFLA_IPTUN_TTL,
} from "../wire/constants.ts";
import type { AttributeCursor } from "../wire/reader.ts";

/** How the kernel writes "any": it always tells both ends. */
const ANY = "0.0.0.0";

/**
 * The IFLA_INFO_DATA of an ipip device (linux/if_tunnel.h). TTL, TOS and PMTU discovery are always said: without them
 * the kernel would choose PMTU discovery, whose DF bit makes large packets vanish where ICMP is filtered.
 */
export function encodeIpip(builder: MessageBuilder, { local, remote, ttl, pmtudisc }: IpipAttrs): void {
  if (local !== undefined) builder.attributeAddress(IFLA_IPTUN_LOCAL, local, 4);
  if (remote !== undefined) builder.attributeAddress(IFLA_IPTUN_REMOTE, remote, 4);
  builder.attributeU8(IFLA_IPTUN_TTL, ttl ?? 0);
  builder.attributeU8(IFLA_IPTUN_TOS, 0);
  builder.attributeU8(IFLA_IPTUN_PMTUDISC, pmtudisc ? 1 : 0);
}

/** The attributes as the kernel has them; an end that is 0.0.0.0 is left out. */
export function decodeIpip(attributes: AttributeCursor): IpipAttrs {
  let local = ANY;
  let remote = ANY;
  let ttl = 0;
  let pmtudisc = false;
  while (attributes.next()) {
    if (attributes.type === IFLA_IPTUN_LOCAL) local = attributes.address();
    else if (attributes.type === IFLA_IPTUN_REMOTE) remote = attributes.address();
    else if (attributes.type === IFLA_IPTUN_TTL) ttl = attributes.u8();
    else if (attributes.type === IFLA_IPTUN_PMTUDISC) pmtudisc = attributes.u8() !== 0;
  }
  return {
    ...(local === ANY ? {} : { local }),
    ...(remote === ANY ? {} : { remote }),
    ttl,
    pmtudisc,
  };
}
