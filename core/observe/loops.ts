/**
 * Says that a loop lives, and that it will say so again within `ms`. Infinity: it waits for what others do and says
 * nothing before that.
 */
export type Pulse = (ms: number) => void;

/** A loop of the daemon as it stands. */
export interface LoopState {
  readonly name: string;
  /** How often it had to be started again. */
  readonly restarts: number;
  /** Seconds it should have been heard from earlier, absent while all is well. */
  readonly overdueSeconds?: number;
}

/** A busy machine or a suspended process delays everything: time a loop gets beyond three times what it announced, ms. */
const SLACK_MS = 30_000;

interface Watched {
  restarts: number;
  /** On the monotonic clock, ms. */
  deadline: number;
}

/** The loops of the daemon, and whether each of them still turns. */
export class Loops {
  readonly #loops = new Map<string, Watched>();
  readonly #now: () => number;

  /** @param now the monotonic clock in ms. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** A loop begins; one of the same name takes over from the former, whose restarts stay counted. */
  open(name: string): Pulse {
    const loop: Watched = {
      restarts: this.#loops.get(name)?.restarts ?? 0,
      deadline: Number.POSITIVE_INFINITY,
    };
    this.#loops.set(name, loop);
    return (ms) => {
      loop.deadline = this.#now() + ms * 3 + SLACK_MS;
    };
  }

  /** A loop failed and will be started again. */
  noteRestart(name: string): void {
    const loop = this.#loops.get(name);
    if (!loop) return;
    loop.restarts += 1;
  }

  /** All loops that ever began, in that order. */
  list(): readonly LoopState[] {
    const now = this.#now();
    return [...this.#loops].map(([name, { restarts, deadline }]) => {
      const late = Math.ceil((now - deadline) / 1000);
      return { name, restarts, ...(late > 0 ? { overdueSeconds: late } : {}) };
    });
  }

  /** Loops that are not heard of any more: the daemon does not do its work and should be started again. */
  overdue(): readonly LoopState[] {
    return this.list().filter((loop) => loop.overdueSeconds !== undefined);
  }
}
