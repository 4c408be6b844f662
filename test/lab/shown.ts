/** An address as `ip -j address` prints it. */
export interface ShownAddress {
  readonly local: string;
  readonly prefixlen: number;
  readonly scope: string;
  readonly [field: string]: unknown;
}

/**
 * A link, route, neighbour, FDB entry or next hop as `ip -j` and `bridge -j` print it: the fields that tests look
 * into, by iproute2's names. What is there depends on the command; a test that looks for something else fails.
 */
export interface Shown {
  readonly id: number;
  readonly ifindex: number;
  readonly ifname: string;
  readonly mtu: number;
  readonly address: string;
  readonly flags: readonly string[];
  readonly linkinfo: {
    readonly info_kind: string;
    readonly info_data: Readonly<Record<string, unknown>>;
  };
  readonly addr_info: readonly [ShownAddress, ...ShownAddress[]];
  readonly dst: string;
  readonly dev: string;
  readonly [field: string]: unknown;
}

/** An entry of what `nft -j` prints; exactly one of the fields is there. */
export interface ShownNft {
  readonly table?: { readonly name: string; readonly handle: number };
  readonly counter?: { readonly name: string; readonly packets: number };
}
