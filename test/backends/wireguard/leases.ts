import type { Families, HostFacts, Peer, PeerFamily } from "flannel/sdk";
import { devicesOf } from "../../../backends/wireguard/devices.ts";
import { type Options, options } from "../../../backends/wireguard/options.ts";
import { planPeers } from "../../../backends/wireguard/peers.ts";
import { FACTS } from "../facts.ts";

export const IPV4: Families = { ipv4: true, ipv6: false };
export const IPV6: Families = { ipv4: false, ipv6: true };
export const DUAL: Families = { ipv4: true, ipv6: true };
const NETWORKS = ["10.5.0.0/16", "fd00:5::/32"];

/** Options of which these are given. */
export function optionsWith(raw: Readonly<Record<string, unknown>> = {}): Options {
  const result = options["~standard"].validate(raw);
  if (result instanceof Promise || result.issues) throw new Error(JSON.stringify(result));
  return result.value;
}

/** A public key that only n has. */
export const keyOf = (n: number) => Buffer.alloc(32, n).toString("base64");
/** The public key of this node. */
export const OWN_KEY = keyOf(1);

/** Node n as its lease has it, IPv4 alone unless `change` says more. */
export function peerOf(
  n: number,
  change: Partial<Peer> = {},
  data: unknown = { PublicKey: keyOf(n), Port: 51820 },
): Peer {
  return {
    key: `10.5.${n}.0-24`,
    backendType: "wireguard",
    ipv4: { subnet: `10.5.${n}.0/24`, publicIP: `192.0.2.${n}`, data },
    ...change,
  };
}

/** The IPv6 half of node n. */
export const v6Of = (n: number, data: unknown = { PublicKey: keyOf(n), Port: 51821 }): PeerFamily => ({
  subnet: `fd00:5:${n}::/64`,
  publicIP: `2001:db8::${n}`,
  data,
});

/** What is made of these peers, by device. */
export function plan(
  peers: readonly Peer[],
  raw: Readonly<Record<string, unknown>> = {},
  { families = DUAL, facts = FACTS }: { families?: Families; facts?: HostFacts } = {},
) {
  const options = optionsWith(raw);
  const devices = devicesOf(options, families);
  const { wanted, ...rest } = planPeers(peers, {
    options,
    devices,
    networks: NETWORKS,
    ownPublicKey: OWN_KEY,
    facts,
  });
  return { wanted: Object.fromEntries(wanted), ...rest };
}
