import type { DaemonOptions } from "../../lab/daemon.ts";
import type { Host } from "../../lab/host.ts";
import type { Pod } from "../../lab/pod.ts";
import type { Family } from "../../lab/segment.ts";
import * as ipsec from "../ipsec-lab.ts";
import * as wireguard from "../wireguard-lab.ts";
import { answersForUdp, hasInCharon, hasInKernel, hasInWireguard } from "./knowledge.ts";

/** A backend as the scenario runs it. */
export interface BackendCase {
  /** In the names of tests. */
  readonly name: string;
  readonly family: Family;
  /** `Backend` of the network config. */
  readonly options: { readonly Type: string; readonly [key: string]: unknown };
  /** Bytes by which packets of pods grow on the wire, by the family of the pods. */
  readonly overhead: { readonly ipv4: number; readonly ipv6?: number };
  /** The overhead is that of the worst case: what is encrypted is filled up to whole blocks. */
  readonly padded?: true;
  /** Longest time in ms for which nothing may arrive while a daemon starts again; without it, no packet is lost. */
  readonly pause?: number;
  /**
   * Packets that may be lost as a host joins or leaves: those under way when one tunnel takes the place of another, where
   * both ends have begun one at once. Default 0.
   */
  readonly underWay?: number;
  /** How the daemon of a host is started. */
  readonly daemon: (host: Host) => DaemonOptions;
  /** Whether a host has anything of the node with that pod. */
  readonly knows: (host: Host, pod: Pod) => Promise<boolean>;
}

const PLAIN = { daemon: () => ({}), knows: hasInKernel } as const;
const WIREGUARD = { daemon: wireguard.daemonOptions, knows: hasInWireguard } as const;

/** What runs natively on every machine: WireGuard and ESP in user space. */
export const NATIVE: readonly BackendCase[] = [
  {
    ...PLAIN,
    name: "vxlan",
    family: "dual",
    options: { Type: "vxlan" },
    // RFC 7348: outer IP, UDP, VXLAN and inner Ethernet. A device per family.
    overhead: { ipv4: 20 + 8 + 8 + 14, ipv6: 40 + 8 + 8 + 14 },
  },
  {
    ...PLAIN,
    name: "host-gw",
    family: "dual",
    options: { Type: "host-gw" },
    overhead: { ipv4: 0, ipv6: 0 },
  },
  {
    ...PLAIN,
    name: "udp",
    family: "dual",
    options: { Type: "udp" },
    // One device for both: the longer of the outer IP headers, and UDP.
    overhead: { ipv4: 40 + 8, ipv6: 40 + 8 },
    // The daemon is the data path.
    pause: 5_000,
    knows: answersForUdp,
  },
  {
    ...PLAIN,
    name: "extension",
    family: "dual",
    options: {
      Type: "extension",
      SubnetAddCommand:
        "ip route replace $SUBNET via $PUBLIC_IP && ip route replace $IPV6SUBNET via $PUBLIC_IPV6",
      SubnetRemoveCommand: "ip route flush exact $SUBNET; ip -6 route flush exact $IPV6SUBNET",
    },
    overhead: { ipv4: 0, ipv6: 0 },
  },
  {
    ...WIREGUARD,
    name: "wireguard by wireguard-go",
    family: "dual",
    options: { Type: "wireguard" },
    // As upstream: outer IPv6, UDP and WireGuard's 32 bytes, whatever the family.
    overhead: { ipv4: 80, ipv6: 80 },
  },
  {
    name: "ipsec by charon",
    family: "v4",
    options: ipsec.ipsecConfig().Backend as BackendCase["options"],
    // charon's own device has no more than 1400.
    overhead: { ipv4: 100 },
    daemon: (host) => ipsec.daemonOptions(host, "charon"),
    knows: hasInCharon,
  },
];

/** What needs a kernel that has it. */
export const IPIP: BackendCase = {
  ...PLAIN,
  name: "ipip",
  family: "v4",
  options: { Type: "ipip" },
  overhead: { ipv4: 20 },
};

/** As {@link IPIP}. */
export const WIREGUARD_KERNEL: BackendCase = {
  ...WIREGUARD,
  name: "wireguard in the kernel",
  family: "v4",
  options: { Type: "wireguard" },
  overhead: { ipv4: 80 },
};

/** As {@link IPIP}. */
export const IPSEC_KERNEL: BackendCase = {
  ...PLAIN,
  name: "ipsec in the kernel",
  family: "v4",
  options: ipsec.ipsecConfig().Backend as BackendCase["options"],
  overhead: { ipv4: 77 },
  padded: true,
  underWay: 3,
  daemon: (host) => ipsec.daemonOptions(host, "kernel"),
};
