import type { AddressState, FdbState, NeighbourState, NexthopState } from "../objects.ts";
import { flagOf, type Json, numberOf, recordsOf, textOf, wordsOf } from "./json.ts";

/** NUD_* of linux/neighbour.h by the words of `ip neighbour`. */
const NEIGHBOUR_STATES: Readonly<Record<string, number>> = {
  INCOMPLETE: 0x01,
  REACHABLE: 0x02,
  STALE: 0x04,
  DELAY: 0x08,
  PROBE: 0x10,
  FAILED: 0x20,
  NOARP: 0x40,
  PERMANENT: 0x80,
};

/** NUD_* by the words of `bridge fdb`, which prints none for a learned entry in use. */
const FDB_STATES: Readonly<Record<string, number>> = { permanent: 0x80, static: 0x40, stale: 0x04 };
const NUD_REACHABLE = 0x02;

/** The addresses in one record of `ip -N -j address show`. */
export function decodeAddresses(record: Json): AddressState[] {
  const dev = textOf(record, "ifname");
  if (dev === undefined) return [];
  return (recordsOf(record, "addr_info") ?? []).flatMap((info) => {
    const local = textOf(info, "local");
    const name = textOf(info, "family");
    if (local === undefined || (name !== "inet" && name !== "inet6")) return [];
    return {
      dev,
      family: name === "inet" ? 4 : 6,
      address: `${local}/${numberOf(info, "prefixlen") ?? 0}`,
      scope: numberOf(info, "scope") ?? 0,
      deprecated: flagOf(info, "deprecated"),
      temporary: flagOf(info, "temporary"),
      tentative: flagOf(info, "tentative"),
      permanent: !flagOf(info, "dynamic"),
    } as const;
  });
}

/** One record of `ip -j neighbour show dev DEV`. */
export function decodeNeighbour(record: Json, dev: string): NeighbourState | undefined {
  const ip = textOf(record, "dst");
  if (ip === undefined) return undefined;
  const mac = textOf(record, "lladdr");
  const state = wordsOf(record, "state").reduce((bits, word) => bits | (NEIGHBOUR_STATES[word] ?? 0), 0);
  return mac === undefined ? { dev, ip, state } : { dev, ip, mac, state };
}

/** One record of `bridge -j fdb show dev DEV`. */
export function decodeFdb(record: Json, dev: string): FdbState | undefined {
  const mac = textOf(record, "mac");
  if (mac === undefined) return undefined;
  const dst = textOf(record, "dst");
  const state = FDB_STATES[textOf(record, "state") ?? ""] ?? NUD_REACHABLE;
  return dst === undefined ? { dev, mac, state } : { dev, mac, dst, state };
}

/** One record of `ip -N -j nexthop show`. */
export function decodeNexthop(record: Json): NexthopState | undefined {
  const id = numberOf(record, "id");
  if (id === undefined) return undefined;
  const dev = textOf(record, "dev");
  const via = textOf(record, "gateway");
  return {
    id,
    ...(dev === undefined ? {} : { dev }),
    ...(via === undefined ? {} : { via }),
    onlink: wordsOf(record, "flags").includes("onlink"),
    protocol: numberOf(record, "protocol") ?? 0,
  };
}
