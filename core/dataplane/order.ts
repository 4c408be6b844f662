import type { BatchObject, KernelChange } from "../netlink/kernel.ts";

/**
 * Writing order: the neighbour and forwarding entries stand before traffic is led to them, so the kernel never asks
 * for an address over the tunnel.
 */
const PUT_ORDER: Readonly<Record<BatchObject["kind"], number>> = {
  address: 1,
  neighbour: 2,
  fdb: 3,
  nexthop: 4,
  "nexthop-route": 5,
  route: 5,
};

/** Removal order: the route first (deleting a nexthop in use walks the whole FIB), addresses last. */
const DELETE_ORDER: Readonly<Record<BatchObject["kind"], number>> = {
  route: 0,
  "nexthop-route": 0,
  nexthop: 6,
  fdb: 7,
  neighbour: 8,
  address: 9,
};

/**
 * All changes in the one safe order: stale routes go first, then what is wanted is written bottom up, then what
 * nothing points to any more is removed top down. Stable within a rank.
 */
export function orderChanges(put: Iterable<BatchObject>, gone: Iterable<BatchObject>): KernelChange[] {
  const ranks: KernelChange[][] = Array.from({ length: 10 }, () => []);
  for (const object of gone) ranks[DELETE_ORDER[object.kind]]?.push({ action: "delete", object });
  for (const object of put) ranks[PUT_ORDER[object.kind]]?.push({ action: "put", object });
  return ranks.flat();
}
