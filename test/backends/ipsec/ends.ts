import type { Options } from "../../../backends/ipsec/options.ts";
import { isWithin } from "../../../backends/ipsec/prefix.ts";
import type { FarEnd, OwnEnd } from "../../../backends/ipsec/tunnel.ts";

export const PSK = "0123456789abcdef".repeat(6);
export const OPTIONS: Options = { PSK, UDPEncap: false, ESPProposal: "aes128gcm16-sha256-prfsha256-ecp256" };
/** This node. */
export const OWN: OwnEnd = { address: "192.0.2.1", identity: "192.0.2.1", subnet: "10.5.1.0/24" };
export const NETWORK = "10.5.0.0/16";
/** Whether a prefix lies in {@link NETWORK}. */
export const isInNetwork = (cidr: string) => isWithin(cidr, NETWORK);
/** Node n as another end. */
export const farEnd = (n: number): FarEnd => ({
  key: `10.5.${n}.0-24`,
  address: `192.0.2.${n}`,
  subnet: `10.5.${n}.0/24`,
});
