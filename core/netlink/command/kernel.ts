import { Turns } from "../../retry/turns.ts";
import { ENODEV } from "../errno.ts";
import { isDeviceName } from "../families/link.ts";
import { badObjectFault, linkMissingFault, refusalFault, underlayMissingFault } from "../faults.ts";
import type { ChangeFailure, Kernel, KernelChange, Notice, RouteFilter } from "../kernel.ts";
import { creationFault, describeLinkChange } from "../link-change.ts";
import type {
  AddressState,
  FdbState,
  LinkState,
  NeighbourState,
  NexthopState,
  RouteState,
  RoutingRule,
  WantedLink,
} from "../objects.ts";
import { isNoRule } from "../outcome.ts";
import type { WireguardChange, WireguardState } from "../wireguard-objects.ts";
import type { XfrmChange, XfrmFailure, XfrmPolicyState, XfrmState } from "../xfrm-objects.ts";
import { applyByCommand } from "./batch.ts";
import { createArguments } from "./links.ts";
import { CommandLists, type Lists } from "./lists.ts";
import { pollNotices, takeSnapshot } from "./poll.ts";
import { command, query, type Run } from "./run.ts";
import { readTxChecksumByCommand, writeTxChecksumByCommand } from "./tx-checksum.ts";
import { readWireguardByCommand, writeWireguardByCommand } from "./wireguard.ts";
import { applyXfrmByCommand, readPoliciesByCommand, readStatesByCommand } from "./xfrm.ts";

/** Time between two looks for notices, ms: each look runs some ten commands. */
const POLL_MS = 5000;

/**
 * The kernel through `ip` and `bridge` of iproute2 (5.0 or newer), for where rtnetlink cannot be spoken. Some ten
 * times slower; notices are found by looking again and again, so a change undone in between goes unseen.
 */
export class CommandKernel implements Kernel {
  readonly #lists: CommandLists;
  readonly #run: Run;
  readonly #pollInterval: number;
  readonly #turns = new Turns();
  readonly #closing = new AbortController();
  /** Over when the first look of every subscription so far is. */
  #baseline: Promise<unknown> = Promise.resolve();

  private constructor(run: Run, nexthopObjects: boolean, pollInterval: number) {
    this.#run = run;
    this.#lists = new CommandLists(run, nexthopObjects);
    this.#pollInterval = pollInterval;
  }

  get nexthopObjects(): boolean {
    return this.#lists.nexthopObjects;
  }

  /** Finds out what the kernel can do. Throws what `run` throws when `ip` is not installed. */
  static async open(run: Run, options: { pollInterval?: number } = {}): Promise<CommandKernel> {
    // Refused by a kernel (before 5.3) or an `ip` (before 5.3) that does not know them.
    const { refusal } = await query(run, "ip", ["-j", "nexthop", "show"], "list the nexthops");
    return new CommandKernel(run, refusal === undefined, options.pollInterval ?? POLL_MS);
  }

  async links(): Promise<LinkState[]> {
    return (await this.#settled()).links();
  }

  async link(name: string): Promise<LinkState | undefined> {
    return (await this.#settled()).link(name);
  }

  async addresses(dev?: string): Promise<AddressState[]> {
    return (await this.#settled()).addresses(dev);
  }

  async routes(family: 4 | 6, filter: RouteFilter = {}): Promise<RouteState[]> {
    return (await this.#settled()).routes(family, filter);
  }

  async routeGet(address: string): Promise<{ dev: string; via?: string; src?: string } | undefined> {
    return (await this.#settled()).routeGet(address);
  }

  async neighbours(family: 4 | 6, dev: string): Promise<NeighbourState[]> {
    return (await this.#settled()).neighbours(family, dev);
  }

  async fdb(dev: string): Promise<FdbState[]> {
    return (await this.#settled()).fdb(dev);
  }

  async nexthops(): Promise<NexthopState[]> {
    return (await this.#settled()).nexthops();
  }

  async createLink(link: WantedLink): Promise<void> {
    if (!isDeviceName(link.name)) throw badObjectFault("a device name", link.name);
    const underlay = link.type === "vxlan" ? link.vxlan.underlay : undefined;
    if (underlay !== undefined && !(await this.link(underlay)))
      throw underlayMissingFault(link.name, underlay);
    const refusal = await command(this.#run, "ip", createArguments(link));
    if (refusal) throw await creationFault(this, link, refusal);
  }

  async setLink(name: string, change: { mtu?: number; mac?: string; up?: boolean }): Promise<void> {
    const args = ["link", "set", "dev", name];
    if (change.mtu !== undefined) args.push("mtu", String(change.mtu));
    if (change.mac !== undefined) args.push("address", change.mac);
    if (change.up !== undefined) args.push(change.up ? "up" : "down");
    const refusal = isDeviceName(name) ? await command(this.#run, "ip", args) : { errno: ENODEV, text: "" };
    if (refusal?.errno === ENODEV) throw linkMissingFault(name);
    if (refusal) throw refusalFault(`set ${describeLinkChange(change)} on "${name}"`, refusal);
  }

  async deleteLink(name: string): Promise<void> {
    if (!isDeviceName(name)) return;
    const refusal = await command(this.#run, "ip", ["link", "delete", "dev", name]);
    if (refusal && refusal.errno !== ENODEV) throw refusalFault(`delete the device "${name}"`, refusal);
  }

  async deleteRule(family: 4 | 6, { priority, table }: RoutingRule): Promise<boolean> {
    const which = ["priority", String(priority), "table", String(table)];
    const refusal = await command(this.#run, "ip", [`-${family}`, "rule", "delete", ...which]);
    if (refusal && !isNoRule(refusal)) throw refusalFault(`delete the routing rule ${priority}`, refusal);
    return refusal === undefined;
  }

  txChecksum(dev: string): Promise<boolean | undefined> {
    return readTxChecksumByCommand(this.#run, dev);
  }

  setTxChecksum(dev: string, on: boolean): Promise<void> {
    return writeTxChecksumByCommand(this.#run, dev, on);
  }

  wireguard(dev: string): Promise<WireguardState | undefined> {
    return readWireguardByCommand(this.#run, dev);
  }

  setWireguard(dev: string, change: WireguardChange): Promise<void> {
    return writeWireguardByCommand(this.#run, dev, change);
  }

  xfrmPolicies(): Promise<XfrmPolicyState[]> {
    return readPoliciesByCommand(this.#run);
  }

  xfrmStates(): Promise<XfrmState[]> {
    return readStatesByCommand(this.#run);
  }

  applyXfrm(changes: readonly XfrmChange[]): Promise<XfrmFailure[]> {
    return this.#turns.take(() => applyXfrmByCommand(this.#run, changes));
  }

  apply(changes: readonly KernelChange[]): Promise<ChangeFailure[]> {
    return this.#turns.take(() => applyByCommand(this.#run, changes));
  }

  notices(signal: AbortSignal): AsyncIterable<readonly Notice[]> {
    const ending = AbortSignal.any([signal, this.#closing.signal]);
    // The first look starts now, ahead of any dump the caller makes next.
    const baseline = takeSnapshot(this.#lists);
    this.#baseline = Promise.allSettled([this.#baseline, baseline]);
    return pollNotices(baseline, this.#lists, this.#pollInterval, ending);
  }

  close(): void {
    this.#closing.abort();
  }

  /** The lists, once the first look of every subscription is over: a dump made after subscribing must not be older. */
  async #settled(): Promise<Lists> {
    await this.#baseline;
    return this.#lists;
  }
}
