import type { Kernel, Notice } from "../netlink/kernel.ts";
import { describeError, Fault } from "../observe/fault.ts";
import type { Log } from "../observe/log.ts";
import type { Pulse } from "../observe/loops.ts";
import type { Findings } from "../observe/own-findings.ts";
import { Backoff, sleep } from "../retry/backoff.ts";
import { RepairPacer } from "./pacer.ts";
import type { DataplaneStats } from "./stats.ts";

/** Full comparison without any notice, in case one was never sent: once a minute, ms. */
const SLOW_TIMER_MS = 60_000;

export interface RepairInput {
  readonly kernel: Kernel;
  readonly log: Log;
  readonly health: Findings;
  readonly signal: AbortSignal;
  readonly stats: DataplaneStats;
  readonly pulse: Pulse;
  /** Whether a notice shows something other than what is wanted. */
  readonly isDisturbed: (notice: Notice) => boolean;
  /** Compares everything and repairs it; says how much it changed and whether something is still refused. */
  readonly repair: () => Promise<{ repaired: number; failing: boolean }>;
}

/**
 * Keeps the kernel as wanted: looks 200 ms after a disturbance, once a minute anyway, and with growing back-off while
 * something is refused. Subscribes to notices before the first look, and again when some were lost.
 */
export class RepairLoop {
  readonly #input: RepairInput;
  readonly #pacer = new RepairPacer();
  readonly #retry = new Backoff({ first: 1_000, max: 30_000 });
  #wake: AbortController = new AbortController();
  #dueAt = 0;
  #disturbed = false;

  constructor(input: RepairInput) {
    this.#input = input;
  }

  /** Works until aborted. Never rejects. */
  async keep(): Promise<void> {
    await Promise.all([this.#listen(), this.#work()]);
  }

  /** Something was refused outside of a look: the next one comes after the back-off at the latest. */
  retrySoon(): void {
    this.#lookWithin(this.#retry.next());
  }

  /** Reads notices for ever; every new subscription begins with a full look, since notices may have been missed. */
  async #listen(): Promise<void> {
    const { kernel, signal, log } = this.#input;
    const backoff = new Backoff({ first: 100, max: 10_000 });
    while (!signal.aborted) {
      let reason = "kernel notices ended by themselves";
      try {
        const notices = kernel.notices(signal);
        this.#lookWithin(0);
        for await (const batch of notices) {
          backoff.reset();
          // No `some`: each notice has to be seen, whatever the ones before it were.
          if (batch.filter((notice) => this.#input.isDisturbed(notice)).length > 0) this.#disturb();
        }
      } catch (error) {
        const lost = error instanceof Fault && error.code === "NETLINK_OVERRUN";
        if (lost) this.#input.stats.overruns += 1;
        reason = lost ? "kernel notices were lost" : `kernel notices stopped: ${describeError(error)}`;
      }
      if (signal.aborted) return;
      if (backoff.tries === 0) log.warn(`${reason}; listening anew and comparing everything`);
      await sleep(backoff.next(), signal);
    }
  }

  /** Looks whenever it is due. */
  async #work(): Promise<void> {
    const { signal, pulse } = this.#input;
    while (!signal.aborted) {
      const wait = this.#dueAt - performance.now();
      pulse(SLOW_TIMER_MS);
      if (wait > 0) {
        await sleep(wait, AbortSignal.any([signal, this.#wake.signal]));
        if (this.#wake.signal.aborted) this.#wake = new AbortController();
        continue;
      }
      this.#dueAt = performance.now() + SLOW_TIMER_MS;
      await this.#look();
    }
  }

  async #look(): Promise<void> {
    const { log, health } = this.#input;
    const disturbed = this.#disturbed;
    this.#disturbed = false;
    try {
      const { repaired, failing } = await this.#input.repair();
      health.clear("DATAPLANE_BROKEN");
      if (repaired > 0) {
        this.#pacer.repaired();
        if (disturbed && !this.#pacer.exhausted) log.info("repaired the data path", { objects: repaired });
      }
      if (failing) this.retrySoon();
      else this.#retry.reset();
    } catch (error) {
      this.#input.stats.failedLooks += 1;
      health.raise(brokenFinding(error));
      this.retrySoon();
    }
    this.#reportFight();
  }

  #disturb(): void {
    if (this.#disturbed) return;
    this.#disturbed = true;
    this.#lookWithin(this.#pacer.delay());
  }

  #lookWithin(ms: number): void {
    const at = performance.now() + ms;
    if (at >= this.#dueAt) return;
    this.#dueAt = at;
    this.#wake.abort();
  }

  #reportFight(): void {
    const { health } = this.#input;
    if (this.#pacer.rested) health.clear("DATAPLANE_FIGHT");
    if (!this.#pacer.exhausted) return;
    health.raise({
      code: "DATAPLANE_FIGHT",
      severity: "warning",
      title: "another process keeps undoing the data path",
      text: "our devices, routes or entries were changed again and again; they are now repaired every 3 s at most",
      fix: "Find it with `ip monitor` (another flanneld, NetworkManager, systemd-networkd, a script) and exclude our devices there.",
    });
  }
}

function brokenFinding(error: unknown) {
  const fault = error instanceof Fault ? error : undefined;
  return {
    code: "DATAPLANE_BROKEN",
    severity: "error",
    title: "the data path cannot be repaired",
    text: describeError(error),
    fix: fault?.hint || "It is tried again by itself.",
  } as const;
}
