import { Fault } from "../observe/fault.ts";
import { Exchange } from "./exchange.ts";
import {
  NETFILTER_BYTES,
  NETLINK_NETFILTER,
  NFT_MSG_GETGEN,
  NFT_MSG_NEWGEN,
  NFTA_GEN_ID,
} from "./wire/constants.ts";

/** One question and its answer of some 60 bytes at a time; the kernel rounds a receive buffer up to its minimum. */
const BUFFER_BYTES = 4096;

/** The generation of the nf_tables rule set of the network namespace this was opened in. */
export interface NftablesGeneration {
  /**
   * A number that every change of the rule set by anybody moves on, `iptables-nft`'s too, and reading never does
   * (some 20 µs). Undefined when the kernel does not tell (no nf_tables, no CAP_NET_ADMIN).
   */
  read(): number | undefined;
  /** Closes the socket; idempotent. */
  close(): void;
}

/**
 * Opens the generation of the nf_tables rule set (NFT_MSG_GETGEN; `nft monitor` ends each change with `new generation
 * N`). Undefined where netlink cannot be spoken (no foreign functions, no socket): look at the rules themselves then.
 */
export function openNftablesGeneration(): NftablesGeneration | undefined {
  let exchange: Exchange;
  try {
    const protocol = NETLINK_NETFILTER;
    exchange = new Exchange({ batchBytes: BUFFER_BYTES, receiveBuffer: BUFFER_BYTES, protocol });
  } catch (error) {
    if (error instanceof Fault) return undefined;
    throw error;
  }
  return { read: () => readGeneration(exchange), close: () => exchange.close() };
}

function readGeneration(exchange: Exchange): number | undefined {
  if (exchange.socket.closed) return undefined;
  try {
    const { messages } = exchange.request((builder, sequence) => {
      builder.begin(NFT_MSG_GETGEN, 0, sequence);
      // struct nfgenmsg: family (any), version, resource id.
      builder.u32(0);
      builder.end();
    });
    const answer = messages.find(({ type }) => type === NFT_MSG_NEWGEN);
    const attributes = answer?.attributes(NETFILTER_BYTES);
    while (attributes?.next()) if (attributes.type === NFTA_GEN_ID) return attributes.u32BigEndian();
    return undefined;
  } catch (error) {
    if (error instanceof Fault) return undefined;
    throw error;
  }
}
