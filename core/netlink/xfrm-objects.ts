/**
 * IPsec policies and states as plain data (`ip xfrm policy`, `ip xfrm state`). A leaf: imports nothing. Addresses and
 * prefixes are canonical IPv4 or IPv6 text.
 */

/** What a policy is asked for: packets that leave, that arrive for this host, that arrive to be forwarded. */
export type XfrmDirection = "in" | "out" | "fwd";

/** An ESP tunnel between two hosts that packets are put into, or must have come out of. */
export interface XfrmTunnel {
  readonly src: string;
  readonly dst: string;
  /** Ties the policy to the states that carry it. */
  readonly reqid: number;
}

/** `ip xfrm policy update src SRC dst DST dir DIR tmpl src … dst … proto esp reqid REQID mode tunnel` */
export interface XfrmPolicy {
  /** CIDR text. */
  readonly src: string;
  /** CIDR text. */
  readonly dst: string;
  readonly direction: XfrmDirection;
  readonly tunnel: XfrmTunnel;
}

/** A policy as the kernel has it. */
export interface XfrmPolicyState extends Omit<XfrmPolicy, "tunnel"> {
  /** Absent for a policy that wants something else than one ESP tunnel. */
  readonly tunnel?: XfrmTunnel;
}

/** A security association as the kernel has it, without its keys. */
export interface XfrmState {
  readonly src: string;
  readonly dst: string;
  /** Security parameter index, as in the ESP header. */
  readonly spi: number;
  /** IP protocol: 50 is ESP, 51 AH. */
  readonly protocol: number;
  readonly reqid: number;
  readonly mode: "transport" | "tunnel" | "other";
}

/** One change; what is there already, or gone already, is success. */
export type XfrmChange =
  | { readonly action: "put"; readonly policy: XfrmPolicy }
  | { readonly action: "delete"; readonly policy: Pick<XfrmPolicy, "src" | "dst" | "direction"> }
  | { readonly action: "delete"; readonly state: Pick<XfrmState, "src" | "dst" | "spi" | "protocol"> };

/** A change the kernel refused. */
export interface XfrmFailure {
  readonly change: XfrmChange;
  /** e.g. `EINVAL: invalid argument`, or the kernel's own words. */
  readonly text: string;
}
