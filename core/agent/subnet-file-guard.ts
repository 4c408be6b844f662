import { type FSWatcher, watch } from "node:fs";
import { dirname } from "node:path";
import { type SubnetFileContent, writeSubnetFile } from "../host/subnet-file.ts";
import { toFault } from "../observe/fault.ts";
import type { Health } from "../observe/health.ts";
import type { Log } from "../observe/log.ts";
import type { Pulse } from "../observe/loops.ts";
import { sleep } from "../retry/backoff.ts";

/** How often the file is looked at without a notice (folders can be replaced under a watch), ms. */
const LOOK_EVERY_MS = 15_000;
/** A writer's burst of changes is looked at once, ms. */
const QUIET_MS = 200;

/** Keeps the subnet file at the wanted content: written now, and again whenever it was deleted or changed. */
export class SubnetFileGuard {
  readonly #path: string;
  readonly #log: Log;
  readonly #health: Health;
  #content: SubnetFileContent | undefined;

  constructor(path: string, log: Log, health: Health) {
    this.#path = path;
    this.#log = log;
    this.#health = health;
  }

  /** States the content and writes it. A failure is a finding, tried again by {@link keep}; it never throws. */
  set(content: SubnetFileContent): void {
    this.#content = content;
    if (this.#write()) this.#log.info(`wrote ${this.#path}`, { mtu: content.mtu, ...content.subnets });
  }

  /** Changes the MTU of the content, when there is one already. */
  setMtu(mtu: number): void {
    if (this.#content) this.set({ ...this.#content, mtu });
  }

  /** Watches the file until aborted. */
  async keep(signal: AbortSignal, pulse: Pulse): Promise<void> {
    while (!signal.aborted) {
      pulse(LOOK_EVERY_MS);
      const changed = new AbortController();
      const watcher = this.#watch(() => changed.abort());
      await sleep(LOOK_EVERY_MS, AbortSignal.any([signal, changed.signal]));
      watcher?.close();
      if (signal.aborted) return;
      if (changed.signal.aborted) await sleep(QUIET_MS, signal);
      if (!signal.aborted && this.#write())
        this.#log.warn(`wrote ${this.#path} again: it was deleted or changed`);
    }
  }

  #watch(changed: () => void): FSWatcher | undefined {
    try {
      const watcher = watch(dirname(this.#path), { persistent: false }, changed);
      watcher.on("error", changed);
      return watcher;
    } catch {
      return undefined;
    }
  }

  #write(): boolean {
    if (!this.#content) return false;
    try {
      const written = writeSubnetFile(this.#path, this.#content);
      this.#health.clear("SUBNET_FILE");
      return written;
    } catch (error) {
      const fault = toFault(error, "SUBNET_FILE");
      this.#health.raise({
        code: "SUBNET_FILE",
        severity: "error",
        title: "the subnet file cannot be written",
        text: fault.message,
        fix: fault.hint,
      });
      return false;
    }
  }
}
