import type { XfrmState } from "flannel/sdk";
import { REQID } from "./tunnel.ts";
import { sectionOf, sectionsOf, textOf, type ViciMessage } from "./vici/message.ts";

/** How the tunnel of one connection stands at charon. */
export interface Association {
  /** Whether a pair of states is in place: packets can pass. */
  readonly isUp: boolean;
  /** Whether charon is at it: an exchange is under way. One that is over without a tunnel is none. */
  readonly isTried: boolean;
  /** Of the states it has put in place, both directions. */
  readonly spis: readonly number[];
  /** Whether a tunnel that charon takes for up has no states in the kernel any more. */
  readonly isLost: boolean;
}

/**
 * The answer to `list-sas`, by the name of the connection. `present` are the SPIs of states that the kernel has, asked
 * after charon; undefined where charon moves the packets itself.
 */
export function readAssociations(
  events: readonly ViciMessage[],
  present?: ReadonlySet<number>,
): ReadonlyMap<string, Association> {
  const found = new Map<string, Association>();
  for (const [name, ike] of events.flatMap((event) => sectionsOf(event))) {
    const children = sectionsOf(sectionOf(ike, "child-sas")).map(([, child]) => child);
    const up = children.filter((child) => UP.has(textOf(child, "state") ?? ""));
    const whole = up.filter((child) => spisOf(child).every((spi) => present?.has(spi) ?? true));
    const states = [ike, ...children].map((each) => textOf(each, "state") ?? "");
    const known = found.get(name);
    found.set(name, {
      isUp: (known?.isUp ?? false) || whole.length > 0,
      isTried: (known?.isTried ?? false) || states.some((state) => IN_HAND.has(state)),
      isLost: (known?.isLost ?? false) || whole.length < up.length,
      spis: [...(known?.spis ?? []), ...children.flatMap(spisOf)],
    });
  }
  return found;
}

/** Addresses that have begun to set up a tunnel here; charon knows by whose connection when they have told who they are. */
export function readCallers(events: readonly ViciMessage[]): ReadonlySet<string> {
  const calls = events.flatMap((event) => sectionsOf(event)).filter(([name]) => name === UNNAMED);
  return new Set(
    calls.flatMap(([, ike]) =>
      IN_HAND.has(textOf(ike, "state") ?? "") ? (textOf(ike, "remote-host") ?? []) : [],
    ),
  );
}

/** What charon calls an IKE_SA without a connection (ike_sa.c). */
const UNNAMED = "(unnamed)";

function spisOf(child: ViciMessage): readonly number[] {
  return ["spi-in", "spi-out"].flatMap((key) => Number.parseInt(textOf(child, key) ?? "", 16) || []);
}

/** States of a child in which packets pass (child_sa.h): while it is replaced, the old one still serves. */
const UP: ReadonlySet<string> = new Set(["INSTALLED", "UPDATING", "REKEYING", "REKEYED"]);

/** States of an exchange (ike_sa.h) and of a child that will be, or fail to be, a tunnel by themselves. */
const IN_HAND: ReadonlySet<string> = new Set(["CREATED", "CONNECTING", "INSTALLING", "RETRYING"]);

/** IPPROTO_ESP (linux/in.h). */
const ESP = 50;

/** What tells a state from all others (RFC 4301 §4.4.2.1): where it leads, and its SPI. */
export function associationId({ dst, spi }: Pick<XfrmState, "dst" | "spi">): string {
  return `${dst} ${spi}`;
}

/** What is known when states are judged. */
export interface KnownTunnels {
  /** Address of the interface. */
  readonly own: string;
  /** SPIs that charon answers for. */
  readonly spis: ReadonlySet<number>;
  /** Addresses of peers, and whether their tunnel is up. */
  readonly peers: ReadonlyMap<string, boolean>;
}

/**
 * Of the states that an earlier charon may have left, those that nobody needs. They carry packets until the new tunnel to
 * that peer is up, so that a restart is not noticed; those of peers that are gone carry none.
 */
export function findStaleStates(inherited: readonly XfrmState[], known: KnownTunnels): readonly XfrmState[] {
  return inherited.filter(({ src, dst, spi, reqid, mode, protocol }) => {
    if (reqid !== REQID || mode !== "tunnel" || protocol !== ESP || known.spis.has(spi)) return false;
    if (src !== known.own && dst !== known.own) return false;
    return known.peers.get(src === known.own ? dst : src) !== false;
  });
}
