import type { CloudRoute } from "flannel/sdk";

/** The part of a `RouteEntry` (DescribeRouteEntryList, 2016-04-28) that is used. */
export interface Entry {
  readonly RouteEntryId?: string;
  readonly DestinationCidrBlock?: string;
  readonly Description?: string;
  readonly Status?: string;
  readonly Type?: string;
  readonly NextHops?: { readonly NextHop?: readonly NextHop[] };
}

interface NextHop {
  readonly NextHopId?: string;
  readonly NextHopType?: string;
  /** 0: the next hop is not usable. */
  readonly Enabled?: number;
}

/** Description of the entries we make. */
export const MARK = "flannel";

/** An entry as core plans with it. Only a custom one to a single instance may be a node's. */
export function toRoute(entry: Entry): CloudRoute {
  const { DestinationCidrBlock = "", RouteEntryId, Description, Status, Type } = entry;
  const hops = entry.NextHops?.NextHop ?? [];
  const [hop] = hops;
  const custom = Type === "Custom";
  const isNode = custom && hops.length === 1 && hop?.NextHopType === "Instance";
  return {
    dst: DestinationCidrBlock,
    target: hop?.NextHopId || hop?.NextHopType || "",
    kind: isNode ? "node" : "foreign",
    state: Status !== "Available" ? "pending" : hop?.Enabled === 0 ? "blackhole" : "active",
    marked: Description === MARK,
    ...(custom ? {} : { uncounted: true }),
    ...(RouteEntryId === undefined ? {} : { id: RouteEntryId }),
  };
}
