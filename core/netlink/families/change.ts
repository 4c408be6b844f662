import type { KernelChange } from "../kernel.ts";
import type { MessageBuilder } from "../wire/builder.ts";
import { encodeAddress } from "./address.ts";
import { encodeFdb } from "./fdb.ts";
import { encodeNeighbour } from "./neighbour.ts";
import { encodeNexthop } from "./nexthop.ts";
import { encodeNexthopRoute, encodeRoute } from "./route.ts";

/** The device the kernel must be told of; a blackhole has none, a nexthop is deleted by its id alone. */
export function deviceOf({ action, object }: KernelChange): string | undefined {
  if (object.kind === "route" && object.blackhole) return undefined;
  if (object.kind === "nexthop-route" || (object.kind === "nexthop" && action === "delete")) return undefined;
  return object.dev;
}

/**
 * Writes one change as a message; `index` is that of its device. Throws Fault `NETLINK_BAD_OBJECT` for an object that
 * cannot be written down, leaving the message unfinished: cancel it then.
 */
export function encodeChange(
  builder: MessageBuilder,
  sequence: number,
  change: KernelChange,
  index: number,
): void {
  const { action, object } = change;
  switch (object.kind) {
    case "route":
      encodeRoute(builder, sequence, action, object, index);
      break;
    case "neighbour":
      encodeNeighbour(builder, sequence, action, object, index);
      break;
    case "fdb":
      encodeFdb(builder, sequence, action, object, index);
      break;
    case "nexthop":
      encodeNexthop(builder, sequence, action, object, index);
      break;
    case "nexthop-route":
      encodeNexthopRoute(builder, sequence, action, object);
      break;
    case "address":
      encodeAddress(builder, sequence, action, object, index);
      break;
  }
}
