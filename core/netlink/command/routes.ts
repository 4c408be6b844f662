import type { RouteState } from "../objects.ts";
import { RTN_UNICAST } from "../wire/constants.ts";
import { type Json, numberOf, recordOf, recordsOf, textOf, wordsOf } from "./json.ts";

/** RTPROT_BOOT: `ip` leaves the protocol out when it is this. */
const RTPROT_BOOT = 3;

interface Hop {
  readonly dev: string;
  readonly via?: string;
}

/** One record of `ip -N -j route show`; `protocol` is what was asked for, as `ip` leaves that out of the records. */
export function decodeRoute(
  record: Json,
  family: 4 | 6,
  protocol: number | undefined,
): RouteState | undefined {
  const dst = textOf(record, "dst");
  if (dst === undefined) return undefined;
  const legs = recordsOf(record, "nexthops");
  const hops = legs?.flatMap((leg) => hopOf(leg) ?? []);
  const flags = wordsOf(record, "flags");
  const dev = textOf(record, "dev");
  const via = gatewayOf(record);
  const src = textOf(record, "prefsrc");
  const nexthop = numberOf(record, "nhid");
  return {
    family,
    dst: prefixText(dst, family),
    ...(dev === undefined ? {} : { dev }),
    ...(via === undefined ? {} : { via }),
    onlink: flags.includes("onlink"),
    metric: numberOf(record, "metric") ?? 0,
    protocol: numberOf(record, "protocol") ?? protocol ?? RTPROT_BOOT,
    type: numberOf(record, "type") ?? RTN_UNICAST,
    ...(src === undefined ? {} : { src }),
    scope: numberOf(record, "scope") ?? 0,
    ...(nexthop === undefined ? {} : { nexthop }),
    ...(hops === undefined ? {} : { hops }),
    dead: legs ? legs.every((leg) => isDead(wordsOf(leg, "flags"))) : isDead(flags),
  };
}

/** One record of `ip -N -j route get`. */
export function decodeRouteGet(record: Json): { dev: string; via?: string; src?: string } | undefined {
  const dev = textOf(record, "dev");
  if (dev === undefined) return undefined;
  const via = gatewayOf(record);
  const src = textOf(record, "prefsrc");
  return { dev, ...(via === undefined ? {} : { via }), ...(src === undefined ? {} : { src }) };
}

function hopOf(leg: Json): Hop | undefined {
  const dev = textOf(leg, "dev");
  const via = gatewayOf(leg);
  if (dev === undefined) return undefined;
  return via === undefined ? { dev } : { dev, via };
}

/** The gateway; one of another family than the route's is a record of its own. */
function gatewayOf(record: Json): string | undefined {
  return textOf(record, "gateway") ?? textOf(recordOf(record, "via"), "host");
}

function isDead(flags: readonly string[]): boolean {
  return flags.includes("dead") || flags.includes("linkdown");
}

/** `ip` shortens default routes to a word and host routes to an address. */
function prefixText(dst: string, family: 4 | 6): string {
  if (dst === "default") return family === 4 ? "0.0.0.0/0" : "::/0";
  if (dst.includes("/")) return dst;
  return `${dst}/${family === 4 ? 32 : 128}`;
}
