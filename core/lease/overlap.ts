import { overlaps } from "../net/prefix.ts";
import { prefixesOf } from "./key.ts";
import type { Subnets } from "./lease.ts";

/** Whether two leases' subnets share an address in any family. */
export function overlapsAny(a: Subnets, b: Subnets): boolean {
  const theirs = prefixesOf(b);
  return prefixesOf(a).some((mine) => theirs.some((their) => overlaps(mine, their)));
}
