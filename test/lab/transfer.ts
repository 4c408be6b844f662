import type { Located } from "./ping.ts";

/** What one TCP stream carried. */
export interface TransferResult {
  /** Bytes the receiver had counted when the sender said it was done: on a busy machine some MiB short. */
  readonly bytes: number;
  readonly seconds: number;
  readonly megabitsPerSecond: number;
  /** Segments sent again. */
  readonly retransmits: number;
}

/**
 * Sends one TCP stream from `from` to `address`, which must be an address of `to` (either family), with iperf3.
 * `bytes` is the amount (default 64 MiB); `seconds` gives a duration instead. Throws with iperf3's words when it fails.
 */
export async function tcpTransfer(
  from: Located,
  to: Located,
  address: string,
  options: { bytes?: number; seconds?: number; port?: number; deadline?: number } = {},
): Promise<TransferResult> {
  const { bytes = 64 * 1024 * 1024, seconds, port = 5201, deadline = 15_000 } = options;
  const server = Bun.spawn(
    [
      ...inside(to),
      "iperf3",
      "--server",
      "--one-off",
      "--forceflush",
      "--port",
      String(port),
      "--bind",
      address,
    ],
    { stdin: "ignore", stdout: "pipe", stderr: "pipe" },
  );
  try {
    await untilListening(server.stdout, deadline);
    const client = Bun.spawn(
      [
        ...inside(from),
        "iperf3",
        "--client",
        address,
        "--port",
        String(port),
        "--connect-timeout",
        String(deadline),
        ...(seconds === undefined ? ["--bytes", String(bytes)] : ["--time", String(seconds)]),
        "--json",
      ],
      { stdin: "ignore", stdout: "pipe", stderr: "pipe", timeout: deadline + (seconds ?? 0) * 1000 },
    );
    const [stdout, stderr] = await Promise.all([client.stdout.text(), client.stderr.text(), client.exited]);
    return parseReport(stdout, stderr);
  } finally {
    if (server.exitCode === null) server.kill("SIGKILL");
    await server.exited;
  }
}

function inside(place: Located): string[] {
  return ["ip", "netns", "exec", place.namespace.name];
}

async function untilListening(stdout: ReadableStream<Uint8Array>, deadline: number): Promise<void> {
  const reader = stdout.getReader();
  const decoder = new TextDecoder();
  const timer = setTimeout(() => void reader.cancel(), deadline);
  let text = "";
  try {
    while (!text.includes("Server listening")) {
      const { done, value } = await reader.read();
      if (done) throw new Error(`iperf3 server did not listen within ${deadline} ms: ${text}`);
      text += decoder.decode(value, { stream: true });
    }
  } finally {
    clearTimeout(timer);
    reader.releaseLock();
  }
}

function parseReport(stdout: string, stderr: string): TransferResult {
  let report: Iperf;
  try {
    report = JSON.parse(stdout) as Iperf;
  } catch {
    throw new Error(`iperf3 client failed: ${stdout}${stderr}`);
  }
  const received = report.end?.sum_received;
  if (report.error !== undefined || received === undefined) {
    throw new Error(`iperf3 client failed: ${report.error ?? stderr}`);
  }
  return {
    bytes: received.bytes,
    seconds: received.seconds,
    megabitsPerSecond: received.bits_per_second / 1e6,
    retransmits: report.end?.sum_sent?.retransmits ?? 0,
  };
}

interface Iperf {
  readonly error?: string;
  readonly end?: {
    readonly sum_received?: {
      readonly bytes: number;
      readonly seconds: number;
      readonly bits_per_second: number;
    };
    readonly sum_sent?: { readonly retransmits?: number };
  };
}
