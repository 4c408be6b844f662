/** Runs asynchronous work strictly one after the other, in the order of arrival. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs `work` when everything before it is done, whether that succeeded or not; settles as `work` does. */
  take<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(work, work);
    this.#last = mine.catch(() => {});
    return mine;
  }
}
