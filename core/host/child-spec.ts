/** A process to be kept running; after an end by itself it is started again, with growing pauses (1 s to 1 min). */
export interface ChildSpec {
  readonly file: string;
  readonly args?: readonly string[];
  /** Extra environment; the daemon's own is passed on. */
  readonly env?: Readonly<Record<string, string>>;
  /** Absent, it is killed when the daemon dies. */
  readonly lasting?: Lasting;
  /** Called with each line that it prints. */
  line?(text: string): void;
  /** It is about to be started, for the first time or again: nothing of it runs. */
  starting?(): void;
  /** It was started, for the first time or again. */
  started?(pid: number): void;
  /** It ended by itself, or could not be started: how, in words. */
  ended?(how: string): void;
}

/** A process that lives on when the daemon ends, however that ends, and that the next daemon goes on with. */
export interface Lasting {
  /**
   * File that tells the next daemon of the process; it stays when the process ends. What the process prints goes
   * through a FIFO beside it, `NOTE.output`: what nobody reads is lost, and harms nobody.
   */
  readonly note: string;
  /**
   * All that makes a running process the wanted one, beside its file, arguments and network namespace, as text. One
   * that was started with something else is killed. It may hold secrets: only a salted hash of it is written down.
   */
  readonly startedWith: string;
  /** Plain data for whoever removes what the process leaves; written into the note. */
  readonly remarks?: Readonly<Record<string, number>>;
  /** Whether one that runs can be gone on with, asked once; it is killed if not, or if this rejects. */
  answers(): Promise<boolean>;
  /** It runs since an earlier daemon, and is gone on with. */
  adopted?(pid: number): void;
  /** One of an earlier daemon was killed: it was started with something else, or does not answer. */
  replaced?(pid: number, why: "different" | "silent"): void;
}

/** A process that is kept running. */
export interface Child {
  /** Of the running process; undefined while there is none. */
  readonly pid: number | undefined;
  /** Ends it for good with that signal (default SIGTERM), and with SIGKILL when that does not help within 3 s. */
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** Looks after it no longer: one that lasts lives on. */
  leave(): Promise<void>;
}
