import { Turns } from "../retry/turns.ts";
import { readAddressAssignType } from "./assign-type.ts";
import { BATCH_BYTES, Batch } from "./batch.ts";
import { CachedDeviceNames } from "./devices.ts";
import { ENODEV, ENOENT, EOPNOTSUPP } from "./errno.ts";
import { type Encode, Exchange } from "./exchange.ts";
import { decodeAddress, encodeAddressDump } from "./families/address.ts";
import { decodeFdb, encodeFdbDump } from "./families/fdb.ts";
import {
  decodeLink,
  encodeLinkChange,
  encodeLinkCreate,
  encodeLinkDelete,
  encodeLinkDump,
  encodeLinkQuery,
  isDeviceName,
  type RawLink,
} from "./families/link.ts";
import { decodeNeighbour, encodeNeighbourDump } from "./families/neighbour.ts";
import { decodeNexthop, encodeNexthopDump, encodeNexthopQuery } from "./families/nexthop.ts";
import { encodeRouteDump, encodeRouteGet } from "./families/route.ts";
import { decodeRoute, decodeRouteGet, protocolOf } from "./families/route-state.ts";
import { encodeRuleDelete } from "./families/rule.ts";
import { linkMissingFault, refusalFault, underlayMissingFault } from "./faults.ts";
import type { ChangeFailure, Kernel, KernelChange, Notice, RouteFilter } from "./kernel.ts";
import { creationFault, describeLinkChange } from "./link-change.ts";
import { leadsTo, resolveNexthops } from "./nexthop-routes.ts";
import { openNotices } from "./notices.ts";
import type {
  AddressState,
  FdbState,
  LinkState,
  NeighbourState,
  NexthopState,
  RouteState,
  RoutingRule,
  WantedLink,
} from "./objects.ts";
import { isNoRule, isUnreachable } from "./outcome.ts";
import { readTxChecksum, writeTxChecksum } from "./tx-checksum.ts";
import type { MessageCursor } from "./wire/reader.ts";
import { WireguardExchange } from "./wireguard.ts";
import type { WireguardChange, WireguardState } from "./wireguard-objects.ts";
import { XfrmExchange } from "./xfrm.ts";
import type { XfrmChange, XfrmFailure, XfrmPolicyState, XfrmState } from "./xfrm-objects.ts";

/** Receive buffers in bytes: room for a batch whose every message is refused, and for a burst of notices. */
const RECEIVE_BUFFER = 8 * 1024 * 1024;
/** Requests with one answer: a link creation takes under 300 bytes. */
const QUERY_BYTES = 1024;

export interface RtnetlinkOptions {
  /** Receive buffer of each notice subscription in bytes, default 8 MiB. */
  readonly noticeBuffer?: number;
}

/**
 * The kernel over rtnetlink. Three sockets: one for questions answered at once, one for dumps and one for batches,
 * which yield in between and therefore take turns. The sockets belong to the network namespace that the thread is
 * in when the kernel is opened; each subscription to notices to the one at its opening.
 */
export class RtnetlinkKernel implements Kernel {
  readonly nexthopObjects: boolean;
  readonly #query: Exchange;
  readonly #dumps: Exchange;
  readonly #batches: Exchange;
  readonly #batch: Batch;
  readonly #wireguard = new WireguardExchange();
  readonly #xfrm = new XfrmExchange();
  readonly #dumpTurns = new Turns();
  readonly #batchTurns = new Turns();
  readonly #noticeBuffer: number;
  /** What ends each subscription. */
  readonly #subscriptions = new Set<() => void>();

  /** Throws Fault `FFI_UNAVAILABLE` without foreign functions, `NETLINK_SOCKET` when the kernel grants no socket. */
  constructor(options: RtnetlinkOptions = {}) {
    this.#noticeBuffer = options.noticeBuffer ?? RECEIVE_BUFFER;
    this.#query = new Exchange({ batchBytes: QUERY_BYTES, receiveBuffer: RECEIVE_BUFFER });
    this.#dumps = new Exchange({ batchBytes: QUERY_BYTES, receiveBuffer: RECEIVE_BUFFER });
    this.#batches = new Exchange({ batchBytes: BATCH_BYTES, receiveBuffer: RECEIVE_BUFFER });
    this.#batch = new Batch(this.#batches, (dev) => this.#lookUp(dev)?.state.index);
    this.nexthopObjects = hasNexthopObjects(this.#query);
  }

  async links(): Promise<LinkState[]> {
    const raw = await this.#dump("list the devices", encodeLinkDump, decodeLink);
    const names = new Map(raw.map(({ state }) => [state.index, state.name]));
    return raw.map((link) => finishLink(link, (index) => names.get(index)));
  }

  async link(name: string): Promise<LinkState | undefined> {
    const raw = this.#lookUp(name);
    return raw && finishLink(raw, (index) => this.#nameOf(index));
  }

  async addresses(dev?: string): Promise<AddressState[]> {
    const index = this.#filterIndex(dev);
    if (index === undefined) return [];
    const names = this.#names();
    const decode = (message: MessageCursor) => decodeAddress(message, names);
    const all = await this.#dump("list the addresses", (b, s) => encodeAddressDump(b, s, index), decode);
    return dev === undefined ? all : all.filter((address) => address.dev === names.nameOf(index));
  }

  async routes(family: 4 | 6, filter: RouteFilter = {}): Promise<RouteState[]> {
    const index = this.#filterIndex(filter.dev);
    if (index === undefined) return [];
    const names = this.#names();
    const encode: Encode = (b, s) => encodeRouteDump(b, s, family, index, filter.protocol ?? 0);
    const all = await this.#dump(`list the IPv${family} routes`, encode, (message) =>
      protocolOf(message) === filter.otherThan ? undefined : decodeRoute(message, names),
    );
    const routes = await resolveNexthops(all, () => this.nexthops());
    const dev = index === 0 ? undefined : names.nameOf(index);
    // The kernel filters (since 4.20); what is left to do here costs nothing.
    return routes.filter(
      (route) =>
        route.family === family &&
        (filter.protocol === undefined || route.protocol === filter.protocol) &&
        (dev === undefined || leadsTo(route, dev)),
    );
  }

  async routeGet(address: string): Promise<{ dev: string; via?: string; src?: string } | undefined> {
    const { refusal, messages } = this.#query.request((b, s) => encodeRouteGet(b, s, address));
    if (refusal) {
      if (isUnreachable(refusal)) return undefined;
      throw refusalFault(`look up the route to ${address}`, refusal);
    }
    const [answer] = messages;
    return answer && decodeRouteGet(answer, this.#names());
  }

  async neighbours(family: 4 | 6, dev: string): Promise<NeighbourState[]> {
    const index = this.#filterIndex(dev);
    if (index === undefined) return [];
    const names = this.#names();
    const encode: Encode = (b, s) => encodeNeighbourDump(b, s, family, index);
    const all = await this.#dump("list the neighbours", encode, (message) => decodeNeighbour(message, names));
    return all.filter((neighbour) => neighbour.dev === names.nameOf(index));
  }

  async fdb(dev: string): Promise<FdbState[]> {
    const index = this.#filterIndex(dev);
    if (index === undefined) return [];
    const names = this.#names();
    const encode: Encode = (b, s) => encodeFdbDump(b, s, index);
    const all = await this.#dump("list the FDB", encode, (message) => decodeFdb(message, names));
    return all.filter((entry) => entry.dev === names.nameOf(index));
  }

  async nexthops(): Promise<NexthopState[]> {
    if (!this.nexthopObjects) return [];
    const names = this.#names();
    return this.#dump("list the nexthops", encodeNexthopDump, (message) => decodeNexthop(message, names));
  }

  async createLink(link: WantedLink): Promise<void> {
    const underlay = link.type === "vxlan" ? link.vxlan.underlay : undefined;
    const index = underlay === undefined ? undefined : this.#lookUp(underlay)?.state.index;
    if (underlay !== undefined && index === undefined) throw underlayMissingFault(link.name, underlay);
    const { refusal } = this.#query.request((b, s) => encodeLinkCreate(b, s, link, index));
    if (refusal) throw await creationFault(this, link, refusal);
  }

  async setLink(name: string, change: { mtu?: number; mac?: string; up?: boolean }): Promise<void> {
    const index = this.#lookUp(name)?.state.index;
    if (index === undefined) throw linkMissingFault(name);
    const { refusal } = this.#query.request((b, s) => encodeLinkChange(b, s, index, change));
    if (refusal?.errno === ENODEV) throw linkMissingFault(name);
    if (refusal) throw refusalFault(`set ${describeLinkChange(change)} on "${name}"`, refusal);
  }

  async deleteLink(name: string): Promise<void> {
    const index = this.#lookUp(name)?.state.index;
    if (index === undefined) return;
    const { refusal } = this.#query.request((b, s) => encodeLinkDelete(b, s, index));
    if (refusal && refusal.errno !== ENODEV) throw refusalFault(`delete the device "${name}"`, refusal);
  }

  async deleteRule(family: 4 | 6, rule: RoutingRule): Promise<boolean> {
    const { refusal } = this.#query.request((b, s) => encodeRuleDelete(b, s, family, rule));
    if (refusal && !isNoRule(refusal))
      throw refusalFault(`delete the routing rule ${rule.priority}`, refusal);
    return refusal === undefined;
  }

  async txChecksum(dev: string): Promise<boolean | undefined> {
    return readTxChecksum(this.#query.socket.fd, dev);
  }

  async setTxChecksum(dev: string, on: boolean): Promise<void> {
    writeTxChecksum(this.#query.socket.fd, dev, on);
  }

  wireguard(dev: string): Promise<WireguardState | undefined> {
    return this.#wireguard.read(dev);
  }

  setWireguard(dev: string, change: WireguardChange): Promise<void> {
    return this.#wireguard.write(dev, change);
  }

  xfrmPolicies(): Promise<XfrmPolicyState[]> {
    return this.#xfrm.policies();
  }

  xfrmStates(): Promise<XfrmState[]> {
    return this.#xfrm.states();
  }

  applyXfrm(changes: readonly XfrmChange[]): Promise<XfrmFailure[]> {
    return this.#xfrm.apply(changes);
  }

  apply(changes: readonly KernelChange[]): Promise<ChangeFailure[]> {
    return this.#batchTurns.take(() => this.#batch.apply(changes));
  }

  notices(signal: AbortSignal): AsyncIterable<readonly Notice[]> {
    // Ends with the caller's signal and with `close`; AbortSignal.any would hang on to a signal that lives for ever.
    const ending = new AbortController();
    const end = () => ending.abort();
    if (signal.aborted) end();
    const subscription = openNotices({
      signal: ending.signal,
      receiveBuffer: this.#noticeBuffer,
      lookUp: (index) => this.#nameOf(index),
      finish: (link) => finishLink(link, (index) => this.#nameOf(index)),
      onEnd: () => {
        signal.removeEventListener("abort", end);
        this.#subscriptions.delete(end);
      },
    });
    signal.addEventListener("abort", end, { once: true });
    this.#subscriptions.add(end);
    return subscription;
  }

  close(): void {
    for (const end of [...this.#subscriptions]) end();
    for (const each of [this.#query, this.#dumps, this.#batches, this.#wireguard, this.#xfrm]) each.close();
  }

  async #dump<T>(
    what: string,
    encode: Encode,
    decode: (message: MessageCursor) => T | undefined,
  ): Promise<T[]> {
    const { refusal, items } = await this.#dumpTurns.take(() => this.#dumps.dump(encode, decode));
    // A table, device or family that does not exist has no entries.
    if (refusal && refusal.errno !== ENOENT && refusal.errno !== ENODEV) throw refusalFault(what, refusal);
    return items;
  }

  /** Index to filter a dump by: 0 for no filter, undefined for a device that does not exist. */
  #filterIndex(dev: string | undefined): number | undefined {
    return dev === undefined ? 0 : this.#lookUp(dev)?.state.index;
  }

  #names(): CachedDeviceNames {
    return new CachedDeviceNames((index) => this.#nameOf(index));
  }

  #nameOf(index: number): string | undefined {
    return this.#lookUp(index)?.state.name;
  }

  #lookUp(which: string | number): RawLink | undefined {
    if (typeof which === "string" && !isDeviceName(which)) return undefined;
    const { refusal, messages } = this.#query.request((b, s) => encodeLinkQuery(b, s, which));
    if (refusal?.errno === ENODEV) return undefined;
    if (refusal) throw refusalFault(`look up the device ${JSON.stringify(which)}`, refusal);
    const [answer] = messages;
    return answer && decodeLink(answer);
  }
}

/** RTM_GETNEXTHOP is unknown (EOPNOTSUPP) before Linux 5.3; after it, id 0 is refused with another error. */
function hasNexthopObjects(query: Exchange): boolean {
  return query.request(encodeNexthopQuery).refusal?.errno !== EOPNOTSUPP;
}

/** Names the underlay and adds what only sysfs knows. */
function finishLink({ state, vxlan }: RawLink, nameOf: (index: number) => string | undefined): LinkState {
  if (!vxlan) return state;
  const underlay = vxlan.underlay === undefined ? undefined : nameOf(vxlan.underlay);
  const addressAssignType = readAddressAssignType(state.name, state.index);
  return {
    ...state,
    ...(addressAssignType === undefined ? {} : { addressAssignType }),
    vxlan: underlay === undefined ? vxlan.attrs : { ...vxlan.attrs, underlay },
  };
}
