import type { Namespace } from "../../lab/namespace.ts";
import { until } from "../../lab/until.ts";

/** The data path as `ip` and `bridge` show it, a line per object, sorted. */
export async function showDataPath(ns: Namespace): Promise<string[]> {
  const [addresses, ipv4, ipv6, neighbours, fdb] = await Promise.all([
    ns.json("ip", "-j", "address", "show"),
    ns.json("ip", "-j", "-4", "route", "show", "table", "main"),
    ns.json("ip", "-j", "-6", "route", "show", "table", "main"),
    ns.json("ip", "-j", "neighbour", "show", "nud", "permanent"),
    ns.json("bridge", "-j", "fdb", "show"),
  ]);
  const lines: string[] = [];
  for (const link of addresses) {
    if (!/^flannel/.test(link.ifname)) continue;
    for (const address of link.addr_info) {
      if (address.scope === "global")
        lines.push(`address ${address.local}/${address.prefixlen} ${link.ifname}`);
    }
  }
  for (const route of [...ipv4, ...ipv6]) {
    if (route.protocol === "kernel") continue;
    const parts = [route.dst, route.gateway && `via ${route.gateway}`, `dev ${route.dev}`];
    const onlink = (route.flags ?? []).includes("onlink") ? "onlink" : undefined;
    const metric = route.metric === undefined || route.metric === 1024 ? undefined : `metric ${route.metric}`;
    // `ip` leaves out its own default, boot.
    const proto = route.protocol === "140" ? undefined : `proto ${route.protocol ?? "boot"}`;
    lines.push(["route", ...parts, onlink, metric, proto].filter(Boolean).join(" "));
  }
  for (const each of neighbours) {
    if (/^flannel/.test(each.dev)) lines.push(`neighbour ${each.dst} ${each.lladdr} ${each.dev}`);
  }
  for (const each of fdb) {
    if (/^flannel/.test(each.ifname) && each.dst) lines.push(`fdb ${each.mac} ${each.dst} ${each.ifname}`);
  }
  return lines.sort();
}

/** What upstream's rules make of vxlan peer n, written down independently of the planner. */
export function vxlanPeerLines(
  n: number,
  change: { mac?: string; address?: string; vni?: number } = {},
): string[] {
  const hex = n.toString(16).padStart(2, "0");
  const { mac = `02:00:00:00:02:${hex}`, address = `192.0.2.${n}`, vni = 1 } = change;
  return [
    `fdb ${mac} ${address} flannel.${vni}`,
    `neighbour 10.5.${n}.0 ${mac} flannel.${vni}`,
    `route 10.5.${n}.0/24 via 10.5.${n}.0 dev flannel.${vni} onlink`,
    `fdb ${mac} 2001:db8::${n} flannel-v6.${vni}`,
    `neighbour fd00:5:${n}:: ${mac} flannel-v6.${vni}`,
    `route fd00:5:${n}::/64 via fd00:5:${n}:: dev flannel-v6.${vni} onlink`,
  ];
}

/** The node's own lines. */
export function vxlanOwnLines(vni = 1): string[] {
  return [`address 10.5.1.0/32 flannel.${vni}`, `address fd00:5:1::/128 flannel-v6.${vni}`];
}

/** Waits until the kernel shows exactly these lines; the error shows what is missing and what is too much. */
export async function untilDataPath(
  ns: Namespace,
  lines: readonly string[],
  deadline = 3_000,
): Promise<number> {
  const wanted = [...lines].sort();
  const begun = performance.now();
  let shown: string[] = [];
  await until(
    async () => {
      shown = await showDataPath(ns);
      return shown.join("\n") === wanted.join("\n");
    },
    {
      deadline,
      message: () => {
        const missing = wanted.filter((line) => !shown.includes(line)).map((line) => `- ${line}`);
        const extra = shown.filter((line) => !wanted.includes(line)).map((line) => `+ ${line}`);
        return `the data path differs:\n${[...missing, ...extra].join("\n")}`;
      },
    },
  );
  return performance.now() - begun;
}
