import { Turns } from "../retry/turns.ts";
import { ENODEV, EOPNOTSUPP } from "./errno.ts";
import { Exchange } from "./exchange.ts";
import { isDeviceName } from "./families/link.ts";
import { type ChangePosition, encodeWireguardChange, encodeWireguardDump } from "./families/wireguard.ts";
import { WG_GENL_NAME } from "./families/wireguard-constants.ts";
import { decodeWireguard, joinWireguard } from "./families/wireguard-state.ts";
import { kindUnsupportedFault, linkMissingFault, refusalFault } from "./faults.ts";
import { NETLINK_GENERIC, resolveFamily } from "./generic.ts";
import type { WireguardChange, WireguardState } from "./wireguard-objects.ts";

/** Room for a message of a change: it is closed at 16 KiB, and what was begun then may still take some KiB. */
const BATCH_BYTES = 32 * 1024;
/** A dump comes in pieces, each after the one before it was read. */
const RECEIVE_BUFFER = 256 * 1024;

/** WireGuard over generic netlink; the socket is opened with the first call, in the namespace its thread is in then. */
export class WireguardExchange {
  readonly #turns = new Turns();
  #opened: { readonly exchange: Exchange; readonly family: number | undefined } | undefined;

  /** See Kernel.wireguard. */
  read(dev: string): Promise<WireguardState | undefined> {
    const { exchange, family } = this.#open();
    return this.#turns.take(async () => {
      if (family === undefined || !isDeviceName(dev)) return undefined;
      const { refusal, items } = await exchange.dump(
        (builder, sequence) => encodeWireguardDump(builder, sequence, family, dev),
        decodeWireguard,
      );
      // No such device, or one of another kind.
      if (refusal?.errno === ENODEV || refusal?.errno === EOPNOTSUPP) return undefined;
      if (refusal) throw refusalFault(`read the WireGuard device "${dev}"`, refusal);
      return joinWireguard(items);
    });
  }

  /** See Kernel.setWireguard. */
  write(dev: string, change: WireguardChange): Promise<void> {
    const { exchange, family } = this.#open();
    return this.#turns.take(async () => {
      if (family === undefined) throw kindUnsupportedFault(dev, WG_GENL_NAME);
      if (!isDeviceName(dev)) throw linkMissingFault(dev);
      let from: ChangePosition | undefined;
      do {
        const { refusal } = exchange.request((builder, sequence) => {
          from = encodeWireguardChange(builder, sequence, { family, dev }, change, from);
        });
        if (refusal?.errno === ENODEV) throw linkMissingFault(dev);
        if (refusal) throw refusalFault(`configure the WireGuard device "${dev}"`, refusal);
      } while (from !== undefined);
    });
  }

  /** Idempotent. */
  close(): void {
    this.#opened?.exchange.close();
  }

  #open() {
    if (this.#opened?.family === undefined) {
      const exchange =
        this.#opened?.exchange ??
        new Exchange({
          batchBytes: BATCH_BYTES,
          receiveBuffer: RECEIVE_BUFFER,
          protocol: NETLINK_GENERIC,
        });
      this.#opened = { exchange, family: resolveFamily(exchange, WG_GENL_NAME) };
    }
    return this.#opened;
  }
}
