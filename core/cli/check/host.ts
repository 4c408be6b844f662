import type { Families } from "../../lease/lease.ts";
import type { Finding } from "../../observe/finding.ts";
import { type CheckItem, item } from "./item.ts";

/** What the kernel is set to; a value that cannot be read is undefined. */
export interface HostSettings {
  readonly uid: number;
  readonly netAdmin: boolean;
  /** Local time, ms since 1970, and whether the kernel takes it for synchronised. */
  readonly now: number;
  readonly synchronised: boolean | undefined;
  readonly forwarding: { readonly ipv4: string | undefined; readonly ipv6: string | undefined };
  /** Of the external interface: the stricter of `all` and its own (ip-sysctl.rst). */
  readonly rpFilter: number;
  readonly disableIpv6: string | undefined;
  readonly gcThresh3: { readonly ipv4: number | undefined; readonly ipv6: number | undefined };
}

/** Nothing of this project is older: a clock before it is wrong. */
const FIRST_DAY = Date.UTC(2025, 0, 1);
/** Entries of the neighbour table that the host itself may need beside one per peer. */
const OWN_NEIGHBOURS = 64;

/** Whether this process may do what the daemon does. */
export function checkPrivileges({ uid, netAdmin }: HostSettings): CheckItem {
  const findings: Finding[] = [];
  if (!netAdmin) {
    findings.push({
      code: "PRIVILEGE_MISSING",
      severity: "error",
      title: "not enough privileges",
      text: `uid ${uid} without CAP_NET_ADMIN cannot change devices, routes and rules`,
      fix: "Run flanneld as root, or give it CAP_NET_ADMIN (systemd: AmbientCapabilities=CAP_NET_ADMIN).",
    });
  } else if (uid !== 0) {
    findings.push({
      code: "NOT_ROOT",
      severity: "info",
      title: "not root",
      text: `uid ${uid} has CAP_NET_ADMIN; files that only root may read or write are out of reach`,
      fix: "Make sure that this user may write the folder of --subnet-file.",
    });
  }
  return item("privileges", `uid ${uid}${netAdmin ? ", CAP_NET_ADMIN" : ""}`, findings);
}

/** The wall clock: certificates depend on it, leases do not. */
export function checkClock({ now, synchronised }: HostSettings): CheckItem {
  const time = new Date(now).toISOString();
  const findings: Finding[] = [];
  if (now < FIRST_DAY) {
    findings.push({
      code: "CLOCK_WRONG",
      severity: "error",
      title: "the clock is wrong",
      text: `it is ${time}`,
      fix: "Set it, and have it kept right (chrony, systemd-timesyncd): certificates are not valid yet at that time.",
    });
  } else if (synchronised === false) {
    findings.push({
      code: "CLOCK_UNSYNCED",
      severity: "info",
      title: "nothing keeps the clock right",
      text: `it is ${time}, and the kernel does not take that for synchronised`,
      fix: "Leases do not depend on it; for certificates and logs install chrony or systemd-timesyncd.",
    });
  }
  const state = synchronised === undefined ? "" : synchronised ? ", synchronised" : ", not synchronised";
  return item("clock", `${time}${state}`, findings);
}

/** The sysctls that decide whether packets of containers get anywhere. */
export function checkSysctls(settings: HostSettings, families: Families, external: string): CheckItem {
  const { forwarding, rpFilter, disableIpv6 } = settings;
  const findings: Finding[] = [];
  const seen: string[] = [];
  const paths = { ipv4: "net.ipv4.ip_forward", ipv6: "net.ipv6.conf.all.forwarding" } as const;
  for (const family of ["ipv4", "ipv6"] as const) {
    if (!families[family]) continue;
    seen.push(`${paths[family]}=${forwarding[family] ?? "?"}`);
    if (forwarding[family] === "0") findings.push(forwardingFinding(paths[family]));
  }
  if (families.ipv6 && disableIpv6 === "1") {
    findings.push({
      code: "IPV6_DISABLED",
      severity: "error",
      title: "IPv6 is off on this host",
      text: "net.ipv6.conf.all.disable_ipv6 is 1, and the network config has EnableIPv6",
      fix: "sysctl -w net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.default.disable_ipv6=0, or turn EnableIPv6 off.",
    });
  }
  if (families.ipv4 && rpFilter === 1) {
    findings.push({
      code: "RP_FILTER_STRICT",
      severity: "info",
      title: "reverse path filtering is strict",
      text: `net.ipv4.conf.{all,${external}}.rp_filter is 1: packets are dropped where answers would leave elsewhere`,
      fix: `Loosen it where hosts have several interfaces: sysctl -w net.ipv4.conf.all.rp_filter=2`,
    });
  }
  return item("sysctls", seen.join(", "), findings);
}

function forwardingFinding(path: string): Finding {
  return {
    code: "FORWARDING_OFF",
    severity: "warning",
    title: "packets are not forwarded",
    text: `${path} is 0: containers cannot reach other hosts`,
    fix: `sysctl -w ${path}=1, and in /etc/sysctl.d; container run times often do it by themselves.`,
  };
}

/** Room in the kernel's neighbour table for one entry per peer (older kernels count permanent ones). */
export function checkNeighbourTable(
  { gcThresh3 }: HostSettings,
  families: Families,
  leases: number,
): CheckItem {
  const needed = leases + OWN_NEIGHBOURS;
  const findings = (["ipv4", "ipv6"] as const).flatMap((family): Finding[] => {
    const limit = gcThresh3[family];
    if (!families[family] || limit === undefined || limit >= needed) return [];
    return [
      {
        code: "NEIGHBOUR_TABLE_SMALL",
        severity: "warning",
        title: "the neighbour table is small for this cluster",
        text: `net.${family}.neigh.default.gc_thresh3 is ${limit}, ${leases} nodes have a lease`,
        fix: `sysctl -w net.${family}.neigh.default.gc_thresh3=${2 ** Math.ceil(Math.log2(needed * 2))}`,
      },
    ];
  });
  const shown = (["ipv4", "ipv6"] as const)
    .filter((family) => families[family] && gcThresh3[family] !== undefined)
    .map((family) => `net.${family}.neigh.default.gc_thresh3=${gcThresh3[family]}`);
  // Only the host's first network namespace has these sysctls.
  return item("neighbours", shown.join(", ") || "gc_thresh3 is not visible here", findings);
}
