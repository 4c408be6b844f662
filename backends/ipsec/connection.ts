import type { Options } from "./options.ts";
import { type FarEnd, type OwnEnd, REQID } from "./tunnel.ts";
import type { ViciMessage } from "./vici/message.ts";

/** Algorithms of the IKE exchange: upstream's, for both ends have to agree. */
const IKE_PROPOSAL = "aes256-sha256-modp4096";

/** Id of the shared key at charon. */
export const KEY_ID = "flannel";

/** `LOCAL-LOCALSUBNET-REMOTESUBNET-REMOTE`, as upstream names a connection. */
const NAME = /^\d+(?:\.\d+){3}-(\d+(?:\.\d+){3}\/\d+)-(\d+(?:\.\d+){3}\/\d+)-\d+(?:\.\d+){3}$/;

/** Name of the connection between two ends. */
export function connectionName({ address, subnet }: OwnEnd, far: FarEnd): string {
  return `${address}-${subnet}-${far.subnet}-${far.address}`;
}

/** Name of its one child. */
export function childName({ subnet }: OwnEnd, far: FarEnd): string {
  return `${subnet}-${far.subnet}`;
}

/** The subnets that the name of a connection of ours holds; undefined for other people's. */
export function subnetsOfName(name: string): readonly [own: string, far: string] | undefined {
  const [, own, far] = NAME.exec(name) ?? [];
  return own === undefined || far === undefined ? undefined : [own, far];
}

/**
 * `load-conn` of the connection between two ends. In the kernel the policies are ours, and one number ties all of them
 * to the states. Where charon moves the packets itself it needs policies of its own, and a number for each tunnel.
 */
export function connectionMessage(
  own: OwnEnd,
  far: FarEnd,
  { UDPEncap, ESPProposal }: Options,
  inUserSpace: boolean,
): ViciMessage {
  return {
    [connectionName(own, far)]: {
      version: "2",
      local_addrs: [own.address],
      remote_addrs: [far.address],
      proposals: [IKE_PROPOSAL],
      // Tried for ever: a peer that is away for long comes back with the same lease.
      keyingtries: "0",
      encap: yesOrNo(UDPEncap),
      local: { auth: "psk", id: own.identity },
      remote: { auth: "psk", id: far.address },
      children: {
        [childName(own, far)]: {
          local_ts: [own.subnet],
          remote_ts: [far.subnet],
          esp_proposals: [ESPProposal],
          mode: "tunnel",
          ...(inUserSpace ? { policies: "yes" } : { policies: "no", reqid: String(REQID) }),
          rekey_time: "1h",
          // Who starts, and when, is decided where it is seen what there is.
          start_action: "none",
          close_action: "none",
        },
      },
    },
  };
}

/** A far end like any other. */
const SAMPLE: FarEnd = { key: "", address: "192.0.2.1", subnet: "192.0.2.0/24" };

/**
 * All that a charon is told whoever the far ends are, as text: where that is the same, connections with the same names
 * are the same. It holds the shared key.
 */
export function settingsOf(own: OwnEnd, options: Options): string {
  return JSON.stringify([own, connectionMessage(own, SAMPLE, options, false), options.PSK]);
}

/** `load-shared` of the key, good between this node and these peers. */
export function sharedKeyMessage(own: OwnEnd, fars: readonly FarEnd[], psk: string): ViciMessage {
  return {
    id: KEY_ID,
    type: "IKE",
    data: psk,
    owners: [own.identity, ...fars.map(({ address }) => address).sort()],
  };
}

function yesOrNo(value: boolean): string {
  return value ? "yes" : "no";
}
