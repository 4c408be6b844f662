/** How long and how often {@link until} looks. */
export interface UntilOptions {
  /** What was awaited, for the error; a function is called only on failure (to print the state then). */
  readonly message: string | (() => string | Promise<string>);
  /** Milliseconds until it gives up; default 20,000. Times {@link PATIENCE}. */
  readonly deadline?: number;
  /** Milliseconds between looks; default 20. Times {@link PATIENCE}: to look takes the processor from what is awaited. */
  readonly interval?: number;
}

/** How much slower than a usual machine this one is: the kernels of `test/lab/vm` say so in `LAB_PATIENCE`. */
export const PATIENCE = Number(process.env.LAB_PATIENCE ?? 1);

/**
 * Waits for a condition instead of sleeping: calls `condition` until it returns something other than
 * `false`, `undefined` or `null`, and resolves with that. A throw counts as "not yet"; the last one is the
 * cause of the error thrown at the deadline.
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  { message, deadline = 20_000, interval = 20 }: UntilOptions,
): Promise<Exclude<T, false | undefined | null>> {
  const end = performance.now() + deadline * PATIENCE;
  for (;;) {
    let cause: unknown;
    try {
      const result = await condition();
      if (result !== false && result !== undefined && result !== null) {
        return result as Exclude<T, false | undefined | null>;
      }
    } catch (error) {
      cause = error;
    }
    if (performance.now() >= end) {
      const text = typeof message === "string" ? message : await message();
      const why = cause instanceof Error ? ` (last error: ${cause.message})` : "";
      throw new Error(
        `not within ${deadline * PATIENCE} ms: ${text}${why}`,
        cause === undefined ? undefined : { cause },
      );
    }
    await Bun.sleep(interval * PATIENCE);
  }
}
