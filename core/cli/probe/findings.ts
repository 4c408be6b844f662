import type { Finding } from "../../observe/finding.ts";
import type { ProbeTarget } from "./targets.ts";

/** Nothing answers. */
export function unreachableFinding({ node, subnet, addresses }: ProbeTarget): Finding {
  const tried = addresses.map(({ address }) => address).join(" and ");
  return {
    code: "PROBE_UNREACHABLE",
    severity: "error",
    title: "a peer does not answer",
    text: `${node}, ${subnet}: no answer from ${tried}`,
    fix:
      "Look whether flanneld runs there and whether a firewall between the hosts drops its packets (vxlan: UDP 8472, " +
      "or the Port of the network config); flanneld explain tells how this node reaches it.",
  };
}

/** Some answers are missing. */
export function lossFinding({ node, subnet }: ProbeTarget, sent: number, received: number): Finding {
  return {
    code: "PROBE_LOSS",
    severity: "warning",
    title: "packets to a peer are lost",
    text: `${node}, ${subnet}: ${received} of ${sent} came back`,
    fix: "Look at the network between the hosts; flanneld sends nothing by itself.",
  };
}

/** Large packets do not arrive. */
export function mtuFinding({ node, subnet }: ProbeTarget, largest: number, mtu: number): Finding {
  const seen =
    largest === 0
      ? "not even the smallest packets a link has to carry arrive"
      : `packets arrive up to ${largest} bytes`;
  return {
    code: "PROBE_MTU",
    severity: "error",
    title: "large packets to a peer are lost",
    text: `${node}, ${subnet}: ${seen}, containers send up to ${mtu}`,
    fix:
      largest === 0
        ? "Look for a firewall that drops ICMP by size."
        : `Raise the MTU of the network between the hosts by ${mtu - largest}, or lower "MTU" of the Backend by that much.`,
  };
}

/** Something on the way says no to TCP. */
export function tcpBlockedFinding({ node, subnet }: ProbeTarget, address: string, reason: string): Finding {
  return {
    code: "PROBE_TCP_BLOCKED",
    severity: "error",
    title: "TCP to a peer is rejected on the way",
    text: `${node}, ${subnet}: a TCP connection to ${address} fails (${reason}), ping does not`,
    fix: "Look for a firewall on the peer, or between the hosts, that rejects TCP of the cluster network.",
  };
}

/** Echo requests are answered, TCP is not: the sign of spoilt checksums, or of a firewall that drops. */
export function tcpSilentFinding(
  { node, subnet }: ProbeTarget,
  address: string,
  offload: { readonly dev: string; readonly on: boolean | undefined } | undefined,
): Finding {
  const state =
    offload?.on === undefined ? "" : `; checksum offload of ${offload.dev} is ${offload.on ? "on" : "off"}`;
  return {
    code: "PROBE_TCP_CHECKSUM",
    severity: "error",
    title: "ping reaches a peer, TCP does not",
    text: `${node}, ${subnet}: a TCP connection to ${address} gets no answer, not even a refusal${state}`,
    fix:
      'Checksums spoilt by a NIC or NAT do this: set "ChecksumOffload": "off" in the Backend (vxlan) on all nodes. ' +
      "If that does not help, look for a firewall on the peer that drops TCP.",
  };
}
