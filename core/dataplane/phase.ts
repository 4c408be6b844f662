import { Fault } from "../observe/fault.ts";
import { withinTime } from "../retry/time-limit.ts";

/** Longest time the calls of an active backend may take, ms: `timeouts` of its manifest. */
export interface PhaseTimeouts {
  /** `prepare` and `attach`. */
  readonly prepare: number;
  /** `sync` and `health`. */
  readonly sync: number;
  /** `stop` and `cleanup`. */
  readonly stop: number;
}

/**
 * Calls a backend, one call of a kind at a time: while a call that took too long is still under way, the next one
 * waits for it, since nobody promised that two of them get on with each other.
 */
export class Phase {
  readonly #name: string;
  readonly #ms: number;
  #running: Promise<unknown> | undefined;

  /** @param ms longest time of a call. */
  constructor(name: string, ms: number) {
    this.#name = name;
    this.#ms = ms;
  }

  /** What the call gives. Throws Fault `BACKEND_TIMEOUT` when it, or the one before it, takes too long. */
  async call<T>(work: () => Promise<T>): Promise<T> {
    const former = this.#running;
    if (former) await withinTime(this.#ms, former, () => this.#late("an earlier call still runs after"));
    const call = (async () => work())();
    const settled = call.then(
      () => {},
      () => {},
    );
    this.#running = settled;
    void settled.then(() => {
      if (this.#running === settled) this.#running = undefined;
    });
    return withinTime(this.#ms, call, () => this.#late("it did not finish within"));
  }

  #late(what: string): Fault {
    return new Fault("BACKEND_TIMEOUT", `${this.#name} of the backend: ${what} ${this.#ms} ms`, {
      hint: "Look at the plugin's own log lines; `timeouts` in its plugin.json is what it may take.",
    });
  }
}
