import type { WireguardState } from "flannel/sdk";

/**
 * Seconds after which a peer that was sent something and is silent is not reached: KEEPALIVE_TIMEOUT and REKEY_TIMEOUT
 * (WireGuard protocol §6.2); whoever gets data sends at least an empty packet back within the first of them.
 */
const SILENCE_SECONDS = 15;

/** What a device that was there at the start had counted. */
interface Count {
  readonly rxBytes: number;
  readonly txBytes: number;
}

/**
 * Whether the peers that a device had when the daemon started are still where it has them. What their leases said before
 * is not known then: one that moved while the daemon was down, and was heard shortly before, looks like one that roams.
 * It tells itself by not answering.
 */
export class Hearing {
  /** Peers not heard yet, as they were found; undefined until the first look. */
  #unheard: Map<string, Count> | undefined;
  /** When it was first seen that something was sent to them, seconds. */
  readonly #asked = new Map<string, number>();

  /**
   * Peers that were sent something and did not answer in time. `now` in seconds of a clock that only goes forward;
   * `keepalive` in seconds: empty packets, which are not answered, are sent that often by both sides.
   */
  findSilent({ peers }: WireguardState, now: number, keepalive: number): ReadonlySet<string> {
    this.#unheard ??= new Map(peers.map((peer) => [peer.publicKey, peer]));
    const silent = new Set<string>();
    for (const { publicKey, rxBytes, txBytes } of this.#unheard.size > 0 ? peers : []) {
      const found = this.#unheard.get(publicKey);
      if (!found) continue;
      if (rxBytes !== found.rxBytes) {
        this.#unheard.delete(publicKey);
      } else if (txBytes !== found.txBytes) {
        const asked = this.#asked.get(publicKey) ?? now;
        this.#asked.set(publicKey, asked);
        if (now - asked > SILENCE_SECONDS + keepalive) silent.add(publicKey);
      }
    }
    return silent;
  }
}
