import type { Namespace } from "./namespace.ts";

/** Anything that lives in a network namespace. */
export interface Located {
  readonly namespace: Namespace;
}

/** Result of a finished ping. */
export interface PingResult {
  readonly sent: number;
  readonly received: number;
  /** Round-trip times in ms, in order of arrival. */
  readonly rtts: readonly number[];
  /** What `ping` wrote, for error messages. */
  readonly output: string;
}

export interface PingOptions {
  /** Echo requests to send; default 3. */
  readonly count?: number;
  /** Seconds between them; default 0.1. */
  readonly interval?: number;
  /** Milliseconds to wait for the last answer; default 1,000. */
  readonly deadline?: number;
  /** Payload bytes (`-s`); the packet is 28 (IPv4) or 48 (IPv6) bytes longer. */
  readonly size?: number;
  /** Forbids fragmentation (`-M do`), to probe the path MTU. */
  readonly dontFragment?: boolean;
  /** Source address (`-I`). */
  readonly source?: string;
}

/** Sends echo requests from `from` to `address` (either family). Unreachable is a result, not an error. */
export async function ping(from: Located, address: string, options: PingOptions = {}): Promise<PingResult> {
  const { count = 3, interval = 0.1, deadline = 1_000 } = options;
  const child = Bun.spawn(
    [
      ...pingCommand(from, options),
      "-c",
      String(count),
      "-i",
      String(interval),
      "-W",
      String(deadline / 1000),
      address,
    ],
    { stdin: "ignore", stdout: "pipe", stderr: "pipe" },
  );
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  const output = stdout + stderr;
  const rtts = [...stdout.matchAll(/ time=([\d.]+) ms/g)].map((match) => Number(match[1]));
  const summary = /(\d+) packets transmitted, (\d+) received/.exec(stdout);
  return { sent: Number(summary?.[1] ?? 0), received: Number(summary?.[2] ?? 0), rtts, output };
}

/** The command up to the options that decide how long it runs; `exec` makes its pid ping's own. */
export function pingCommand(from: Located, options: Omit<PingOptions, "count" | "deadline">): string[] {
  const { size, dontFragment = false, source } = options;
  return [
    "ip",
    "netns",
    "exec",
    from.namespace.name,
    "ping",
    "-n",
    ...(size === undefined ? [] : ["-s", String(size)]),
    ...(dontFragment ? ["-M", "do"] : []),
    ...(source === undefined ? [] : ["-I", source]),
  ];
}
