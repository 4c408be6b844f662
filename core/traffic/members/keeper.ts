import type { TunnelPacket } from "../../netlink/objects.ts";
import { describeError, toFault } from "../../observe/fault.ts";
import type { Health } from "../../observe/health.ts";
import type { Log } from "../../observe/log.ts";
import type { Pulse } from "../../observe/loops.ts";
import { Backoff, sleep } from "../../retry/backoff.ts";
import { Turns } from "../../retry/turns.ts";
import type { TrafficHost } from "../host.ts";
import { ALL_FAMILIES, type Family } from "../intent.ts";
import { type MemberFilter, planFilter } from "./filter.ts";
import { contestedFinding, failedFinding, MEMBERS, noToolFinding } from "./findings.ts";
import { describeTable, type Present, readTable, writeTable } from "./table.ts";

export interface MemberKeeperOptions {
  readonly host: TrafficHost;
  readonly health: Health;
  readonly log: Log;
  /** Whatever happens to the filter is made good within this time, ms. */
  readonly resync: number;
}

/** Public addresses of the members; a family that is off is absent, and not filtered. */
export type Members = Readonly<Partial<Record<Family, ReadonlySet<string>>>>;

/** Repairs in a row, each undone by the next look, before it is called a contest. */
const TOLERATED_REPAIRS = 3;
/** Longest time one pass may take, ms: four commands. */
const LONGEST_PASS_MS = 60_000;

/**
 * Keeps strangers' packets out of the tunnel: an nftables table per family that drops them, with a set that follows
 * the leases. What goes wrong is a finding and is tried again. Stopping leaves the filter in force, with the members
 * known by then.
 */
export class MemberKeeper {
  readonly #options: MemberKeeperOptions;
  readonly #turns = new Turns();
  readonly #retry = new Backoff({ first: 1_000, max: 30_000 });
  readonly #contest: Backoff;
  #packets: readonly TunnelPacket[] | undefined;
  #members: Members | undefined;
  #wake = new AbortController();
  /** Something is wanted that was not wanted at the last pass. */
  #changed = false;
  /** What each table held after the last pass, as long as the generation of nf_tables is the one noted. */
  readonly #present = new Map<Family, Present>();
  #generation: number | undefined;
  #repairs = 0;
  #waiting: (() => void)[] = [];
  /** Time until the next look, ms. */
  #pause: number;

  constructor(options: MemberKeeperOptions) {
    this.#options = options;
    this.#pause = this.#usualPause;
    this.#contest = new Backoff({ first: 2 * options.resync, max: Math.max(60_000, 2 * options.resync) });
  }

  /** Which packets are for members only; none removes the filter, within the time of a repair. */
  want(packets: readonly TunnelPacket[]): void {
    this.#packets = packets;
    this.#changed = true;
    // That an earlier config's filter goes can wait: a start has better things to do than to look for it.
    if (packets.length > 0) this.#wake.abort();
  }

  /**
   * Who is a member now. Cheap: the next pass, which comes at once, writes what changed until then. Resolves when that
   * was tried, or at once where nothing is filtered; never rejects.
   */
  follow(members: Members): Promise<void> {
    this.#members = members;
    if (this.#packets === undefined || this.#packets.length === 0) return Promise.resolve();
    this.#changed = true;
    this.#wake.abort();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Looks after the filter until aborted; a look costs no process while nobody changes anything in nf_tables. */
  async run(signal: AbortSignal, pulse: Pulse = () => {}): Promise<void> {
    while (!signal.aborted) {
      pulse(this.#pause + LONGEST_PASS_MS);
      await sleep(this.#pause, AbortSignal.any([signal, this.#wake.signal]));
      if (this.#wake.signal.aborted) this.#wake = new AbortController();
      if (signal.aborted) break;
      const waiting = this.#waiting.splice(0);
      if (this.#isDue()) await this.#turns.take(() => this.#pass());
      else this.#pause = this.#usualPause;
      for (const resolve of waiting) resolve();
    }
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /**
   * Removes the filter, or with `dryRun` only tells; idempotent. Returns what was (or would be) removed, in words.
   * Throws Fault `TRAFFIC_REFUSED`.
   */
  cleanup({ dryRun }: { readonly dryRun: boolean }): Promise<readonly string[]> {
    return this.#turns.take(async () => {
      const { host } = this.#options;
      if (!dryRun) this.#packets = undefined;
      if (!host.has("nft")) return [];
      const removed: string[] = [];
      for (const family of ALL_FAMILIES) {
        const present = await readTable(host.run, family);
        const text = dryRun
          ? present !== "nothing" && `removed ${describeTable(family)}`
          : await writeTable(host.run, family, present, undefined);
        if (text) removed.push(text);
      }
      return removed;
    });
  }

  /** Whether there is something to be written, or may be something to be repaired. */
  #isDue(): boolean {
    if (this.#packets === undefined) return false;
    // Before the first list of leases nobody is known: a filter of the last run stays as it is.
    if (this.#packets.length > 0 && this.#members === undefined) return false;
    if (this.#changed) return true;
    if (this.#packets.length === 0 && this.#present.size > 0) return false;
    return this.#generation === undefined || this.#generation !== this.#options.host.generation?.read();
  }

  async #pass(): Promise<void> {
    const { host, health, log } = this.#options;
    const isRepair = !this.#changed && this.#present.size > 0;
    this.#changed = false;
    const packets = this.#packets ?? [];
    if (!this.#hasTool(packets)) return;
    try {
      let generation = host.generation?.read();
      if (generation === undefined || generation !== this.#generation) this.#present.clear();
      this.#generation = undefined;
      const written: string[] = [];
      for (const family of ALL_FAMILIES) {
        const members = this.#members?.[family];
        const text = await this.#write(family, members && planFilter(family, packets, members));
        if (text === undefined) continue;
        written.push(text);
        // Each transaction moves it on by one; whoever else came in between is seen by the next look.
        if (generation !== undefined) generation += 1;
      }
      this.#generation = generation;
      health.clear(MEMBERS.failed);
      this.#retry.reset();
      this.#noteRepair(isRepair && written.length > 0);
      if (!this.#isContested()) for (const text of written) log.info(`member filter: ${text}`);
      this.#pause = this.#isContested() ? this.#contest.next() : this.#usualPause;
    } catch (error) {
      this.#present.clear();
      const fault = toFault(error, MEMBERS.failed);
      health.raise(failedFinding(describeError(fault), fault.hint));
      this.#pause = this.#retry.next();
    }
  }

  /** Brings one table up to date; what it is thought to hold may be wrong, then it is read. */
  async #write(family: Family, wanted: MemberFilter | undefined): Promise<string | undefined> {
    const { run } = this.#options.host;
    const known = this.#present.get(family);
    this.#present.delete(family);
    let text: string | undefined;
    try {
      text = await writeTable(run, family, known ?? (await readTable(run, family)), wanted);
    } catch (error) {
      if (known === undefined) throw error;
      text = await writeTable(run, family, await readTable(run, family), wanted);
    }
    this.#present.set(family, wanted ?? "nothing");
    return text;
  }

  /** Whether `nft` can be run; where it is wanted and cannot, a finding says so. */
  #hasTool(packets: readonly TunnelPacket[]): boolean {
    const { host, health } = this.#options;
    const has = host.has("nft");
    if (has || packets.length === 0) health.clear(MEMBERS.noTool);
    else health.raise(noToolFinding());
    if (!has) this.#pause = this.#usualPause;
    // Without the tool nothing of ours can be there.
    if (!has && packets.length === 0) for (const family of ALL_FAMILIES) this.#present.set(family, "nothing");
    return has;
  }

  #noteRepair(repaired: boolean): void {
    this.#repairs = repaired ? this.#repairs + 1 : 0;
    const { health } = this.#options;
    if (this.#isContested()) health.raise(contestedFinding());
    else {
      health.clear(MEMBERS.contested);
      this.#contest.reset();
    }
  }

  #isContested(): boolean {
    return this.#repairs > TOLERATED_REPAIRS;
  }

  /** So that a change is seen, and undone, within the time that was promised. */
  get #usualPause(): number {
    return this.#options.resync * 0.6;
  }
}
