import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Host } from "../../lab/host.ts";

/** Before what a command says about one kind of things. */
const ABOUT = "=== ";

/**
 * Everything that a backend may make, in few processes: a guest takes its time for each. The part about IPsec comes
 * last, since `ip` ends where the kernel has none.
 */
const SHOW = `
ip -d -o -force -batch - <<END 2>/dev/null
link show
address show
route show table all
nexthop show
rule show
neighbour show nud permanent
xfrm policy list
xfrm state list
END
echo "${ABOUT}IPv6 rule"
ip -6 rule show
echo "${ABOUT}fdb"
bridge fdb show
echo "${ABOUT}nft"
nft list ruleset
`;

/** What is not of backends: the pods' side, what the kernel has of itself, IPv6 that is not ours. */
const NOT_OURS = /\b(cni0|pod1|tunl0)\b|\binet6\b|^fdb (?!.*flannel)/;
/** What differs from run to run, or changes while nothing is done. */
const VOLATILE: readonly (readonly [RegExp, string])[] = [
  [/counter packets \d+ bytes \d+/, "counter"],
  [/ # handle \d+/, ""],
  // The order in which devices were made, and whether a packet has passed.
  [/^\d+: /, ""],
  [/ state [A-Z]+/, ""],
  // A device that is made anew has another address.
  [/ link\/ether [0-9a-f:]+/, ""],
  [/ promiscuity .* maxmtu \d+/, ""],
  [/ numtxqueues .*/, ""],
  [/ valid_lft .*/, ""],
  [/ table main\b/, ""],
];

/** A policy, or a state, whose keys and SPI are new each time. */
const XFRM = /^(src \S+ dst \S+)(?: proto .*|(.*\b(?:dir|socket) \w+.*))/;

/** What a backend may have made on a host: devices, addresses, routes, rules, processes, files; sorted lines. */
export async function hostState(host: Host): Promise<readonly string[]> {
  const text = await host.namespace.exec("sh", "-c", SHOW);
  return [
    ...labelled(text).map(normalise),
    ...commandsIn(host)
      .filter((name) => /charon|wireguard/.test(name))
      .map((name) => `process ${name}`),
    ...filesOf(host).map((name) => `file ${name}`),
  ]
    .filter((line) => line !== "" && !NOT_OURS.test(line) && !isForeignIpv6(line))
    .sort();
}

/** Lines that begin with what they are about. */
function labelled(text: string): readonly string[] {
  const [first = "", ...others] = text.split(ABOUT);
  return [
    ...first.split("\n"),
    ...others.flatMap((part) => {
      const [about, ...lines] = part.split("\n");
      return lines.filter((line) => line !== "").map((line) => `${about} ${line}`);
    }),
  ];
}

function normalise(line: string): string {
  const words = line.replaceAll(/[\s\\]+/g, " ").trim();
  const [, ends, policy] = XFRM.exec(words) ?? [];
  if (ends !== undefined)
    return policy === undefined ? `xfrm state ${ends}` : `xfrm policy ${ends} ${policyOf(policy)}`;
  return VOLATILE.reduce((text, [what, by]) => text.replace(what, by), words);
}

/** Without its number and its age. */
function policyOf(text: string): string {
  return (text.match(/\b(dir \w+|socket \w+|tmpl src \S+ dst \S+|proto \w+|reqid \d+)/g) ?? []).join(" ");
}

/** Routes that the kernel makes by itself as devices come and go. */
function isForeignIpv6(line: string): boolean {
  return /^(unicast|local|multicast|anycast) [0-9a-f]*:\S* /.test(line) && !line.includes("proto 140");
}

/** Commands of the processes in the namespace of a host. */
function commandsIn(host: Host): readonly string[] {
  const inode = statSync(host.namespace.path).ino;
  return readdirSync("/proc").flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      if (readlinkSync(`/proc/${pid}/ns/net`) !== `net:[${inode}]`) return [];
      return [readFileSync(`/proc/${pid}/comm`, "utf8").trim()];
    } catch {
      // It ended meanwhile.
      return [];
    }
  });
}

/** The daemon's files, and sockets of WireGuard in user space. */
function filesOf({ directory }: Host): readonly string[] {
  return [
    ...readdirSync(directory).filter((name) => name.startsWith("subnet.env")),
    ...new Bun.Glob("wireguard/*").scanSync({ cwd: join(directory, "run"), onlyFiles: false }),
  ];
}
