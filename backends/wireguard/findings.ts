import type { Families, Finding, HostFacts } from "flannel/sdk";
import { familiesOf, podMtu } from "./devices.ts";
import type { PrivateKey } from "./key-file.ts";
import type { Options } from "./options.ts";

/** The least an IPv6 link carries (RFC 8200 §5): below it the kernel turns IPv6 off on a device. */
const IPV6_LEAST = 1280;

/** Options that do not fit this host or the network. */
export function optionFindings(options: Options, families: Families, facts: HostFacts): readonly Finding[] {
  return [
    ...findOversizedMtu(options, facts),
    ...findSmallMtu(options, families, facts),
    ...findMode(options, families),
    ...findEqualPorts(options, families),
  ];
}

function findOversizedMtu({ MTU }: Options, { external }: HostFacts): readonly Finding[] {
  if (MTU <= external.mtu) return [];
  return [
    {
      code: "WIREGUARD_MTU_CLAMPED",
      severity: "warning",
      title: "Backend MTU is larger than the interface carries",
      text: `"MTU" is ${MTU}, but ${external.name} carries ${external.mtu}; ${external.mtu} is used`,
      fix: `Raise the MTU of ${external.name} or lower "MTU" (it is the MTU of the underlay, not of pods).`,
    },
  ];
}

function findSmallMtu(options: Options, families: Families, facts: HostFacts): readonly Finding[] {
  const mtu = podMtu(options, facts);
  if (!families.ipv6 || mtu >= IPV6_LEAST) return [];
  return [
    {
      code: "WIREGUARD_MTU_IPV6",
      severity: "error",
      title: "too small an MTU for IPv6",
      text: `${mtu} bytes are left inside of WireGuard, IPv6 needs ${IPV6_LEAST}`,
      fix: `Raise the MTU of ${facts.external.name} or "MTU" to ${IPV6_LEAST + 80} or more, or turn EnableIPv6 off.`,
    },
  ];
}

function findMode({ Mode }: Options, families: Families): readonly Finding[] {
  if (Mode === "separate" || Mode === "auto" || familiesOf(families).includes(Mode)) return [];
  return [
    {
      code: "WIREGUARD_MODE",
      severity: "error",
      title: "the Mode does not fit the network",
      text: `"Mode" is "${Mode}", but the network config has no ${Mode === "ipv4" ? "IPv4" : "IPv6"}, so peers publish no such address`,
      fix: `Turn ${Mode === "ipv4" ? "EnableIPv4" : "EnableIPv6"} on, or set "Mode" to "auto".`,
    },
  ];
}

function findEqualPorts({ Mode, ListenPort, ListenPortV6 }: Options, families: Families): readonly Finding[] {
  if (Mode !== "separate" || !families.ipv4 || !families.ipv6 || ListenPort !== ListenPortV6) return [];
  return [
    {
      code: "WIREGUARD_PORTS_EQUAL",
      severity: "error",
      title: "both devices cannot listen on one port",
      text: `"ListenPort" and "ListenPortV6" are both ${ListenPort}, and mode "separate" has a device for each family`,
      fix: 'Set "ListenPortV6" to another port, or "Mode" to "auto" for one device.',
    },
  ];
}

/** What is not well with the key file. */
export function keyFindings({ file, durable, exposed }: PrivateKey): readonly Finding[] {
  return [...(durable ? [] : [lostAtReboot(file)]), ...(exposed ? [readableByOthers(file)] : [])];
}

function lostAtReboot(file: string): Finding {
  return {
    code: "WIREGUARD_KEY_NOT_DURABLE",
    severity: "warning",
    title: "the private key does not survive a reboot",
    text: `it is in ${file}, since /var/lib/flannel cannot be written; after a reboot this node has a new key, and peers need a moment to learn it`,
    fix: "Make /var/lib/flannel writable (systemd: StateDirectory=flannel; Kubernetes: a hostPath volume), or set WIREGUARD_KEY_FILE.",
  };
}

function readableByOthers(file: string): Finding {
  return {
    code: "WIREGUARD_KEY_EXPOSED",
    severity: "warning",
    title: "others may read the private key",
    text: `${file} is readable by others than its owner`,
    fix: `chmod 0400 ${file}. Who has read it can pose as this node: to be safe remove it and restart flanneld.`,
  };
}

/** WireGuard does not run in the kernel. */
export function userspaceFinding(devices: readonly string[]): Finding {
  return {
    code: "WIREGUARD_IN_USERSPACE",
    severity: "info",
    title: "WireGuard runs in user space",
    text: `the kernel had no WireGuard when ${devices.join(" and ")} was made: a process of its own moves the packets, more slowly`,
    fix: `Once the kernel has it (modprobe wireguard): ip link delete ${devices[0]}; the device is made again in the kernel at once.`,
  };
}

/** Other nodes have our key. */
export function cloneFinding(keys: readonly string[]): Finding {
  return {
    code: "WIREGUARD_KEY_CLONED",
    severity: "error",
    title: "another node has this node's private key",
    text: `the leases ${keys.join(", ")} publish our public key; nothing can be sent between them and this node`,
    fix: "A disk was cloned. On all but one of these nodes remove the key file (/var/lib/flannel/wgkey, or WIREGUARD_KEY_FILE) and restart flanneld.",
  };
}
