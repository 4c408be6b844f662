/** A process to be kept running; after an end by itself it is started again, with growing pauses (1 s to 1 min). */
export interface ChildSpec {
  readonly file: string;
  readonly args?: readonly string[];
  /** Extra environment; the daemon's own is passed on. */
  readonly env?: Readonly<Record<string, string>>;
  /** Called with each line that it prints. */
  line?(text: string): void;
  /** It was started, for the first time or again. */
  started?(pid: number): void;
  /** It ended by itself, or could not be started: how, in words. */
  ended?(how: string): void;
}

/** A process that is kept running. */
export interface Child {
  /** Of the running process; undefined while there is none. */
  readonly pid: number | undefined;
  /** Ends it for good with that signal (default SIGTERM), and with SIGKILL when that does not help within 3 s. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}
