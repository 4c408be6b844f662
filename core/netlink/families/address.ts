import type { DeviceNames } from "../devices.ts";
import type { AddressObject, AddressState } from "../objects.ts";
import { familyOf, type MessageBuilder, prefixLengthOf, slashOf } from "../wire/builder.ts";
import {
  AF_INET,
  AF_INET6,
  AF_UNSPEC,
  IFA_ADDRESS,
  IFA_F_DEPRECATED,
  IFA_F_PERMANENT,
  IFA_F_TEMPORARY,
  IFA_F_TENTATIVE,
  IFA_FLAGS,
  IFA_LOCAL,
  IFADDR_BYTES,
  NLM_F_CREATE,
  NLM_F_DUMP,
  NLM_F_EXCL,
  RT_SCOPE_UNIVERSE,
  RTM_DELADDR,
  RTM_GETADDR,
  RTM_NEWADDR,
} from "../wire/constants.ts";
import type { MessageCursor } from "../wire/reader.ts";

/** `ip address show [dev DEV]`; `index` 0 means every device. */
export function encodeAddressDump(builder: MessageBuilder, sequence: number, index: number): void {
  builder.begin(RTM_GETADDR, NLM_F_DUMP, sequence);
  builder.u32(AF_UNSPEC);
  builder.u32(index);
  builder.end();
}

/** `ip address add|delete ADDRESS dev DEV`. Throws Fault `NETLINK_BAD_OBJECT`. */
export function encodeAddress(
  builder: MessageBuilder,
  sequence: number,
  action: "put" | "delete",
  object: AddressObject,
  index: number,
): void {
  const { address } = object;
  const family = familyOf(address);
  const slash = slashOf(address);
  const length = prefixLengthOf(address, slash, family);
  if (action === "put") builder.begin(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, sequence);
  else builder.begin(RTM_DELADDR, 0, sequence);
  builder.u8(family === 4 ? AF_INET : AF_INET6);
  builder.u8(length);
  builder.u8(0);
  builder.u8(RT_SCOPE_UNIVERSE);
  builder.u32(index);
  builder.attributeAddress(IFA_LOCAL, address, family, slash);
  builder.attributeAddress(IFA_ADDRESS, address, family, slash);
  builder.end();
}

/** RTM_NEWADDR or RTM_DELADDR; undefined for other families and for a device that is gone. */
export function decodeAddress(message: MessageCursor, names: DeviceNames): AddressState | undefined {
  message.require(IFADDR_BYTES);
  const { view, start } = message;
  const family = view.getUint8(start);
  if (family !== AF_INET && family !== AF_INET6) return undefined;
  let flags = view.getUint8(start + 2);
  let local: string | undefined;
  let address: string | undefined;
  const attributes = message.attributes(IFADDR_BYTES);
  while (attributes.next()) {
    // IFA_ADDRESS is the far end where both are given and differ.
    if (attributes.type === IFA_LOCAL) local = attributes.address();
    else if (attributes.type === IFA_ADDRESS) address = attributes.address();
    else if (attributes.type === IFA_FLAGS) flags = attributes.u32();
  }
  const own = local ?? address;
  const dev = names.nameOf(view.getUint32(start + 4, true));
  if (own === undefined || dev === undefined) return undefined;
  return {
    dev,
    family: family === AF_INET ? 4 : 6,
    address: `${own}/${view.getUint8(start + 1)}`,
    scope: view.getUint8(start + 3),
    deprecated: (flags & IFA_F_DEPRECATED) !== 0,
    temporary: family === AF_INET6 && (flags & IFA_F_TEMPORARY) !== 0,
    tentative: (flags & IFA_F_TENTATIVE) !== 0,
    permanent: (flags & IFA_F_PERMANENT) !== 0,
  };
}
