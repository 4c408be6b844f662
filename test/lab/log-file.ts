import { closeSync, openSync, readSync } from "node:fs";

/** One line of the daemon's log; a line that is not JSON has only `msg`. */
export interface LogLine {
  readonly msg: string;
  readonly level?: string;
  readonly time?: string;
  readonly [field: string]: unknown;
}

/**
 * Follows a log file that a process writes. A file and not a pipe, so that a slow reader never holds the process
 * up, and what it said outlives both.
 */
export class LogFile implements Disposable {
  readonly path: string;
  readonly #fd: number;
  readonly #buffer = new Uint8Array(64 * 1024);
  readonly #decoder = new TextDecoder();
  readonly #lines: LogLine[] = [];
  #offset = 0;
  #unfinished = "";
  #closed = false;

  /** Opens an existing file from its beginning. */
  constructor(path: string) {
    this.path = path;
    this.#fd = openSync(path, "r");
  }

  /** Everything written so far, in order; an unfinished last line is left out. */
  get lines(): readonly LogLine[] {
    while (!this.#closed) {
      const length = readSync(this.#fd, this.#buffer, 0, this.#buffer.length, this.#offset);
      if (length === 0) break;
      this.#offset += length;
      const text =
        this.#unfinished + this.#decoder.decode(this.#buffer.subarray(0, length), { stream: true });
      const lines = text.split("\n");
      this.#unfinished = lines.pop() ?? "";
      for (const line of lines) if (line !== "") this.#lines.push(parseLine(line));
    }
    return this.#lines;
  }

  /** The last `count` lines for an error message. */
  tail(count = 15): string {
    return this.lines
      .slice(-count)
      .map((line) => (line.level === undefined ? `  ${line.msg}` : `  ${JSON.stringify(line)}`))
      .join("\n");
  }

  /** Reads what is there a last time; `lines` stays usable. */
  [Symbol.dispose](): void {
    if (this.#closed) return;
    void this.lines;
    this.#closed = true;
    closeSync(this.#fd);
  }
}

function parseLine(line: string): LogLine {
  if (line.startsWith("{")) {
    try {
      const value = JSON.parse(line) as Record<string, unknown>;
      return { ...value, msg: String(value.msg ?? "") };
    } catch {
      // A line cut by a kill: shown as it is.
    }
  }
  return { msg: line };
}
