import type { Lease } from "../lease/lease.ts";
import type { HeldLease, LeaseState } from "../lease/store.ts";
import type { Journal } from "./journal.ts";

/** The own lease at this moment; `secondsLeft` is absent for a reservation. */
export interface LeaseNow {
  readonly state: LeaseState["state"];
  readonly secondsLeft?: number;
}

/** What the keeper of the own lease told last, and the time that has gone since. Changes go into the journal. */
export class LeaseWatch {
  readonly #journal: Journal;
  #state: LeaseState;
  /** On the monotonic clock, ms. */
  #toldAt = performance.now();

  constructor({ lease, origin, reservation }: HeldLease, journal: Journal) {
    this.#journal = journal;
    this.#state = { state: "held", lease };
    const kind = reservation ? ", a reservation" : "";
    journal.note("lease", `the lease of this node is ${lease.key}, origin ${origin}${kind}`, [lease.key]);
  }

  /** The own lease with what it says to others. */
  get lease(): Lease {
    return this.#state.lease;
  }

  /** Takes in what the keeper tells. */
  note(state: LeaseState): void {
    const before = this.#state;
    this.#state = state;
    this.#toldAt = performance.now();
    if (before.state === state.state) return;
    this.#journal.note("lease", describeState(state), [state.lease.key]);
  }

  /** How the lease stands. */
  now(): LeaseNow {
    const { state } = this.#state;
    const told = "secondsLeft" in this.#state ? this.#state.secondsLeft : undefined;
    if (told === undefined) return { state };
    const gone = (performance.now() - this.#toldAt) / 1000;
    return { state, secondsLeft: Math.max(0, Math.round(told - gone)) };
  }
}

function describeState(state: LeaseState): string {
  switch (state.state) {
    case "held":
      return `the lease ${state.lease.key} is held`;
    case "renewal-failing":
      return `the lease ${state.lease.key} cannot be renewed, ${state.secondsLeft} s left: ${state.error}`;
    case "conflict":
      return `the lease ${state.lease.key} is held by ${state.holder.key} of ${state.holder.attrs.publicIP ?? state.holder.attrs.publicIPv6 ?? "an unknown address"}`;
  }
}
