import { formatIPv4 } from "../../net/ipv4.ts";
import { formatIPv6 } from "../../net/ipv6.ts";
import { malformedFault } from "../faults.ts";
import { AF_INET, AF_INET6 } from "../wire/constants.ts";
import type { AttributeCursor, MessageCursor } from "../wire/reader.ts";
import type { XfrmDirection, XfrmPolicyState, XfrmState, XfrmTunnel } from "../xfrm-objects.ts";
import { DIRECTIONS } from "./xfrm.ts";
import {
  ADDRESS_BYTES,
  IPPROTO_ESP,
  POLICY_BYTES,
  POLICY_DIRECTION_AT,
  STATE_BYTES,
  STATE_ID_AT,
  STATE_REQID_AT,
  STATE_SOURCE_AT,
  TEMPLATE_BYTES,
  XFRM_MODE_TRANSPORT,
  XFRM_MODE_TUNNEL,
  XFRMA_TMPL,
} from "./xfrm-constants.ts";

/** struct xfrm_userpolicy_info with its template; undefined for a policy of a socket or of another family. */
export function decodePolicy(message: MessageCursor): XfrmPolicyState | undefined {
  const attributes = message.attributes(POLICY_BYTES);
  const { view, start } = message;
  const family = view.getUint16(start + 40, true);
  const number = view.getUint8(start + POLICY_DIRECTION_AT);
  const direction = (Object.keys(DIRECTIONS) as XfrmDirection[]).find((name) => DIRECTIONS[name] === number);
  if (direction === undefined || !isKnown(family)) return undefined;
  const policy = {
    src: `${addressAt(view, start + ADDRESS_BYTES, family)}/${view.getUint8(start + 43)}`,
    dst: `${addressAt(view, start, family)}/${view.getUint8(start + 42)}`,
    direction,
  };
  while (attributes.next()) {
    if (attributes.type !== XFRMA_TMPL) continue;
    const tunnel = decodeTemplates(attributes);
    return tunnel ? { ...policy, tunnel } : policy;
  }
  return policy;
}

/** The one template of a policy, undefined when there are more or when it is no ESP tunnel. */
function decodeTemplates(attributes: AttributeCursor): XfrmTunnel | undefined {
  if (attributes.length !== TEMPLATE_BYTES) return undefined;
  const bytes = attributes.take(TEMPLATE_BYTES);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const family = view.getUint16(24, true);
  if (view.getUint8(20) !== IPPROTO_ESP || view.getUint8(48) !== XFRM_MODE_TUNNEL || !isKnown(family)) {
    return undefined;
  }
  return {
    src: addressAt(view, 28, family),
    dst: addressAt(view, 0, family),
    reqid: view.getUint32(44, true),
  };
}

/** struct xfrm_usersa_info; undefined for another family. The keys behind it are not read. */
export function decodeState(message: MessageCursor): XfrmState | undefined {
  message.require(STATE_BYTES);
  const { view, start } = message;
  const family = view.getUint16(start + STATE_REQID_AT + 4, true);
  if (!isKnown(family)) return undefined;
  const mode = view.getUint8(start + STATE_REQID_AT + 6);
  return {
    src: addressAt(view, start + STATE_SOURCE_AT, family),
    dst: addressAt(view, start + STATE_ID_AT, family),
    spi: view.getUint32(start + STATE_ID_AT + ADDRESS_BYTES, false),
    protocol: view.getUint8(start + STATE_ID_AT + ADDRESS_BYTES + 4),
    reqid: view.getUint32(start + STATE_REQID_AT, true),
    mode: mode === XFRM_MODE_TUNNEL ? "tunnel" : mode === XFRM_MODE_TRANSPORT ? "transport" : "other",
  };
}

function isKnown(family: number): boolean {
  return family === AF_INET || family === AF_INET6;
}

function addressAt(view: DataView, at: number, family: number): string {
  if (at + ADDRESS_BYTES > view.byteLength) throw malformedFault("an address that is cut off");
  if (family === AF_INET) return formatIPv4(view.getUint32(at, false));
  return formatIPv6((view.getBigUint64(at, false) << 64n) | view.getBigUint64(at + 8, false));
}
