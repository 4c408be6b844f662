/** Which of the kernel's two front ends holds the rules: `EnableNFTables` of the network config. */
export type TrafficKind = "nftables" | "iptables";

/** What the traffic rules are to do on this node; plain data. */
export interface TrafficIntent {
  readonly kind: TrafficKind;
  /** Present exactly for the families that are on. */
  readonly ipv4?: FamilyIntent;
  readonly ipv6?: FamilyIntent;
  /** `--ip-masq`: hide pods behind the node where packets leave the cluster. */
  readonly masquerade: boolean;
  /** `--iptables-forward-rules`: accept forwarded packets from and to pods. */
  readonly forward: boolean;
  /** Choose source ports at random (not `--ip-masq-fully-random-disable`), where the host can. */
  readonly fullyRandom: boolean;
}

/** One family; all values are CIDR text. */
export interface FamilyIntent {
  /** Network of the cluster. */
  readonly network: string;
  /** Subnet of this node. */
  readonly subnet: string;
  /**
   * `MasqExclude`: a network outside the cluster's is a destination that pods reach with their own address; one
   * inside it holds pods that keep their address wherever they send.
   */
  readonly masqExclude: readonly string[];
}

/** Families by number, as addresses and netlink tell them apart. */
export type Family = 4 | 6;

/** All there are. */
export const ALL_FAMILIES: readonly Family[] = [4, 6];

/** The families an intent turns on, with what is wanted for each. */
export function familiesOf(intent: TrafficIntent): readonly (readonly [Family, FamilyIntent])[] {
  const families: [Family, FamilyIntent][] = [];
  if (intent.ipv4) families.push([4, intent.ipv4]);
  if (intent.ipv6) families.push([6, intent.ipv6]);
  return families;
}
