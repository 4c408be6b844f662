import type { BatchObject } from "../netlink/kernel.ts";
import { type Counts, count } from "../observe/counts.ts";
import { identityOf } from "./identity.ts";
import type { Reconciled } from "./reconcile.ts";

/** What one look at the kernel set right. */
export interface Repaired {
  /** Number of objects by kind. */
  readonly objects: Counts;
  /** Whose objects were missing or different: peers by key. */
  readonly owners: readonly string[];
  /** Where, when that is not the kernel. */
  readonly where?: string;
}

/** What a comparison with the kernel set right; `ownerOf` tells whom a wanted object belongs to. */
export function findRepaired(
  { changes, failures }: Reconciled,
  ownerOf: (identity: string) => string | undefined,
): Repaired {
  const failed = new Set(failures.map((failure) => failure.index));
  const objects: Counts = {};
  const owners = new Set<string>();
  for (const [index, change] of changes.entries()) {
    if (failed.has(index)) continue;
    count(objects, kindOf(change.object));
    const owner = ownerOf(identityOf(change.object));
    if (owner !== undefined) owners.add(owner);
  }
  return { objects, owners: [...owners] };
}

/** For people a route is a route, whether it points to a nexthop object or not. */
function kindOf({ kind }: BatchObject): string {
  return kind === "nexthop-route" ? "route" : kind;
}
