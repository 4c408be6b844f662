import { deviceOf, encodeChange } from "../families/change.ts";
import { badObjectFault } from "../faults.ts";
import type { BatchObject } from "../kernel.ts";
import { type KernelChange, ROUTE_PROTOCOL } from "../kernel.ts";
import { MessageBuilder } from "../wire/builder.ts";
import { IPV6_DEFAULT_METRIC } from "../wire/constants.ts";

/** A batch line splits at blanks and knows quotes and comments; a device named with those cannot be written. */
const PLAIN_NAME = /^[A-Za-z0-9_.@+=-]{1,15}$/;
/** Takes the message form of each change once, to hear what is wrong with it. */
const scratch = new MessageBuilder(0);

/** The tool a change is for. */
export function toolOf(object: BatchObject): "ip" | "bridge" {
  return object.kind === "fdb" ? "bridge" : "ip";
}

/**
 * A change as lines for `ip -batch -` or `bridge -batch -`, mostly one. Throws Fault `NETLINK_BAD_OBJECT` for an object
 * with values that are none: the tools end the whole batch at such a line.
 */
export function batchLines(change: KernelChange): string[] {
  const dev = deviceOf(change);
  if (dev !== undefined && !PLAIN_NAME.test(dev)) throw badObjectFault("a device name for a batch", dev);
  scratch.clear();
  encodeChange(scratch, 0, change, 1);
  const line = words(change).join(" ");
  // `ip` ends the whole batch, too, where a neighbour to delete is not there: make sure that it is.
  if (change.action === "delete" && change.object.kind === "neighbour") {
    return [words({ action: "put", object: change.object }).join(" "), line];
  }
  return [line];
}

function words({ action, object }: KernelChange): string[] {
  const put = action === "put";
  const verb = put ? "replace" : "delete";
  switch (object.kind) {
    case "address":
      return ["address", put ? "add" : "delete", object.address, "dev", object.dev];
    case "neighbour":
      return [
        "neighbour",
        verb,
        object.ip,
        ...(put ? ["lladdr", object.mac, "nud", "permanent"] : []),
        "dev",
        object.dev,
      ];
    case "fdb":
      return [
        "fdb",
        verb,
        object.mac,
        "dst",
        object.dst,
        "dev",
        object.dev,
        "self",
        ...(put ? ["permanent"] : []),
      ];
    case "nexthop":
      if (!put) return ["nexthop", "delete", "id", String(object.id)];
      return [
        ...["nexthop", "replace", "id", String(object.id), "via", object.via, "dev", object.dev],
        ...(object.onlink ? ["onlink"] : []),
        ...["proto", String(ROUTE_PROTOCOL)],
      ];
    case "nexthop-route":
      return [
        "route",
        verb,
        object.dst,
        "nhid",
        String(object.nexthop),
        ...tail(put, object, ROUTE_PROTOCOL),
      ];
    case "route":
      return [
        ...["route", verb, ...(object.blackhole ? ["blackhole"] : []), object.dst],
        ...(object.via === undefined ? [] : ["via", object.via]),
        ...(object.blackhole ? [] : ["dev", object.dev]),
        ...(put && object.onlink ? ["onlink"] : []),
        ...(object.src === undefined ? [] : ["src", object.src]),
        ...tail(put, object, put ? ROUTE_PROTOCOL : (object.protocol ?? ROUTE_PROTOCOL)),
      ];
  }
}

/** Metric and protocol, as families/route.ts sends them. */
function tail(
  put: boolean,
  { dst, metric = 0 }: { dst: string; metric?: number },
  protocol: number,
): string[] {
  const sent = metric === 0 && !put && dst.includes(":") ? IPV6_DEFAULT_METRIC : metric;
  return [...(sent === 0 ? [] : ["metric", String(sent)]), "proto", String(protocol)];
}
