import { isIP } from "node:net";
import { untilAborted } from "../retry/abort.ts";
import { Backoff, sleep } from "../retry/backoff.ts";
import type { Routes } from "./answer.ts";
import { describeError } from "./fault.ts";
import type { Finding } from "./finding.ts";
import type { Health } from "./health.ts";
import type { Log } from "./log.ts";
import { listen } from "./server.ts";

export interface HealthServerInput {
  /** `--healthz-ip`. */
  readonly address: string;
  /** `--healthz-port`, above 0. */
  readonly port: number;
  readonly routes: Routes;
  readonly health: Health;
  readonly log: Log;
}

/**
 * Serves health and metrics until aborted. A place that cannot be listened on is a finding, `HEALTH_PORT_BUSY` or
 * `HEALTH_ADDRESS`, and tried again with growing pauses; nothing here ends the daemon.
 */
export async function serveHealth(input: HealthServerInput, signal: AbortSignal): Promise<void> {
  const { address, port, routes, health, log } = input;
  const backoff = new Backoff({ first: 1_000, max: 15_000 });
  while (!signal.aborted) {
    try {
      // A name would be looked up, and what comes of that is told wrongly.
      if (isIP(address) === 0) throw new Error("it is no IP address");
      await using stack = new AsyncDisposableStack();
      const server = listen({ hostname: address, port }, routes);
      stack.defer(() => server.stop());
      for (const code of CODES) health.clear(code);
      log.info("health server", { address, port });
      await untilAborted(signal);
      return;
    } catch (error) {
      const finding = explain(error, address, port);
      for (const code of CODES) if (code !== finding.code) health.clear(code);
      health.raise(finding);
    }
    await sleep(backoff.next(), signal);
  }
}

const CODES = ["HEALTH_PORT_BUSY", "HEALTH_ADDRESS"] as const;

function explain(error: unknown, address: string, port: number): Finding {
  const place = address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
  const shared = { severity: "error", title: "the health server cannot listen" } as const;
  if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") {
    return {
      ...shared,
      code: "HEALTH_PORT_BUSY",
      text: `${place} is in use by another process`,
      fix: `Find it with \`ss -ltnp sport = :${port}\`, or give another -healthz-port. It is tried again by itself.`,
    };
  }
  return {
    ...shared,
    code: "HEALTH_ADDRESS",
    text: `${place}: ${describeError(error)}`,
    fix: "Give an address of this host as -healthz-ip (0.0.0.0 and :: are all of them). It is tried again by itself.",
  };
}
