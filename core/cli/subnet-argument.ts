import type { Subnets } from "../lease/lease.ts";
import { parseSubnets } from "../lease/subnet-text.ts";
import { Fault } from "../observe/fault.ts";

/** The subnets an argument names. Throws Fault `FLAG_INVALID`. */
export function readSubnets(text: string): Subnets {
  const subnets = parseSubnets(text);
  if (subnets) return subnets;
  const shown = JSON.stringify(text.slice(0, 64).toWellFormed());
  throw new Fault("FLAG_INVALID", `argument SUBNET: ${shown} is no subnet`, {
    hint: "write it as 10.244.5.0/24, in dual stack as 10.244.5.0/24,fd00:10:244:5::/64",
  });
}
