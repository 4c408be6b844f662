import { describeError, Fault } from "../observe/fault.ts";
import { run } from "./exec.ts";

/** What came of some echo requests. */
export interface PingResult {
  readonly sent: number;
  readonly received: number;
  /** Round trip times in ms, in the order of the answers. */
  readonly times: readonly number[];
}

export interface PingOptions {
  readonly count: number;
  /** Seconds between two requests; root may go down to 0.002. */
  readonly interval?: number;
  /** Seconds to wait for the last answer. */
  readonly patience?: number;
  /** Payload in bytes; 8 of ICMP and the IP header come on top. */
  readonly payload?: number;
}

/** Room for the process itself, ms. */
const OVERHEAD_MS = 5_000;

/**
 * `ping -n -M do -c COUNT ADDRESS` (iputils), never fragmented. No answer at all, and a packet too large for a link on
 * the way, are results: nothing received. Throws Fault `EXEC_MISSING` or `PING_FAILED`.
 */
export async function ping(address: string, options: PingOptions): Promise<PingResult> {
  const { count, interval = 0.2, patience = 1, payload = 56 } = options;
  const times = ["-c", String(count), "-i", String(interval), "-W", String(patience)];
  const args = ["-n", "-M", "do", ...times, "-s", String(payload), address];
  const timeout = (count * interval + patience) * 1000 + OVERHEAD_MS;
  try {
    return parsePing((await run("ping", args, { timeout, env: { LC_ALL: "C" } })).stdout);
  } catch (error) {
    if (error instanceof Fault && error.code !== "EXEC_FAILED") throw error;
    // Exit code 1: fewer answers than requests, or the local kernel refused the size (EMSGSIZE).
    const { stdout = "", stderr = "" } = outputOf(error);
    if (/\d+ packets transmitted/.test(stdout)) return parsePing(stdout);
    throw new Fault(
      "PING_FAILED",
      `ping ${address}: ${stderr.trim().split("\n")[0] || describeError(error)}`,
      {
        hint: "Try it by hand; this needs ping of iputils and the right to send ICMP (root, or CAP_NET_RAW).",
      },
    );
  }
}

/** Reads what iputils' ping prints. */
export function parsePing(text: string): PingResult {
  const counts = /(\d+) packets transmitted, (\d+) received/.exec(text);
  const times = [...text.matchAll(/\btime[=<]([\d.]+) ms/g)].map(([, time]) => Number(time));
  return { sent: Number(counts?.[1] ?? 0), received: Number(counts?.[2] ?? 0), times };
}

function outputOf(error: unknown): { stdout?: string; stderr?: string } {
  const cause = error instanceof Error ? error.cause : undefined;
  if (typeof cause !== "object" || cause === null) return {};
  const { stdout, stderr } = cause as { stdout?: unknown; stderr?: unknown };
  return {
    ...(typeof stdout === "string" ? { stdout } : {}),
    ...(typeof stderr === "string" ? { stderr } : {}),
  };
}
