import { type Counts, count } from "../observe/counts.ts";
import { describeError, Fault } from "../observe/fault.ts";
import type { Health } from "../observe/health.ts";
import type { Log } from "../observe/log.ts";
import type { Pulse } from "../observe/loops.ts";
import { Backoff, sleep } from "../retry/backoff.ts";
import { Turns } from "../retry/turns.ts";
import { Enforcer, type EnforcerOptions } from "./enforcer.ts";
import { contestedFinding, TRAFFIC } from "./findings.ts";
import type { Firewall } from "./firewall.ts";
import { ForwardingWatch } from "./forwarding/watch.ts";
import type { TrafficHost } from "./host.ts";
import { ALL_FAMILIES, type Family, type TrafficIntent } from "./intent.ts";

export interface TrafficOptions extends EnforcerOptions {
  /** `--iptables-resync` in ms: whatever happens to the rules is made good within this time; at least 1 s. */
  readonly resync: number;
}

/** Shortest resync period, ms. */
const SHORTEST_RESYNC_MS = 1_000;
/** Time between two choices of the variant of iptables, ms: who uses which seldom changes but at boot. */
const CHOICE_MS = 60_000;
/** Writes in a row, each undone by the next look, before it is called a contest. */
const TOLERATED_WRITES = 3;
/** A pass may wait for the lock of iptables once per table and family, ms. */
const LONGEST_PASS_MS = 60_000;
/** Tries of `cleanup` against the lock of iptables, which each take some 5 s. */
const CLEANUP_TRIES = 6;

/**
 * Keeps masquerade and forward rules on the host as they are wanted, whoever flushes them. Only `cleanup` throws: what
 * goes wrong otherwise is a finding and is tried again. Stopping leaves the rules in force.
 */
export class TrafficManager {
  /** Rule sets that {@link run} had to put right, by kind (`nftables`, `iptables`); only grows. */
  readonly repairs: Counts = { nftables: 0, iptables: 0 };
  readonly #host: TrafficHost;
  readonly #health: Health;
  readonly #log: Log;
  readonly #enforcer: Enforcer;
  readonly #forwarding: ForwardingWatch;
  readonly #turns = new Turns();
  readonly #resync: number;
  readonly #retry = new Backoff({ first: 1_000, max: 30_000 });
  readonly #contest: Backoff;
  #intent: TrafficIntent | undefined;
  /** Generation of nf_tables at which everything was as wanted. */
  #verified: number | undefined;
  /** Passes in a row that had to write. */
  #writes = 0;
  #lastPass = 0;
  /** Time after the last pass before the next one, ms. */
  #pause = 0;
  #lastChoice = 0;
  /** What the choice of the variant was made by, as far as it can be seen without a process. */
  #signs = "";

  constructor(options: TrafficOptions) {
    this.#host = options.host;
    this.#health = options.health;
    this.#log = options.log;
    this.#enforcer = new Enforcer(options);
    this.#forwarding = new ForwardingWatch(options.host, options.health);
    this.#resync = Math.max(options.resync, SHORTEST_RESYNC_MS);
    this.#contest = new Backoff({ first: 2 * this.#resync, max: Math.max(60_000, 2 * this.#resync) });
  }

  /** Makes the rules what `intent` wants, now; rules for other networks, or in other places, are removed. */
  apply(intent: TrafficIntent): Promise<void> {
    return this.#turns.take(async () => {
      this.#intent = intent;
      this.#writes = 0;
      await this.#pass(true);
    });
  }

  /**
   * Looks after the rules until aborted. As long as the generation of nf_tables tells that nobody changed anything, a
   * look costs no process.
   */
  async run(signal: AbortSignal, pulse: Pulse = () => {}): Promise<void> {
    // A change is seen within a fifth, and looked into within three more, so that the rest is left for the repair.
    while (!signal.aborted) {
      pulse(this.#resync + LONGEST_PASS_MS);
      await sleep(this.#resync / 5, signal);
      const choose = this.#wantsChoice();
      if (signal.aborted || !(choose || this.#isDue())) continue;
      const written = await this.#turns.take(() => this.#pass(choose));
      if (this.#intent && written > 0) count(this.repairs, this.#intent.kind, written);
    }
  }

  /**
   * Removes every rule of ours, of both families, from wherever it may be, or with `dryRun` only tells; idempotent.
   * Nothing is put back until the next `apply`. Returns what was (or would be) removed, in words. Throws Fault
   * `TRAFFIC_CLEANUP` after trying everything.
   */
  cleanup({ dryRun }: { readonly dryRun: boolean }): Promise<readonly string[]> {
    return this.#turns.take(async () => {
      if (!dryRun) this.#intent = undefined;
      const removed: string[] = [];
      const faults: Fault[] = [];
      for (const [family, firewall] of await this.#enforcer.discover()) {
        try {
          removed.push(...(await removePatiently(firewall, family, dryRun)));
        } catch (error) {
          const hint = error instanceof Fault ? error.hint : "";
          faults.push(new Fault("TRAFFIC_CLEANUP", `${firewall.name}: ${describeError(error)}`, { hint }));
        }
      }
      const [first, ...others] = faults;
      if (first) throw new Fault(first.code, first.message, { hint: first.hint, others });
      return removed;
    });
  }

  /** Whether it is time to look at the rules themselves. */
  #isDue(): boolean {
    if (!this.#intent || performance.now() - this.#lastPass < this.#pause) return false;
    return this.#verified === undefined || this.#verified !== this.#generation();
  }

  /** The generation, where every change of our rules would move it on. */
  #generation(): number | undefined {
    const { targets } = this.#enforcer;
    return targets.every((firewall) => firewall.hasGeneration) ? this.#host.generation?.read() : undefined;
  }

  /** Whether others may have come to this node, or moved to another variant of iptables. */
  #wantsChoice(): boolean {
    if (this.#intent?.kind !== "iptables" || performance.now() - this.#lastChoice < CHOICE_MS) return false;
    return this.#readSigns() !== this.#signs;
  }

  #readSigns(): string {
    const { generation } = this.#host;
    const isBlind = this.#enforcer.targets.some((firewall) => !firewall.hasGeneration);
    const tables = ALL_FAMILIES.map((family) => this.#host.legacyTables(family));
    return JSON.stringify([tables, isBlind ? generation?.read() : undefined]);
  }

  /** Compares and writes; returns the number of things written. */
  async #pass(choose: boolean): Promise<number> {
    const intent = this.#intent;
    if (!intent) return 0;
    this.#lastPass = performance.now();
    if (choose) this.#lastChoice = this.#lastPass;
    // Read before the rules are: a change in between is seen the next time.
    const generation = this.#host.generation?.read();
    const { sound, written } = await this.#enforcer.enforce(intent, choose);
    if (choose) this.#signs = this.#readSigns();
    await this.#forwarding.look(intent, choose);
    const isTold = sound && written.length === 0 && this.#generation() !== undefined;
    this.#verified = isTold ? generation : undefined;
    this.#noteWrites(written);
    if (!sound) this.#pause = this.#retry.next();
    else {
      this.#retry.reset();
      this.#pause = this.#isContested() ? this.#contest.next() : this.#usualPause();
    }
    return written.length;
  }

  #usualPause(): number {
    return this.#resync * (this.#generation() === undefined ? 0.8 : 0.6);
  }

  #isContested(): boolean {
    return this.#writes > TOLERATED_WRITES;
  }

  #noteWrites(written: readonly string[]): void {
    this.#writes = written.length === 0 ? 0 : this.#writes + 1;
    if (this.#isContested()) {
      this.#health.raise(contestedFinding(written.join("; ")));
      return;
    }
    this.#health.clear(TRAFFIC.contested);
    this.#contest.reset();
    for (const action of written) this.#log.info(`traffic rules, ${action}`);
  }
}

async function removePatiently(
  firewall: Firewall,
  family: Family,
  dryRun: boolean,
): Promise<readonly string[]> {
  for (let tries = 1; ; tries++) {
    try {
      return await firewall.remove(family, dryRun);
    } catch (error) {
      const isLocked = error instanceof Fault && error.code === TRAFFIC.locked;
      if (!isLocked || tries === CLEANUP_TRIES) throw error;
    }
  }
}
