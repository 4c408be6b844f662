/**
 * What `work` gives, or a rejection with `late()` when it takes longer than `ms`. The work itself cannot be ended by
 * this: it goes on, and what comes of it is dropped.
 */
export async function withinTime<T>(ms: number, work: Promise<T>, late: () => Error): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(late()), ms);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
    // What comes too late must not become an unhandled rejection.
    work.catch(() => {});
  }
}
