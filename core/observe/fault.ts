/**
 * The one error shape of the daemon. A fault names what is wrong (`message` carries the file, key or flag and
 * the offending value), what to do about it (`hint`) and a stable `code` for scripts and tests.
 * Secrets must never be put into a message or hint.
 */
export class Fault extends Error {
  /** Stable, upper-case, e.g. `CONFIG_INVALID`. */
  readonly code: string;
  /** One sentence that tells the operator what to do. */
  readonly hint: string;
  /** Further faults found at the same time (e.g. all issues of one config). */
  readonly others: readonly Fault[];

  constructor(
    code: string,
    message: string,
    options: { hint?: string; cause?: unknown; others?: readonly Fault[] } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "Fault";
    this.code = code;
    this.hint = options.hint ?? "";
    this.others = options.others ?? [];
  }
}

/** Text of anything thrown: never a stack trace, never empty. */
export function describeError(error: unknown): string {
  if (error instanceof Error) return error.message || error.name;
  return String(error);
}

/**
 * Turns anything thrown into a {@link Fault}: a fault passes unchanged, everything else is wrapped under `code`
 * with the original as cause.
 */
export function toFault(error: unknown, code: string, prefix = "", hint = ""): Fault {
  if (error instanceof Fault) return error;
  return new Fault(code, `${prefix}${describeError(error)}`, { hint, cause: error });
}
