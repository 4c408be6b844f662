import { type Fault, toFault } from "../../observe/fault.ts";
import type { Health } from "../../observe/health.ts";
import type { Log } from "../../observe/log.ts";
import { Backoff } from "../../retry/backoff.ts";
import { describeOwner } from "../identity.ts";
import { describeSubnets } from "../key.ts";
import { decideRenewal, readClocks } from "../renewal.ts";
import type { LeaseState } from "../store.ts";
import { Outage } from "./outage.ts";
import type { OwnKey, Standing } from "./own-key.ts";
import { toLease } from "./own-lease.ts";

export interface KeeperOptions {
  readonly key: OwnKey;
  readonly log: Log;
  readonly health: Health;
  /** ms before its end at which the lease is renewed. */
  readonly marginMs: number;
  /** Whether events of the own key come by themselves; while they do not, the key is looked at from time to time. */
  readonly isWatched: () => boolean;
}

const CODE = { conflict: "LEASE_CONFLICT", renewal: "LEASE_RENEWAL" };

/** What etcd answers to, but does not do. */
const REFUSALS: ReadonlySet<string> = new Set([
  "ETCD_AUTH",
  "ETCD_PERMISSION",
  "ETCD_NO_SPACE",
  "ETCD_REQUEST",
]);

/** Longest pause between two looks at the clocks. */
const LONGEST_PAUSE_MS = 60_000;

/** Bounds of the pause between looks at the key while no watch stands; in between it is a quarter of the time to live. */
const LOOK_MS = { min: 1_000, max: 15_000 };

/**
 * Keeps the own lease: renews it, looks after it on every hint that it changed, takes it back when it is lost. Its own
 * loop, which ends only on abort and does not need the watch to work.
 */
export class LeaseKeeper {
  readonly #options: KeeperOptions;
  readonly #retry: Backoff;
  readonly #lost = new Backoff({ first: 1_000, max: 30_000 });
  /** Somebody said that the key may have changed. */
  #poked = true;
  /** The last step failed: whatever it was to look at is still to be looked at. */
  #failed = false;
  #lastLook = readClocks();
  #lookedAt = performance.now();
  #failingSince: { text: string; expired: boolean } | undefined;
  /** Steps in a row that failed while the lease had time enough. */
  #failures = 0;
  readonly #refusals: Outage;
  #wake: (() => void) | undefined;
  /** With up to a tenth more, so that nodes that started together do not renew together. */
  readonly #marginMs: number;

  constructor(options: KeeperOptions) {
    this.#options = options;
    this.#refusals = new Outage(options.health, "looking after the own lease");
    this.#marginMs = options.marginMs * (1 + Math.random() / 10);
    const ttlMs = options.key.own.grant?.ttlMs ?? LOOK_MS.max * 4;
    this.#retry = new Backoff({ first: 200, max: Math.min(30_000, Math.max(500, ttlMs / 10)) });
  }

  /** The key may have changed: look at it now. */
  poke(): void {
    this.#poked = true;
    this.#wake?.();
  }

  /** Runs until aborted; never rejects. */
  async run(onState: (state: LeaseState) => void, signal: AbortSignal): Promise<void> {
    const wake = () => this.#wake?.();
    signal.addEventListener("abort", wake);
    while (!signal.aborted) {
      let pause: number;
      try {
        pause = await this.#step(onState, signal);
      } catch (error) {
        if (signal.aborted) break;
        pause = this.#fail(toFault(error, "LEASE_FAILED"), onState);
      }
      await this.#pause(pause, signal);
    }
    signal.removeEventListener("abort", wake);
    for (const code of Object.values(CODE)) this.#options.health.clear(code);
    this.#refusals.clear();
  }

  /** Does what is due; returns how long nothing is, in ms. */
  async #step(onState: (state: LeaseState) => void, signal: AbortSignal): Promise<number> {
    const { key } = this.#options;
    const now = readClocks();
    const decision = this.#decide(now);
    if (decision.action === "ask" && decision.reason === "clock-jump") {
      this.#options.log.warn("the clock jumped: etcd is asked how the own lease stands");
    }
    this.#lastLook = now;
    const lost = key.standing.kind !== "held";
    const lookDue = this.#poked || this.#failed || this.#isLookDue();
    this.#poked = false;
    if (!lost && (decision.action === "renew" || decision.action === "ask")) {
      this.#report(await key.renew(signal));
      this.#lookedAt = performance.now();
    } else if (lookDue || lost) {
      this.#report(await key.look(signal));
      this.#lookedAt = performance.now();
    }
    this.#failed = false;
    onState(this.#stateOf(key.standing));
    if (key.standing.kind !== "held") return this.#lost.next();
    this.#lost.reset();
    this.#retry.reset();
    return this.#untilNext();
  }

  #decide(now = readClocks()): ReturnType<typeof decideRenewal> {
    const { grant } = this.#options.key.own;
    const state = { ttl: grant?.ttlMs, confirmed: grant?.confirmed ?? now, lastLook: this.#lastLook };
    return decideRenewal(state, now, this.#marginMs);
  }

  #untilNext(): number {
    const next = this.#decide();
    return next.action === "wait" ? next.ms : next.action === "none" ? LONGEST_PAUSE_MS : 0;
  }

  /** Sleeps, but wakes when poked, and in time for the next look while no watch stands. */
  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    const limit = this.#options.isWatched() ? LONGEST_PAUSE_MS : this.#lookEveryMs();
    await new Promise<void>((resolve) => {
      const timer = setTimeout(done, Math.min(ms, limit));
      function done() {
        clearTimeout(timer);
        resolve();
      }
      this.#wake = done;
      if (signal.aborted || this.#poked) done();
    });
    this.#wake = undefined;
  }

  #isLookDue(): boolean {
    return !this.#options.isWatched() && performance.now() - this.#lookedAt >= this.#lookEveryMs() - 1;
  }

  #lookEveryMs(): number {
    const ttlMs = this.#options.key.own.grant?.ttlMs ?? Number.POSITIVE_INFINITY;
    return Math.min(LOOK_MS.max, Math.max(LOOK_MS.min, ttlMs / 4));
  }

  #report(standing: Standing): void {
    const { key, health } = this.#options;
    const lease = toLease(key.own);
    this.#failingSince = undefined;
    health.clear(CODE.renewal);
    this.#refusals.clear();
    this.#failures = 0;
    if (standing.kind === "held") {
      health.clear(CODE.conflict);
      return;
    }
    health.raise({
      code: CODE.conflict,
      severity: "error",
      title: "another node has the lease of this node",
      text:
        `the subnet ${describeSubnets(lease.subnets)} of this node, ${describeOwner(lease.attrs)}, is now held by ` +
        `${describeOwner(standing.holder.attrs)} in key "${standing.holder.key}": ${standing.reason}`,
      fix:
        "decide which node keeps the subnet and restart flannel on the other one (it takes a new subnet); " +
        "a cloned machine needs a node id of its own. Pods here keep what works until then",
    });
  }

  #stateOf(standing: Standing): LeaseState {
    const lease = toLease(this.#options.key.own);
    switch (standing.kind) {
      case "held": {
        const decision = this.#decide();
        return {
          state: "held",
          lease,
          ...(decision.action === "none" ? {} : { secondsLeft: decision.secondsLeft }),
        };
      }
      case "conflict":
        return { state: "conflict", lease, holder: standing.holder };
    }
  }

  /** A step failed: tells it once when a renewal is due, and again when the lease has run out. Returns the pause. */
  #fail(fault: Fault, onState: (state: LeaseState) => void): number {
    const { key, health } = this.#options;
    this.#failed = true;
    const decision = this.#decide();
    // Only a look at the key failed, and the lease has time enough: the watch tells that etcd is away, but not that it
    // refuses what a look takes, such as the write of a key that is gone.
    if (decision.action === "none" || decision.action === "wait") {
      this.#failures += 1;
      if (this.#failures > 1 && REFUSALS.has(fault.code)) this.#refusals.raise(fault);
      onState(this.#stateOf(key.standing));
      return this.#retry.next();
    }
    const { secondsLeft } = decision;
    const expired = secondsLeft <= 0;
    if (this.#failingSince?.expired !== expired) {
      const end = new Date(Date.now() + secondsLeft * 1000).toISOString().slice(0, 19);
      const text = expired
        ? `${fault.message}; the lease has run out meanwhile and is taken back as soon as etcd answers`
        : `${fault.message}; the lease ends at ${end}Z without renewal`;
      this.#failingSince = { text, expired };
    }
    health.raise({
      code: CODE.renewal,
      severity: expired ? "error" : "warning",
      title: "the lease cannot be renewed",
      text: this.#failingSince.text,
      fix: fault.hint,
    });
    onState({ state: "renewal-failing", lease: toLease(key.own), error: fault.message, secondsLeft });
    return this.#retry.next();
  }
}
