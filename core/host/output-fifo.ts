import { closeSync, constants, openSync, readSync, rmSync, statSync } from "node:fs";
import { run } from "./exec.ts";

/** Bytes read at once: as many as a FIFO holds (pipe(7)). */
const CHUNK = 65_536;
/** A line without an end is told when it is so long, characters. */
const LONGEST_LINE = 4_096;

/**
 * `mkfifo -m 600 PATH`, and opens it for a process to print to. The process holds it open for reading too (fifo(7)), so
 * its writes never fail for want of a reader, and never wait: what does not fit is lost. /dev/null where no FIFO can be
 * made.
 */
export async function openForProcess(path: string): Promise<number> {
  try {
    if (statSync(path, { throwIfNoEntry: false })?.isFIFO() !== true) {
      rmSync(path, { force: true });
      await run("mkfifo", ["-m", "600", path], { timeout: 5_000 });
    }
    return openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  } catch {
    return openSync("/dev/null", constants.O_WRONLY);
  }
}

/** The lines that a process prints to a FIFO. */
export class OutputReader {
  readonly #line: (text: string) => void;
  readonly #fd: number | undefined;
  readonly #chunk = Buffer.alloc(CHUNK);
  readonly #decoder = new TextDecoder();
  #rest = "";
  #closed = false;

  /** Opens the FIFO, without waiting for anybody to open the other end; where there is none there are no lines. */
  constructor(path: string, line: (text: string) => void) {
    this.#line = line;
    this.#fd = open(path);
  }

  /** Tells the lines that have come since. */
  read(): void {
    for (;;) {
      const text = this.#take();
      if (text === "") return;
      const lines = (this.#rest + text).split("\n");
      const rest = lines.pop() ?? "";
      for (const line of lines) this.#line(line);
      this.#rest = rest;
      if (rest.length > LONGEST_LINE) this.#tellRest();
    }
  }

  /** Drops what has come so far. */
  skip(): void {
    while (this.#take() !== "");
    this.#rest = "";
  }

  /** Tells what is left, also without an end of line, and closes the FIFO. */
  close(): void {
    if (this.#closed) return;
    this.read();
    if (this.#rest !== "") this.#tellRest();
    this.#closed = true;
    if (this.#fd !== undefined) closeSync(this.#fd);
  }

  #tellRest(): void {
    this.#line(this.#rest);
    this.#rest = "";
  }

  #take(): string {
    if (this.#fd === undefined || this.#closed) return "";
    try {
      const bytes = readSync(this.#fd, this.#chunk);
      return this.#decoder.decode(this.#chunk.subarray(0, bytes), { stream: true });
    } catch {
      // EAGAIN: there is nothing.
      return "";
    }
  }
}

function open(path: string): number | undefined {
  try {
    if (!statSync(path).isFIFO()) return undefined;
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
}
