import { addressFamily } from "../../net/prefix.ts";
import { ENODEV, ENOENT } from "../errno.ts";
import { isDeviceName } from "../families/link.ts";
import { badObjectFault, refusalFault } from "../faults.ts";
import type { Kernel, RouteFilter } from "../kernel.ts";
import { leadsTo, resolveNexthops } from "../nexthop-routes.ts";
import type {
  AddressState,
  FdbState,
  LinkState,
  NeighbourState,
  NexthopState,
  RouteState,
} from "../objects.ts";
import { isUnreachable } from "../outcome.ts";
import { type Json, numberOf, textOf } from "./json.ts";
import { decodeLink } from "./links.ts";
import { decodeRoute, decodeRouteGet } from "./routes.ts";
import { list, query, type Run } from "./run.ts";
import { decodeAddresses, decodeFdb, decodeNeighbour, decodeNexthop } from "./states.ts";

/** The reading half of a kernel. */
export type Lists = Pick<
  Kernel,
  | "nexthopObjects"
  | "links"
  | "link"
  | "addresses"
  | "routes"
  | "routeGet"
  | "neighbours"
  | "fdb"
  | "nexthops"
>;

/** Reads the kernel's state with `ip -j` and `bridge -j`. */
export class CommandLists implements Lists {
  readonly nexthopObjects: boolean;
  readonly #run: Run;

  constructor(run: Run, nexthopObjects: boolean) {
    this.#run = run;
    this.nexthopObjects = nexthopObjects;
  }

  async links(): Promise<LinkState[]> {
    const records = await list(this.#run, "ip", ["-j", "-d", "link", "show"], "list the devices");
    return decodeLinks(records, records);
  }

  async link(name: string): Promise<LinkState | undefined> {
    return (
      await this.#records("ip", ["-j", "-d", "link", "show"], name, async (records) =>
        decodeLinks(records, await list(this.#run, "ip", ["-j", "link", "show"], "list the devices")),
      )
    )[0];
  }

  async addresses(dev?: string): Promise<AddressState[]> {
    const args = ["-N", "-j", "address", "show"];
    if (dev !== undefined)
      return this.#records("ip", args, dev, (records) => records.flatMap(decodeAddresses));
    return (await list(this.#run, "ip", args, "list the addresses")).flatMap(decodeAddresses);
  }

  async routes(family: 4 | 6, filter: RouteFilter = {}): Promise<RouteState[]> {
    const { dev, protocol, otherThan } = filter;
    const args = [`-${family}`, "-N", "-j", "route", "show", "table", "main"];
    if (protocol !== undefined) args.push("proto", String(protocol));
    // A family without any route has no table yet, which is refused.
    const { records } = await query(this.#run, "ip", args, `list the IPv${family} routes`);
    const routes = await resolveNexthops(
      records
        .flatMap((record) => decodeRoute(record, family, protocol) ?? [])
        .filter((route) => route.protocol !== otherThan),
      () => this.nexthops(),
    );
    // Not left to `ip`: it drops nexthop routes that the kernel lists without a device.
    return dev === undefined ? routes : routes.filter((route) => leadsTo(route, dev));
  }

  async routeGet(address: string): Promise<{ dev: string; via?: string; src?: string } | undefined> {
    if (addressFamily(address) === undefined) throw badObjectFault("an address", address);
    const what = `look up the route to ${address}`;
    const { records, refusal } = await query(this.#run, "ip", ["-N", "-j", "route", "get", address], what);
    if (refusal && !isUnreachable(refusal)) throw refusalFault(what, refusal);
    const [record] = records;
    return record && decodeRouteGet(record);
  }

  neighbours(family: 4 | 6, dev: string): Promise<NeighbourState[]> {
    return this.#records("ip", [`-${family}`, "-j", "neighbour", "show"], dev, (records) =>
      records.flatMap((record) => decodeNeighbour(record, dev) ?? []),
    );
  }

  fdb(dev: string): Promise<FdbState[]> {
    return this.#records("bridge", ["-j", "fdb", "show"], dev, (records) =>
      records.flatMap((record) => decodeFdb(record, dev) ?? []),
    );
  }

  async nexthops(): Promise<NexthopState[]> {
    if (!this.nexthopObjects) return [];
    const records = await list(this.#run, "ip", ["-N", "-j", "nexthop", "show"], "list the nexthops");
    return records.flatMap((record) => decodeNexthop(record) ?? []);
  }

  /** A listing of one device, empty when there is no such device. */
  async #records<T>(
    tool: "ip" | "bridge",
    args: readonly string[],
    dev: string,
    decode: (records: readonly Json[]) => T[] | Promise<T[]>,
  ): Promise<T[]> {
    if (!isDeviceName(dev)) return [];
    const what = `list what is on "${dev}"`;
    const { records, refusal } = await query(this.#run, tool, [...args, "dev", dev], what);
    if (refusal && refusal.errno !== ENODEV && refusal.errno !== ENOENT) throw refusalFault(what, refusal);
    return decode(records);
  }
}

/** `all` holds the devices that the records name as lower device or master. */
function decodeLinks(records: readonly Json[], all: readonly Json[]): LinkState[] {
  const indexes = new Map(all.map((record) => [textOf(record, "ifname"), numberOf(record, "ifindex")]));
  return records.flatMap((record) => decodeLink(record, (name) => indexes.get(name)) ?? []);
}
