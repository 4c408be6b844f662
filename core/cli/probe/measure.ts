import type { PingOptions, PingResult } from "../../host/ping.ts";
import type { TcpOutcome } from "../../host/tcp.ts";
import type { Finding } from "../../observe/finding.ts";
import {
  lossFinding,
  mtuFinding,
  tcpBlockedFinding,
  tcpSilentFinding,
  unreachableFinding,
} from "./findings.ts";
import type { ProbeAddress, ProbeTarget } from "./targets.ts";

/** What a probe sends packets with. */
export interface Instruments {
  ping(address: string, options: PingOptions): Promise<PingResult>;
  tcp(address: string, port: number, patience: number): Promise<TcpOutcome>;
  /** State of the checksum offload of the device that leads to an address, for the message; undefined when unknown. */
  offload(address: string): Promise<{ readonly dev: string; readonly on: boolean | undefined } | undefined>;
}

/** How a peer answered. Parts that were not tried, because nothing answered, are absent. */
export interface ProbeResult {
  readonly target: ProbeTarget;
  readonly address?: ProbeAddress;
  readonly sent: number;
  readonly received: number;
  /** Median round trip, ms. */
  readonly rtt?: number;
  /** Largest packet, IP header included, that arrives unfragmented. */
  readonly mtu?: number;
  readonly tcp?: TcpOutcome["outcome"];
  readonly findings: readonly Finding[];
}

/** Echo requests for the round trip. */
const ECHOES = 5;
/** Bytes of IP and ICMP header around the payload. */
const HEADERS = { 4: 28, 6: 48 } as const;
/** The least MTU that every link has to carry: RFC 791 §3.2 (as hosts must accept it), RFC 8200 §5. */
const LEAST_MTU = { 4: 576, 6: 1280 } as const;
/** Ports hardly anybody listens on (IANA: tcpmux and an unassigned one): a refusal shows that TCP passes. */
const PORTS = [1, 4];
/** Time for a connection attempt, ms: the first repetition of a lost SYN comes after one second (RFC 6298). */
const TCP_PATIENCE_MS = 2_500;

/** Measures one target: round trip, the largest packet up to `mtu`, and whether TCP passes. Never rejects for a peer's sake. */
export async function measure(
  target: ProbeTarget,
  mtu: number,
  instruments: Instruments,
): Promise<ProbeResult> {
  let sent = 0;
  for (const address of target.addresses) {
    const result = await instruments.ping(address.address, { count: ECHOES });
    if (result.received > 0) return measureAnswering(target, address, result, mtu, instruments);
    sent += result.sent;
  }
  return { target, sent, received: 0, findings: [unreachableFinding(target)] };
}

async function measureAnswering(
  target: ProbeTarget,
  answering: ProbeAddress,
  { sent, received, times }: PingResult,
  mtu: number,
  instruments: Instruments,
): Promise<ProbeResult> {
  const { address } = answering;
  const patience = Math.min(1, Math.max(0.3, (Math.max(...times, 0) * 5) / 1000));
  const [largest, tcp] = await Promise.all([
    sweepMtu(mtu, LEAST_MTU[target.family], async (size) => {
      const payload = size - HEADERS[target.family];
      const one = await instruments.ping(address, { count: 2, payload, interval: 0.05, patience });
      return one.received > 0;
    }),
    tryPorts(address, instruments),
  ]);
  const findings: Finding[] = [];
  if (received < sent) findings.push(lossFinding(target, sent, received));
  if (largest < mtu) findings.push(mtuFinding(target, largest, mtu));
  if (tcp.outcome === "unreachable") findings.push(tcpBlockedFinding(target, address, tcp.reason));
  if (tcp.outcome === "timeout") {
    findings.push(tcpSilentFinding(target, address, await instruments.offload(address)));
  }
  const rtt = median(times);
  return {
    target,
    address: answering,
    sent,
    received,
    ...(rtt === undefined ? {} : { rtt }),
    mtu: largest,
    tcp: tcp.outcome,
    findings,
  };
}

/**
 * The largest size up to `most` that `passes`, found by halving; `most` is tried first, since it usually passes. Below
 * `least` nothing is tried: then the result is 0.
 */
export async function sweepMtu(
  most: number,
  least: number,
  passes: (size: number) => Promise<boolean>,
): Promise<number> {
  if (await passes(most)) return most;
  if (least >= most || !(await passes(least))) return 0;
  let good = least;
  let bad = most;
  while (bad - good > 1) {
    const size = Math.floor((good + bad) / 2);
    if (await passes(size)) good = size;
    else bad = size;
  }
  return good;
}

async function tryPorts(address: string, instruments: Instruments): Promise<TcpOutcome> {
  let last: TcpOutcome = { outcome: "timeout" };
  for (const port of PORTS) {
    last = await instruments.tcp(address, port, TCP_PATIENCE_MS);
    if (last.outcome === "accepted" || last.outcome === "refused") return last;
  }
  return last;
}

function median(values: readonly number[]): number | undefined {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
}
