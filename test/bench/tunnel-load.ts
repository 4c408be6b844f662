import { readCpuSeconds } from "./process-usage.ts";
import type { TunnelEnd } from "./tunnel-end.ts";

/** What one kind of load came to. */
export interface LoadResult {
  /** Of all streams together. */
  readonly gigabitsPerSecond: number;
  /** CPU seconds of both daemons for each gigabit of packets. */
  readonly cpuPerGigabit: number;
}

/** Two ends of a tunnel and the processes that move packets there. */
export interface Tunnel {
  readonly ends: readonly [TunnelEnd, TunnelEnd];
  readonly pids: readonly number[];
}

interface Iperf {
  readonly error?: string;
  readonly end: {
    readonly sum_received?: { readonly bits_per_second: number };
    readonly sum_received_bidir_reverse?: { readonly bits_per_second: number };
    readonly sum?: { readonly packets: number; readonly lost_packets: number; readonly seconds: number };
  };
}

/** Time for slow start and for the compiler of the JavaScript engine, left out of the figures, seconds. */
const WARM_UP = 2;

/** TCP with iperf3's own options (`-P 4`, `--bidir`) for `seconds`. */
export async function measureTcp(
  tunnel: Tunnel,
  seconds: number,
  ...options: readonly string[]
): Promise<LoadResult> {
  const before = { cpu: cpuOf(tunnel), bytes: await bytesOf(tunnel) };
  const { end } = await iperf(tunnel, seconds, ["--omit", String(WARM_UP), ...options]);
  const bits = [end.sum_received, end.sum_received_bidir_reverse].map((sum) => sum?.bits_per_second ?? 0);
  const gigabits = (((await bytesOf(tunnel)) - before.bytes) * 8) / 1e9;
  return {
    gigabitsPerSecond: bits.reduce((sum, each) => sum + each, 0) / 1e9,
    cpuPerGigabit: (cpuOf(tunnel) - before.cpu) / gigabits,
  };
}

/** UDP datagrams of 64 bytes that arrive, in thousands per second, while as many are sent as the sender can. */
export async function measurePackets(tunnel: Tunnel, seconds: number): Promise<number> {
  const { end } = await iperf(tunnel, seconds + WARM_UP, ["--udp", "--length", "64", "--bitrate", "0"]);
  if (!end.sum) throw new Error("iperf3 told of no packets");
  return (end.sum.packets - end.sum.lost_packets) / end.sum.seconds / 1_000;
}

/** Least round-trip time of `count` echo requests, µs. */
export async function measureRoundTrip({ ends: [from, to] }: Tunnel, count: number): Promise<number> {
  const ping = ["ping", "-n", "-q", "-c", String(count), "-i", "0.005", to.address];
  const { stdout } = await from.host.namespace.run(ping);
  const least = / = ([\d.]+)\//.exec(stdout)?.[1];
  if (least === undefined) throw new Error(`no answers: ${stdout}`);
  return Number(least) * 1_000;
}

function cpuOf({ pids }: Tunnel): number {
  return pids.reduce((sum, pid) => sum + readCpuSeconds(pid), 0);
}

/** Bytes that came out of the tunnel at both ends. */
async function bytesOf({ ends }: Tunnel): Promise<number> {
  const counts = await Promise.all(
    ends.map(({ host }) => host.namespace.exec("cat", "/sys/class/net/flannel0/statistics/rx_bytes")),
  );
  return counts.reduce((sum, text) => sum + Number(text), 0);
}

async function iperf(
  { ends: [from, to] }: Tunnel,
  seconds: number,
  options: readonly string[],
): Promise<Iperf> {
  const server = to.host.namespace.spawn(
    "iperf3",
    "--server",
    "--one-off",
    "--forceflush",
    "--bind",
    to.address,
  );
  try {
    await listening(server.stdout);
    const client = ["iperf3", "--client", to.address, "--time", String(seconds), "--json", ...options];
    const patience = String(seconds + WARM_UP + 20);
    const { stdout, stderr } = await from.host.namespace.run(["timeout", patience, ...client]);
    let report: Iperf;
    try {
      report = JSON.parse(stdout) as Iperf;
    } catch {
      throw new Error(`iperf3: ${stdout}${stderr}`);
    }
    if (report.error !== undefined) throw new Error(`iperf3: ${report.error}`);
    return report;
  } finally {
    if (server.exitCode === null) server.kill("SIGKILL");
    await server.exited;
  }
}

async function listening(stdout: ReadableStream<Uint8Array>): Promise<void> {
  const reader = stdout.getReader();
  const decoder = new TextDecoder();
  for (let text = ""; !text.includes("Server listening"); ) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`the iperf3 server does not listen: ${text}`);
    text += decoder.decode(value, { stream: true });
  }
  reader.releaseLock();
}
