import { type Located, pingCommand } from "./ping.ts";
import { until } from "./until.ts";

/** What a flow lost. */
export interface FlowReport {
  readonly sent: number;
  /** Requests never answered; the one still in flight at the stop does not count. */
  readonly lost: number;
  /** Longest time in ms between two answers. */
  readonly longestGap: number;
  /** Duplicate answers: two paths, or a loop. */
  readonly duplicates: number;
}

/**
 * A steady stream of echo requests over a whole scenario, to show what it cost the traffic:
 * `await using flow = await PingFlow.start(pod1, pod2.ipv4, { rate: 100 }); …; const { lost } = await flow.stop();`
 */
export class PingFlow implements AsyncDisposable {
  readonly #child: Bun.Subprocess<"ignore", "pipe", "pipe">;
  readonly #reading: Promise<unknown>;
  readonly #stopped: Promise<FlowReport>;
  readonly #answers: { readonly sequence: number; readonly time: number }[] = [];
  #unfinished = "";
  #lastLines = "";
  #errors = "";

  private constructor(child: Bun.Subprocess<"ignore", "pipe", "pipe">) {
    this.#child = child;
    this.#reading = Promise.all([
      this.#read(child.stdout),
      child.stderr.text().then((t) => (this.#errors = t)),
    ]);
    this.#stopped = Promise.all([child.exited, this.#reading]).then(() => this.#report());
  }

  /**
   * Starts at `rate` requests per second (default 50, at most 100) and resolves when the first answer came;
   * rejects when there is none within `deadline` ms (default 20,000).
   */
  static async start(
    from: Located,
    address: string,
    options: { rate?: number; deadline?: number } = {},
  ): Promise<PingFlow> {
    const { rate = 50, deadline = 20_000 } = options;
    if (rate > 100) throw new Error(`a ping flow sends at most 100 requests per second, not ${rate}`);
    const child = Bun.spawn([...pingCommand(from, {}), "-D", "-i", (1 / rate).toFixed(3), address], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const flow = new PingFlow(child);
    try {
      await until(() => flow.received > 0, {
        message: () => `no answer from ${address}: ${flow.#lastLines}${flow.#errors}`,
        deadline,
      });
    } catch (error) {
      await flow[Symbol.asyncDispose]();
      throw error;
    }
    return flow;
  }

  /** Answers so far. */
  get received(): number {
    return this.#answers.length;
  }

  /** Resolves when the next `count` answers after now have come. */
  async expectAnswers(count: number, deadline = 20_000): Promise<void> {
    const wanted = this.received + count;
    await until(() => this.received >= wanted, {
      message: () => `${wanted - this.received} of ${count} echo answers still missing`,
      deadline,
    });
  }

  /** Ends the flow and says what it lost; may be called again. */
  stop(): Promise<FlowReport> {
    if (this.#child.exitCode === null) this.#child.kill("SIGINT");
    return this.#stopped;
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      const lines = (this.#unfinished + decoder.decode(chunk, { stream: true })).split("\n");
      this.#unfinished = lines.pop() ?? "";
      for (const line of lines) {
        const answer = /^\[([\d.]+)\].*icmp_seq=(\d+) .*time=/.exec(line);
        if (answer) this.#answers.push({ time: Number(answer[1]) * 1000, sequence: Number(answer[2]) });
        else this.#lastLines = `${this.#lastLines}${line}\n`.slice(-2_000);
      }
    }
  }

  #report(): FlowReport {
    const answers = this.#answers;
    const summary = /(\d+) packets transmitted/.exec(this.#lastLines);
    if (summary === null) throw new Error(`ping ended without a summary: ${this.#lastLines}${this.#errors}`);
    const transmitted = Number(summary[1]);
    // icmp_seq is 16 bits wide; flows of a few minutes at 100 Hz stay below it.
    const answered = new Set(answers.map((answer) => answer.sequence));
    const sent = answered.has(transmitted) ? transmitted : transmitted - 1;
    const lost = sent - [...answered].filter((sequence) => sequence <= sent).length;
    const gaps = answers.slice(1).map((answer, index) => answer.time - (answers[index]?.time ?? answer.time));
    return {
      sent,
      lost,
      longestGap: Math.round(gaps.reduce((longest, gap) => Math.max(longest, gap), 0)),
      duplicates: answers.length - answered.size,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null) this.#child.kill("SIGKILL");
    await Promise.allSettled([this.#child.exited, this.#reading, this.#stopped]);
  }
}
