/** How a call goes wrong. */
export type CloudFault =
  /** Refused with a status and the cloud's code. */
  | { readonly status: number; readonly code: string; readonly message?: string }
  /** No answer at all, for `ms`. */
  | { readonly hang: number }
  /** Done, but the answer is lost: the client sees a server error. */
  | { readonly doneBut: number };

/** Faults by name of the call, each used up once; `forever` stays until it is lifted. */
export class Faults {
  readonly #once = new Map<string, CloudFault[]>();
  readonly #forever = new Map<string, CloudFault>();

  /** The next calls of that name go wrong this way, in this order; `*` is any call. */
  next(call: string, ...faults: readonly CloudFault[]): void {
    this.#once.set(call, [...(this.#once.get(call) ?? []), ...faults]);
  }

  /** All calls of that name go wrong, until {@link lift}. */
  always(call: string, fault: CloudFault): void {
    this.#forever.set(call, fault);
  }

  /** Ends {@link always}, and forgets what is still to come. */
  lift(call: string): void {
    this.#forever.delete(call);
    this.#once.delete(call);
  }

  /** Whether nothing is left of what {@link next} announced. */
  get spent(): boolean {
    return [...this.#once.values()].every((faults) => faults.length === 0);
  }

  /** What befalls a call now. */
  take(call: string): CloudFault | undefined {
    for (const name of [call, "*"]) {
      const fault = this.#once.get(name)?.shift() ?? this.#forever.get(name);
      if (fault) return fault;
    }
    return undefined;
  }
}
