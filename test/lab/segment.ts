/**
 * One L2 segment's address plan. Documentation ranges (RFC 5737, RFC 3849 style ULA): nothing here can collide
 * with a real network. Host numbers are 1–99; 100 is the switch itself (where etcd runs); 254 is the router.
 */
export class Segment {
  /** 1 or 2, the third octet pair of every MAC address on the segment. */
  readonly number: 1 | 2;

  constructor(number: 1 | 2) {
    this.number = number;
  }

  /** CIDR text of the IPv4 network. */
  get networkV4(): string {
    return `${this.#baseV4}.0/24`;
  }

  /** CIDR text of the IPv6 network. */
  get networkV6(): string {
    return `${this.#baseV6}::/64`;
  }

  /** IPv4 address of host `n`, without prefix length. */
  ipv4(n: number): string {
    return `${this.#baseV4}.${n}`;
  }

  /** IPv6 address of host `n`; the decimal digits are kept (host 10 is `::10`), so both families read alike. */
  ipv6(n: number): string {
    return `${this.#baseV6}::${n}`;
  }

  /** Locally administered MAC address of host `n`. */
  mac(n: number): string {
    const hex = (value: number) => value.toString(16).padStart(2, "0");
    return `02:00:00:00:${hex(this.number)}:${hex(n)}`;
  }

  get #baseV4(): string {
    return this.number === 1 ? "192.0.2" : "198.51.100";
  }

  get #baseV6(): string {
    return this.number === 1 ? "fd00:db8" : "fd00:db8:1";
  }
}

/** Number of the switch's own address on its segment; etcd listens there. */
export const SWITCH_NUMBER = 100;
/** Number of the router on each of its segments; the default gateway of every host. */
export const ROUTER_NUMBER = 254;

/** Which address families something has. */
export type Family = "v4" | "v6" | "dual";

/** Whether `family` includes IPv4. */
export function hasV4(family: Family): boolean {
  return family !== "v6";
}

/** Whether `family` includes IPv6. */
export function hasV6(family: Family): boolean {
  return family !== "v4";
}
