import { closeSync, openSync, readSync } from "node:fs";
import { inNamespace } from "../lab/in-namespace.ts";
import type { Namespace } from "../lab/namespace.ts";
import { until } from "../lab/until.ts";

/**
 * The number of IPv4 prefixes in a namespace's main table, from /proc/net/fib_triestat: the kernel counts them in
 * about a millisecond per 20,000, so that looking every few milliseconds does not slow the daemon down. Where the
 * main and the local table are one (no policy rules) the host's own addresses are counted, too: a difference counts.
 */
export class RouteCount implements Disposable {
  readonly #fd: number;
  readonly #buffer = Buffer.alloc(4096);

  constructor(namespace: Namespace) {
    this.#fd = inNamespace(namespace, () => openSync("/proc/thread-self/net/fib_triestat", "r"));
  }

  /** Prefixes now. */
  read(): number {
    const length = readSync(this.#fd, this.#buffer, 0, this.#buffer.length, 0);
    return parsePrefixes(this.#buffer.toString("latin1", 0, length));
  }

  /** Resolves with `performance.now()` of the moment when there are at least `count`. */
  reach(count: number, deadline: number, describe: () => string): Promise<number> {
    return until(() => (this.read() >= count ? performance.now() : false), {
      message: () => `${this.read()} of ${count} prefixes\n${describe()}`,
      deadline,
      interval: 5,
    });
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd);
  }
}

/** The first `Prefixes:` of the text: those of the main table. */
export function parsePrefixes(text: string): number {
  const count = /^\s*Prefixes:\s*(\d+)$/m.exec(text)?.[1];
  if (count === undefined) throw new Error("/proc/net/fib_triestat has no Prefixes");
  return Number(count);
}
