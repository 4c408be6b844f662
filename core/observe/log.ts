import pino from "pino";
import { escapeControls } from "./printable.ts";

/** Extra values of a log line. Keys holding secrets must not be passed; known secret names are redacted anyway. */
export type Fields = Readonly<Record<string, unknown>>;

/** What every module logs through: a message for people, fields for machines. */
export interface Log {
  debug(message: string, fields?: Fields): void;
  info(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  error(message: string, fields?: Fields): void;
  /** A log whose lines all carry `fields`. */
  child(fields: Fields): Log;
}

export interface LogOptions {
  /** glog-style verbosity: 0 = info and above, 1 or more = debug. */
  readonly verbosity: number;
  /** `json` for machines, `text` for a terminal. */
  readonly form: "json" | "text";
  /** Where lines go; defaults to file descriptor 2, written synchronously so that nothing is lost on a crash. */
  readonly write?: (line: string) => void;
}

const SECRET_NAMES = ["password", "etcdPassword", "psk", "PSK", "token", "AccessKeySecret", "privateKey"];

/** Creates the daemon's log. Lines are written synchronously to standard error. */
export function createLog(options: LogOptions): Log {
  const level = options.verbosity > 0 ? "debug" : "info";
  const sink = options.write ?? synchronousStderr();
  const stream =
    options.form === "json" ? { write: sink } : { write: (line: string) => sink(renderForTerminal(line)) };
  const root = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRET_NAMES.flatMap((name) => [name, `*.${name}`]), censor: "[redacted]" },
    },
    stream,
  );
  return wrap(root);
}

/** A log that drops every line, for tests and pure tools. */
export const silentLog: Log = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLog,
};

function synchronousStderr(): (line: string) => void {
  const destination = pino.destination({ dest: 2, sync: true });
  return (line) => {
    destination.write(line);
  };
}

function wrap(logger: pino.Logger): Log {
  return {
    debug: (message, fields) => logger.debug(fields ?? {}, message),
    info: (message, fields) => logger.info(fields ?? {}, message),
    warn: (message, fields) => logger.warn(fields ?? {}, message),
    error: (message, fields) => logger.error(fields ?? {}, message),
    child: (fields) => wrap(logger.child(fields)),
  };
}

/** One JSON line as `12:00:01.123 INFO message key=value …`. */
export function renderForTerminal(line: string): string {
  const { time, level, msg, ...rest } = JSON.parse(line) as Record<string, unknown>;
  const clock = String(time).slice(11, 23);
  const fields = Object.entries(rest).map(([key, value]) => ` ${key}=${renderValue(value)}`);
  const text = `${clock} ${String(level).toUpperCase().padEnd(5)} ${String(msg ?? "")}${fields.join("")}`;
  return `${escapeControls(text)}\n`;
}

function renderValue(value: unknown): string {
  if (typeof value === "string") return /[\s"=]/.test(value) || value === "" ? JSON.stringify(value) : value;
  return JSON.stringify(value) ?? "undefined";
}
