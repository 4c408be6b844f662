import type { Fields, Log } from "../../../core/observe/log.ts";

/** A line as it was handed to the log. */
export interface RecordedLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  readonly fields: Fields;
}

/** A log that keeps its lines for the test to look at. */
export class RecordingLog implements Log {
  readonly lines: RecordedLine[];
  readonly #shared: Fields;

  constructor(lines: RecordedLine[] = [], shared: Fields = {}) {
    this.lines = lines;
    this.#shared = shared;
  }

  debug(message: string, fields: Fields = {}): void {
    this.#record("debug", message, fields);
  }

  info(message: string, fields: Fields = {}): void {
    this.#record("info", message, fields);
  }

  warn(message: string, fields: Fields = {}): void {
    this.#record("warn", message, fields);
  }

  error(message: string, fields: Fields = {}): void {
    this.#record("error", message, fields);
  }

  child(fields: Fields): Log {
    return new RecordingLog(this.lines, { ...this.#shared, ...fields });
  }

  /** The messages of one level or above `debug`, in order. */
  messages(level?: RecordedLine["level"]): string[] {
    return this.lines
      .filter((line) => (level === undefined ? line.level !== "debug" : line.level === level))
      .map((line) => line.message);
  }

  #record(level: RecordedLine["level"], message: string, fields: Fields): void {
    this.lines.push({ level, message, fields: { ...this.#shared, ...fields } });
  }
}
