import type { Prefix } from "../net/prefix.ts";
import {
  type BatchObject,
  type ChangeFailure,
  type Kernel,
  type Notice,
  ROUTE_PROTOCOL,
} from "../netlink/kernel.ts";
import type { KernelObject, SettingObject, SysctlObject } from "../netlink/objects.ts";
import { count } from "../observe/counts.ts";
import type { Findings } from "../observe/own-findings.ts";
import { listForeignNexthops, type OwnedScope, readActual } from "./actual.ts";
import { type Expectation, isDisturbance } from "./disturbance.ts";
import { identityOf, nexthopIdentity } from "./identity.ts";
import { orderChanges } from "./order.ts";
import { describeObject, type NeededObject } from "./peer-state.ts";
import { giveWay, realise } from "./realise.ts";
import { type Reconciled, reconcile } from "./reconcile.ts";
import { isSetting, Settings } from "./settings.ts";
import type { DataplaneStats } from "./stats.ts";
import { WantedState } from "./wanted.ts";

export interface ProgrammerInput {
  readonly kernel: Kernel;
  readonly health: Findings;
  readonly writeSysctl: (object: SysctlObject) => string | undefined;
  readonly networks: readonly Prefix[];
  readonly external: string;
  readonly usesRoutes: boolean;
  readonly stats: DataplaneStats;
}

/** Objects that failed to be written, by identity, with the kernel's words. */
export type Failing = ReadonlyMap<string, string>;

const NONE: ReadonlySet<number> = new Set();

/** Keeps the wanted state and brings the kernel to it: small changes directly, everything else by comparison. */
export class Programmer {
  readonly #input: ProgrammerInput;
  readonly #wanted = new WantedState();
  readonly #failing = new Map<string, string>();
  readonly #settings: Settings;
  #scope: OwnedScope;
  #expectation: Expectation;
  #clashes: ReadonlySet<string> = new Set();
  /** Undefined until the kernel was asked for the first time. */
  #foreignNexthops: Set<number> | undefined;

  constructor(input: ProgrammerInput) {
    this.#input = input;
    this.#settings = new Settings(input);
    this.#scope = { devices: [], networks: input.networks, learning: false };
    this.#expectation = this.#expect();
  }

  /** States which devices are wholly ours, and whether the kernel may learn forwarding entries on them. */
  own(devices: readonly string[], learning: boolean): void {
    this.#scope = { devices, networks: this.#input.networks, learning };
    this.#expectation = this.#expect();
  }

  /** The devices that are wholly ours. */
  get devices(): readonly string[] {
    return this.#scope.devices;
  }

  /** Stages what `owner` wants without touching the kernel; a later {@link reconcile} makes it real. */
  stage(owner: string, objects: readonly KernelObject[]): void {
    this.#wanted.stage(owner, this.#realise(objects));
  }

  /** States which settings have to have a value; written on each reconcile when they differ. */
  stageSettings(settings: readonly SettingObject[]): void {
    this.#settings.stage(settings);
  }

  /** Forgets every owner that is not in `owners`. */
  stageOnly(owners: ReadonlySet<string>): void {
    for (const owner of [...this.#wanted.owners()]) if (!owners.has(owner)) this.#wanted.stage(owner, []);
  }

  /** Changes some owners and writes only the difference, without reading the kernel. `undefined` forgets one. */
  async change(changes: ReadonlyMap<string, readonly KernelObject[] | undefined>): Promise<void> {
    this.#foreignNexthops ??= await listForeignNexthops(this.#input.kernel);
    const realised = [...changes].map(([owner, objects]) => [owner, this.#realise(objects ?? [])] as const);
    const { put, gone } = this.#wanted.setAll(realised);
    const removed = gone.filter((object) => object.kind !== "nexthop" || !this.#isForeign(object.id));
    for (const object of [...put, ...gone]) this.#failing.delete(identityOf(object));
    const ordered = orderChanges(put, removed);
    this.#record(ordered.length > 0 ? await this.#input.kernel.apply(ordered) : []);
  }

  /** Reads the kernel and repairs every difference. */
  async reconcile(): Promise<Reconciled> {
    await this.#settings.apply();
    const { kernel } = this.#input;
    const actual = await readActual(kernel, this.#scope);
    this.#giveWay(actual.foreignNexthops);
    const result = await reconcile(kernel, this.#wanted, actual);
    this.#failing.clear();
    this.#record(result.failures);
    return result;
  }

  /** Whether a notice shows something other than what is wanted. */
  isDisturbed(notice: Notice): boolean {
    if (notice.kind === "nexthop") this.#noteNexthop(notice);
    return isDisturbance(notice, this.#expectation);
  }

  /** What the kernel refused last time; empty when all is as wanted. */
  get failing(): Failing {
    return this.#failing;
  }

  /** Whom an object belongs to, undefined when nobody wants it. */
  ownerOf(identity: string): string | undefined {
    return this.#wanted.ownerOf(identity);
  }

  /** Those whose objects the kernel refused. */
  get failingOwners(): ReadonlySet<string> {
    return new Set([...this.#failing.keys()].flatMap((identity) => this.#wanted.ownerOf(identity) ?? []));
  }

  /** What `owner` wants, and what the kernel says against it. */
  describe(owner: string): readonly NeededObject[] {
    return this.#wanted.objectsOf(owner).map((object) => {
      const error = this.#failing.get(identityOf(object));
      return {
        command: describeObject(object),
        ...("dev" in object && object.dev !== undefined ? { dev: object.dev } : {}),
        ...(error === undefined ? {} : { error }),
      };
    });
  }

  /** Number of wanted objects. */
  get size(): number {
    return this.#wanted.size;
  }

  #expect(): Expectation {
    const { networks, external, usesRoutes } = this.#input;
    return {
      get: (identity) => this.#wanted.get(identity),
      devices: new Set(this.#scope.devices),
      external,
      networks,
      usesRoutes,
      learning: this.#scope.learning,
    };
  }

  /** Wanted nexthops whose id belongs to somebody else become plain routes. */
  #giveWay(foreign: ReadonlySet<number>): void {
    this.#foreignNexthops = new Set(foreign);
    for (const id of foreign) {
      for (const owner of this.#wanted.ownersOf(nexthopIdentity(id))) {
        this.#wanted.stage(owner, giveWay(this.#wanted.objectsOf(owner), foreign));
      }
    }
  }

  /** Keeps the ids in use up to date, so that a new peer does not overwrite a nexthop made since the last look. */
  #noteNexthop({ action, nexthop: { id, protocol } }: Extract<Notice, { kind: "nexthop" }>): void {
    if (action === "put" && protocol !== ROUTE_PROTOCOL) this.#foreignNexthops?.add(id);
    else this.#foreignNexthops?.delete(id);
  }

  #isForeign(id: number): boolean {
    return this.#foreignNexthops?.has(id) === true;
  }

  #realise(objects: readonly KernelObject[]) {
    const how = {
      nexthopObjects: this.#input.kernel.nexthopObjects,
      foreignNexthops: this.#foreignNexthops ?? NONE,
    };
    const realised: BatchObject[] = [];
    for (const object of objects) if (!isSetting(object)) realised.push(...realise(object, how));
    return realised;
  }

  #record(failures: readonly ChangeFailure[]): void {
    for (const { change, text } of failures) {
      this.#failing.set(identityOf(change.object), text);
      count(this.#input.stats.refusals, text.split(":", 1)[0] ?? text);
    }
    this.#reportRefusals();
    this.#reportClashes();
  }

  #reportRefusals(): void {
    const { health } = this.#input;
    const first = this.#failing.entries().next().value;
    if (!first) {
      health.clear("DATAPLANE_REFUSED");
      return;
    }
    const owner = this.#wanted.ownerOf(first[0]) ?? "stale";
    health.raise({
      code: "DATAPLANE_REFUSED",
      severity: "error",
      title: "the kernel refuses part of the data path",
      text: `${this.#failing.size} of ${this.#wanted.size} objects; first: ${first[0]} (${owner}): ${first[1]}`,
      fix: "It is tried again by itself; see the kernel's words, and check that the peer's address is reachable.",
    });
  }

  #reportClashes(): void {
    const { health } = this.#input;
    const conflicts = this.#wanted.conflicts();
    const now = new Set(conflicts.map((conflict) => conflict.identity));
    for (const identity of this.#clashes) if (!now.has(identity)) health.clear("DATAPLANE_CLASH", identity);
    this.#clashes = now;
    for (const { identity, holder, losers } of conflicts) {
      health.raise(
        {
          code: "DATAPLANE_CLASH",
          severity: "warning",
          title: "several peers want the same entry",
          text: `${identity} belongs to ${holder}, also wanted by ${losers.join(", ")}`,
          fix: "Nodes that share a MAC address (cloned disks) look like this: give each its own.",
        },
        identity,
      );
    }
  }
}
