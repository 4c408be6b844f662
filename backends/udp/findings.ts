import type { Finding } from "flannel/sdk";
import type { Counter } from "./datapath/counters.ts";
import { describeErrno } from "./system/errno.ts";

/** The counters at one look. */
export type Counts = Readonly<Record<Counter, number>>;

/**
 * What the growth of the counters between two looks says. Texts hold no numbers, so that a problem that lasts is told
 * once; the numbers are in the status. Pure.
 */
export function judgeCounters(before: Counts, now: Counts): readonly Finding[] {
  const grew = (counter: Counter) => now[counter] > before[counter];
  const findings: Finding[] = [];
  if (grew("strangers")) {
    findings.push({
      code: "UDP_STRANGERS",
      severity: "warning",
      title: "datagrams of senders that are no members are dropped",
      text: "their address and port are in no lease: a node whose lease is gone, a NAT that changes ports, or a forger",
      fix: "Compare `tcpdump -ni any udp port 8285` (or your Port) with `flanneld peers`; close the port to others.",
    });
  }
  if (grew("malformed")) {
    findings.push({
      code: "UDP_MALFORMED",
      severity: "warning",
      title: "members send datagrams that are no packets",
      text: "they are dropped: not an IP packet of the family, or shorter than it says",
      fix: "See whether a node of the cluster runs another backend or program on this port.",
    });
  }
  if (grew("sendErrors")) {
    findings.push({
      code: "UDP_SEND_FAILED",
      severity: "warning",
      title: "packets to other hosts are lost in sending",
      text: `the last error was ${describeErrno(now.sendErrno)}`,
      fix: "Look at the interface, its routes and the firewall's OUTPUT chain.",
    });
  }
  if (grew("receiveErrors")) {
    findings.push({
      code: "UDP_RECEIVE_FAILED",
      severity: "warning",
      title: "packets from other hosts are lost at the socket",
      text: `the last error was ${describeErrno(now.receiveErrno)}`,
      fix: "See `dmesg` and the interface; with ENOMEM give the machine more memory.",
    });
  }
  if (grew("writeErrors")) {
    findings.push({
      code: "UDP_WRITE_FAILED",
      severity: "warning",
      title: "packets from other hosts are lost at the TUN device",
      text: `the last error was ${describeErrno(now.writeErrno)}`,
      fix: "See `ip -s link show flannel0`: the device has to be up.",
    });
  }
  if (grew("tooBig") || grew("fragmented")) {
    findings.push({
      code: "UDP_PATH_MTU",
      severity: "warning",
      title: "the path to some host carries less than the interface",
      text: "senders are told to make packets smaller, and what they do not allow to be refused goes out in fragments",
      fix: "Set the MTU of the interface to what the whole path carries; the subnet file follows, and new containers with it.",
    });
  }
  return findings;
}

/** Nothing is forwarded, for the reason given. */
export function endedFinding(text: string): Finding {
  return {
    code: "UDP_FORWARDING_ENDED",
    severity: "error",
    title: "packets are not forwarded",
    text,
    fix: "It is started again by itself; see the reason.",
  };
}
