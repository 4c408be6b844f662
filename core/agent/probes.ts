import { decodeKey } from "../lease/key.ts";

/** How a peer answered the last `flanneld probe`; parts that were not tried, because nothing answered, are absent. */
export interface LastProbe {
  /** Wall clock, ms since 1970. */
  readonly at: number;
  /** Address that answered. */
  readonly address?: string;
  /** Echo requests, and answers to them. */
  readonly sent: number;
  readonly received: number;
  /** Median round trip, ms. */
  readonly rttMs?: number;
  /** Largest packet, IP header included, that arrived unfragmented. */
  readonly mtu?: number;
  /** `accepted`, `refused` (both show that TCP passes), `timeout`, `unreachable`. */
  readonly tcp?: string;
  /** `ok`, or the codes of what is wrong. */
  readonly verdict: string;
}

/** Peers and families remembered; the oldest go first. */
const MOST = 10_000;
/** What `flanneld probe` writes into any of the fields; everything else is refused. */
const PLAIN = /^[\w.: ]{1,200}$/;

/** The last probe of each peer and family, in memory only: a restarted daemon has to be told anew. */
export class Probes {
  readonly #last = new Map<string, LastProbe>();

  /**
   * Takes note of the outcome of a probe as `flanneld probe` sends it: `key` (of the peer), `family`, and the fields
   * of {@link LastProbe} but the time. False when it is not understood.
   */
  note(search: URLSearchParams, now: number = Date.now()): boolean {
    const text = (name: string) => {
      const value = search.get(name);
      return value !== null && PLAIN.test(value) ? value : undefined;
    };
    const number = (name: string) => {
      const value = Number(text(name));
      return Number.isFinite(value) && value >= 0 ? value : undefined;
    };
    const [key, family] = [search.get("key") ?? "", search.get("family")];
    const [sent, received, verdict] = [number("sent"), number("received"), text("verdict")];
    if (!decodeKey(key) || (family !== "4" && family !== "6")) return false;
    if (sent === undefined || received === undefined || verdict === undefined) return false;
    const [address, rttMs, mtu, tcp] = [text("address"), number("rttMs"), number("mtu"), text("tcp")];
    const place = placeOf(key, family);
    // Put last, so that the first one is the oldest.
    this.#last.delete(place);
    this.#last.set(place, {
      at: now,
      ...(address === undefined ? {} : { address }),
      sent,
      received,
      ...(rttMs === undefined ? {} : { rttMs }),
      ...(mtu === undefined ? {} : { mtu }),
      ...(tcp === undefined ? {} : { tcp }),
      verdict,
    });
    for (const oldest of this.#last.keys()) {
      if (this.#last.size <= MOST) break;
      this.#last.delete(oldest);
    }
    return true;
  }

  /** The last probe of a peer (by the key of its lease) in a family; undefined when it was never probed. */
  of(key: string, family: 4 | 6): LastProbe | undefined {
    return this.#last.get(placeOf(key, String(family)));
  }
}

function placeOf(key: string, family: string): string {
  return `${family} ${key}`;
}
