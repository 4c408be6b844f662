/** Tells a person what goes on: a line per finished step with the time since the start, live on a terminal. */
export class Progress {
  readonly #started = performance.now();
  readonly #live = process.stdout.isTTY === true;

  /**
   * Runs one step. `update` shows how far it is (on a terminal only); the text that `work` resolves with is put
   * behind the label when it is done.
   */
  async step<T extends string | undefined>(
    label: string,
    work: (update: (text: string) => void) => Promise<T>,
  ): Promise<void> {
    this.#show(label);
    try {
      const detail = await work((text) => this.#show(`${label} ${text}`));
      this.#line("✔", detail === undefined ? label : `${label}: ${detail}`);
    } catch (error) {
      this.#line("✘", label);
      throw error;
    }
  }

  /** A line of its own. */
  note(text: string): void {
    this.#line("•", text);
  }

  #show(text: string): void {
    if (this.#live) process.stdout.write(`\r\x1b[K${this.#clock()} … ${text}`);
  }

  #line(sign: string, text: string): void {
    process.stdout.write(`${this.#live ? "\r\x1b[K" : ""}${this.#clock()} ${sign} ${text}\n`);
  }

  #clock(): string {
    return `${((performance.now() - this.#started) / 1000).toFixed(1).padStart(6)} s`;
  }
}
