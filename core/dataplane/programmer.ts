import type { Prefix } from "../net/prefix.ts";
import type { ChangeFailure, Kernel, Notice } from "../netlink/kernel.ts";
import type { KernelObject, SysctlObject } from "../netlink/objects.ts";
import type { Health } from "../observe/health.ts";
import type { OwnedScope } from "./actual.ts";
import { type Expectation, isDisturbance } from "./disturbance.ts";
import { identityOf } from "./identity.ts";
import { orderChanges } from "./order.ts";
import { realise } from "./realise.ts";
import { type Reconciled, reconcile } from "./reconcile.ts";
import { WantedState } from "./wanted.ts";

export interface ProgrammerInput {
  readonly kernel: Kernel;
  readonly health: Health;
  readonly writeSysctl: (object: SysctlObject) => string | undefined;
  readonly networks: readonly Prefix[];
  readonly external: string;
  readonly usesRoutes: boolean;
}

/** Objects that failed to be written, by identity, with the kernel's words. */
export type Failing = ReadonlyMap<string, string>;

/** Keeps the wanted state and brings the kernel to it: small changes directly, everything else by comparison. */
export class Programmer {
  readonly #input: ProgrammerInput;
  readonly #wanted = new WantedState();
  readonly #failing = new Map<string, string>();
  #sysctls: readonly SysctlObject[] = [];
  #scope: OwnedScope;
  #expectation: Expectation;
  #clashes: ReadonlySet<string> = new Set();
  #foreignNexthops: ReadonlySet<number> = new Set();

  constructor(input: ProgrammerInput) {
    this.#input = input;
    this.#scope = { devices: [], networks: input.networks, learning: false };
    this.#expectation = this.#expect();
  }

  /** States which devices are wholly ours, and whether the kernel may learn forwarding entries on them. */
  own(devices: readonly string[], learning: boolean): void {
    this.#scope = { devices, networks: this.#input.networks, learning };
    this.#expectation = this.#expect();
  }

  /** Stages what `owner` wants without touching the kernel; a later {@link reconcile} makes it real. */
  stage(owner: string, objects: readonly KernelObject[]): void {
    this.#wanted.set(owner, this.#realise(objects));
  }

  /** States what has to be set by sysctl; written on each reconcile when it differs. */
  stageSysctls(sysctls: readonly SysctlObject[]): void {
    this.#sysctls = sysctls;
  }

  /** Forgets every owner that is not in `owners`. */
  stageOnly(owners: ReadonlySet<string>): void {
    for (const owner of [...this.#wanted.owners()]) if (!owners.has(owner)) this.#wanted.delete(owner);
  }

  /** Changes some owners and writes only the difference, without reading the kernel. `undefined` forgets one. */
  async change(changes: ReadonlyMap<string, readonly KernelObject[] | undefined>): Promise<void> {
    const put = [];
    const gone = [];
    for (const [owner, objects] of changes) {
      const difference = this.#wanted.set(owner, objects === undefined ? [] : this.#realise(objects));
      put.push(...difference.put);
      gone.push(...difference.gone);
    }
    // An identity may move from one owner to another within one change: it is written, not removed.
    const removed = gone.filter((object) => this.#wanted.get(identityOf(object)) === undefined);
    for (const object of removed) this.#failing.delete(identityOf(object));
    const ordered = orderChanges(put, removed);
    if (ordered.length === 0) return;
    for (const object of put) this.#failing.delete(identityOf(object));
    this.#record(await this.#input.kernel.apply(ordered));
  }

  /** Reads the kernel and repairs every difference. */
  async reconcile(): Promise<Reconciled> {
    for (const sysctl of this.#sysctls) this.#input.writeSysctl(sysctl);
    const result = await reconcile(this.#input.kernel, this.#wanted, this.#scope);
    this.#foreignNexthops = result.foreignNexthops;
    this.#failing.clear();
    this.#record(result.failures);
    return result;
  }

  /** Whether a notice shows something other than what is wanted. */
  isDisturbed(notice: Notice): boolean {
    return isDisturbance(notice, this.#expectation);
  }

  /** What the kernel refused last time; empty when all is as wanted. */
  get failing(): Failing {
    return this.#failing;
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

  #realise(objects: readonly KernelObject[]) {
    const how = { nexthopObjects: this.#input.kernel.nexthopObjects, foreignNexthops: this.#foreignNexthops };
    return objects.flatMap((object) => (object.kind === "sysctl" ? [] : realise(object, how)));
  }

  #record(failures: readonly ChangeFailure[]): void {
    for (const failure of failures) this.#failing.set(identityOf(failure.change.object), failure.text);
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
    for (const { identity, holder, loser } of conflicts) {
      health.raise(
        {
          code: "DATAPLANE_CLASH",
          severity: "warning",
          title: "two peers want the same entry",
          text: `${identity} belongs to ${holder}, ${loser} wants it too`,
          fix: "Two nodes probably share a MAC address (cloned disks): give one of them another.",
        },
        identity,
      );
    }
  }
}
