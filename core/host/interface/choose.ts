import { compileGoRegex } from "../../config/regex.ts";
import type { Families } from "../../lease/lease.ts";
import { addressFamily, canonicalAddress } from "../../net/prefix.ts";
import { Fault } from "../../observe/fault.ts";
import { type Candidate, type HostDump, isInner, listCandidates } from "./candidates.ts";
import { defaultDevice } from "./default-route.ts";

/** What the operator asked for. */
export interface InterfaceWish {
  /** `--iface`, in order: names or addresses. */
  readonly iface: readonly string[];
  /** `--iface-regex`, in order; tried after all `iface`. */
  readonly ifaceRegex: readonly string[];
  /** Device and source towards `--iface-can-reach`, looked up by the caller. */
  readonly canReach?: { readonly target: string; readonly dev?: string; readonly src?: string };
  readonly publicIP?: string;
  readonly publicIPv6?: string;
}

/** The chosen link with the address of each enabled family, and why it was chosen. */
export interface InterfaceChoice {
  readonly candidate: Candidate;
  readonly ipv4?: string;
  readonly ipv6?: string;
  readonly reason: string;
}

/** A choice, or why there is none yet: the caller waits, since addresses and routes may still come. */
export type InterfaceDecision = { readonly choice: InterfaceChoice } | { readonly fault: Fault };

/**
 * Chooses the interface that carries traffic between hosts, in upstream's order: each `iface`, each `iface-regex`,
 * `iface-can-reach`; with none of them the interface that holds the public address, else the default route's.
 */
export function chooseInterface(dump: HostDump, wish: InterfaceWish, families: Families): InterfaceDecision {
  const candidates = listCandidates(dump);
  const tried: string[] = [];
  for (const attempt of attempts(dump, candidates, wish, families)) {
    const found = attempt();
    if (typeof found === "string") tried.push(found);
    else {
      const filled = fillAddresses(found, wish, families);
      if (typeof filled !== "string") return { choice: filled };
      tried.push(filled);
    }
  }
  return { fault: noInterface(tried, candidates) };
}

type Found = Omit<InterfaceChoice, "candidate"> & { readonly candidate: Candidate };
type Attempt = () => Found | string;

function attempts(
  dump: HostDump,
  candidates: readonly Candidate[],
  wish: InterfaceWish,
  families: Families,
): readonly Attempt[] {
  const asked: Attempt[] = [
    ...wish.iface.map(
      (name): Attempt =>
        () =>
          byNameOrAddress(candidates, name, `--iface ${name}`),
    ),
    ...wish.ifaceRegex.map(
      (pattern): Attempt =>
        () =>
          byPattern(candidates, pattern, families),
    ),
  ];
  const { canReach } = wish;
  if (canReach) asked.push(() => byTarget(candidates, canReach));
  if (asked.length > 0) return asked;
  const published = wish.publicIP ?? wish.publicIPv6;
  const byDefault: Attempt = () => byDefaultRoute(dump, candidates, families);
  if (published === undefined) return [byDefault];
  // Behind NAT nobody here holds the public address; the default route then says where the peers are.
  return [() => byNameOrAddress(candidates, published, `public address ${published}`), byDefault];
}

function byNameOrAddress(candidates: readonly Candidate[], wanted: string, reason: string): Found | string {
  const address = canonicalAddress(wanted);
  if (address === undefined) {
    const candidate = candidates.find((one) => one.link.name === wanted);
    return candidate ? { candidate, reason } : `${reason}: there is no interface of that name`;
  }
  const family = addressFamily(address) === 4 ? "ipv4" : "ipv6";
  const candidate = candidates.find((one) => one[family].includes(address));
  return candidate ? { candidate, [family]: address, reason } : `${reason}: no interface has that address`;
}

/**
 * Pass 1 matches addresses (in dual stack one of each family), pass 2 names, of several those that have an address of
 * each family first; the pattern is not anchored. Devices of container run times never count.
 */
function byPattern(candidates: readonly Candidate[], pattern: string, families: Families): Found | string {
  const regex = compileGoRegex(pattern);
  const reason = `--iface-regex ${pattern}`;
  const outer = candidates.filter((one) => !isInner(one.link));
  for (const candidate of outer) {
    const ipv4 = candidate.ipv4.find((address) => regex.test(address));
    const ipv6 = candidate.ipv6.find((address) => regex.test(address));
    if ((families.ipv4 && ipv4 === undefined) || (families.ipv6 && ipv6 === undefined)) continue;
    return {
      candidate,
      reason,
      ...(ipv4 === undefined ? {} : { ipv4 }),
      ...(ipv6 === undefined ? {} : { ipv6 }),
    };
  }
  const named = outer.filter((one) => regex.test(one.link.name));
  const candidate = named.find(
    (one) => typeof fillAddresses({ candidate: one, reason }, {}, families) !== "string",
  );
  const first = candidate ?? named[0];
  return first ? { candidate: first, reason } : `${reason}: it matches no address and no name`;
}

function byTarget(
  candidates: readonly Candidate[],
  { target, dev, src }: NonNullable<InterfaceWish["canReach"]>,
): Found | string {
  const reason = `--iface-can-reach ${target}`;
  const candidate = candidates.find((one) => one.link.name === dev);
  if (!candidate) return `${reason}: there is no route to it`;
  if (src === undefined) return { candidate, reason };
  return addressFamily(src) === 6 ? { candidate, ipv6: src, reason } : { candidate, ipv4: src, reason };
}

function byDefaultRoute(
  dump: HostDump,
  candidates: readonly Candidate[],
  families: Families,
): Found | string {
  const usable = new Map(candidates.filter((one) => !isInner(one.link)).map((one) => [one.link.name, one]));
  const names = (family: 4 | 6) => defaultDevice(dump.routes, family).filter((name) => usable.has(name));
  const first = families.ipv4 ? names(4) : names(6);
  const shared = families.ipv4 && families.ipv6 ? first.filter((name) => names(6).includes(name)) : first;
  const name = shared[0];
  const candidate = name === undefined ? undefined : usable.get(name);
  if (candidate) return { candidate, reason: "default route" };
  if (families.ipv4 && families.ipv6)
    return "default route: no interface carries both an IPv4 and an IPv6 one";
  return `default route: there is none for ${families.ipv4 ? "IPv4" : "IPv6"}`;
}

/** The address of each family: the one that led here, else the published one if it is here, else the best. */
function fillAddresses(
  { candidate, reason, ...led }: Found,
  published: Pick<InterfaceWish, "publicIP" | "publicIPv6">,
  families: Families,
): InterfaceChoice | string {
  const ipv4 = families.ipv4 ? (led.ipv4 ?? pick(candidate.ipv4, published.publicIP)) : undefined;
  const ipv6 = families.ipv6 ? (led.ipv6 ?? pick(candidate.ipv6, published.publicIPv6)) : undefined;
  const { name, mtu } = candidate.link;
  if (families.ipv4 && ipv4 === undefined) return `${reason}: ${name} has no usable IPv4 address`;
  if (families.ipv6 && ipv6 === undefined) return `${reason}: ${name} has no usable IPv6 address`;
  if (mtu === 0) return `${reason}: ${name} has MTU 0`;
  return {
    candidate,
    reason,
    ...(ipv4 === undefined ? {} : { ipv4 }),
    ...(ipv6 === undefined ? {} : { ipv6 }),
  };
}

function pick(addresses: readonly string[], preferred: string | undefined): string | undefined {
  const wanted = preferred === undefined ? undefined : canonicalAddress(preferred);
  return wanted !== undefined && addresses.includes(wanted) ? wanted : addresses[0];
}

function noInterface(tried: readonly string[], candidates: readonly Candidate[]): Fault {
  const seen = candidates
    .filter((one) => !one.link.loopback)
    .map((one) => `${one.link.name} [${[...one.ipv4, ...one.ipv6].join(" ")}]`);
  return new Fault("INTERFACE_NONE", `no interface to reach other hosts by: ${tried.join("; ")}`, {
    hint: `Choose one with --iface NAME. This host has: ${seen.join(", ") || "no interface but loopback"}.`,
  });
}
