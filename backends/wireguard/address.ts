import { BlockList, isIPv6 } from "node:net";

/** The address part of CIDR text. */
export function baseAddress(subnet: string): string {
  return subnet.slice(0, subnet.indexOf("/"));
}

/** Whether an address lies in one of the prefixes of CIDR text. */
export function liesIn(address: string, prefixes: readonly string[]): boolean {
  return listOf(prefixes).check(address, typeOf(address));
}

const lists = new WeakMap<readonly string[], BlockList>();

/** The prefixes to look an address up in; made once per list of prefixes, since there are thousands of addresses. */
function listOf(prefixes: readonly string[]): BlockList {
  const known = lists.get(prefixes);
  if (known) return known;
  const list = new BlockList();
  for (const prefix of prefixes) {
    const base = baseAddress(prefix);
    list.addSubnet(base, Number(prefix.slice(base.length + 1)), typeOf(base));
  }
  lists.set(prefixes, list);
  return list;
}

/** RFC 1918 and RFC 4193: addresses that routers of the internet do not carry. */
const PRIVATE = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"];

/** Whether an address is of a private network. */
export function isPrivate(address: string): boolean {
  return liesIn(address, PRIVATE);
}

function typeOf(address: string): "ipv4" | "ipv6" {
  return isIPv6(address) ? "ipv6" : "ipv4";
}
