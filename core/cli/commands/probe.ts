import { run } from "../../host/exec.ts";
import { ping } from "../../host/ping.ts";
import { type PreviousSubnetFile, readSubnetFile } from "../../host/subnet-file.ts";
import { tryTcp } from "../../host/tcp.ts";
import type { StoredLease } from "../../lease/entry.ts";
import { encodeKey } from "../../lease/key.ts";
import type { Lease } from "../../lease/lease.ts";
import { PeerTable } from "../../lease/peers.ts";
import type { SubnetRanges } from "../../lease/store.ts";
import type { Kernel } from "../../netlink/kernel.ts";
import { openKernel } from "../../netlink/open.ts";
import { Fault } from "../../observe/fault.ts";
import { askDaemon } from "../../observe/status-client.ts";
import { announce, commandLog } from "../command-log.ts";
import type { CommandLine } from "../flags.ts";
import { rangesOf, readConfigState, withLeases } from "../lease-access.ts";
import { type Instruments, measure, type ProbeResult } from "../probe/measure.ts";
import { isMeant, planTargets } from "../probe/targets.ts";
import { renderTable } from "../table.ts";
import { requireRoot } from "./ask.ts";
import type { Answered } from "./status.ts";

/** Targets probed at a time: each takes some processes of ping. */
const WIDTH = 8;

/**
 * `flanneld probe [PEER] [-o json]`: sends packets to every peer over the overlay. Exit code 0 when all answer as they
 * should, 1 when not.
 * @throws Fault `PRIVILEGE_MISSING`, `NOT_JOINED`, `PEER_UNKNOWN`, `EXEC_MISSING`, `PING_FAILED`, `ETCD_…`.
 */
export async function probePeers(line: CommandLine): Promise<Answered> {
  requireRoot("probe");
  announce(line);
  const { options, operand, output } = line;
  const log = commandLog(line);
  const own = readSubnetFile(options.subnetFile);
  const { mtu, subnets } = own;
  if (mtu === undefined) {
    throw new Fault("NOT_JOINED", `${options.subnetFile} does not tell this node's subnet and MTU`, {
      hint: "Start flanneld first, or name the -subnet-file that it was started with.",
    });
  }
  const peers = await withLeases(options, log, async (manager, signal) => {
    const [config, { leases }] = await Promise.all([readConfigState(manager, signal), manager.list(signal)]);
    return listPeers(leases, own, rangesOf(config));
  });
  const meant = operand === "" ? peers : peers.filter((lease) => isMeant(lease, operand));
  if (operand !== "" && meant.length === 0) {
    throw new Fault("PEER_UNKNOWN", `no other node has ${JSON.stringify(operand)}`, {
      hint: "Name a peer by address, subnet or node id: flanneld leases ls shows them.",
    });
  }
  const kernel = await openKernel(log, run);
  try {
    const results = await measureAll(planTargets(meant, subnets), mtu, instrumentsOf(kernel));
    await tellDaemon(options.subnetFile, results);
    const failed = results.some(({ findings }) => findings.some(({ severity }) => severity === "error"));
    const text = output === "json" ? renderJson(results, mtu) : renderResults(results);
    return { text, code: failed ? 1 : 0 };
  } finally {
    kernel.close();
  }
}

/** The peers this node routes to; without its own lease in the store its subnet file tells who it is. */
function listPeers(
  leases: readonly StoredLease[],
  { subnets }: PreviousSubnetFile,
  ranges: SubnetRanges | undefined,
): readonly Lease[] {
  const key = encodeKey(subnets);
  const own = leases.find((lease) => lease.key === key) ?? { key, subnets, attrs: { backendType: "" } };
  const table = new PeerTable({ own, ...(ranges ? { ranges } : {}) });
  table.reset(leases);
  return table.list();
}

function instrumentsOf(kernel: Kernel): Instruments {
  return {
    ping,
    tcp: tryTcp,
    async offload(address) {
      const dev = (await kernel.routeGet(address))?.dev;
      if (dev === undefined) return undefined;
      return { dev, on: await kernel.txChecksum(dev).catch(() => undefined) };
    },
  };
}

async function measureAll(
  targets: ReturnType<typeof planTargets>,
  mtu: number,
  instruments: Instruments,
): Promise<readonly ProbeResult[]> {
  const results: ProbeResult[] = [];
  const next = targets.entries();
  const work = async () => {
    for (const [at, target] of next) results[at] = await measure(target, mtu, instruments);
  };
  await Promise.all(Array.from({ length: Math.min(WIDTH, targets.length) }, work));
  return results;
}

/** So that `flanneld explain` shows it; a daemon that does not run, or is of another version, need not know. */
async function tellDaemon(subnetFile: string, results: readonly ProbeResult[]): Promise<void> {
  for (const { target, address, sent, received, rtt, mtu, tcp, findings } of results) {
    const search = {
      key: target.key,
      family: String(target.family),
      ...(address ? { address: address.address } : {}),
      sent: String(sent),
      received: String(received),
      ...(rtt === undefined ? {} : { rttMs: rtt.toFixed(3) }),
      ...(mtu === undefined ? {} : { mtu: String(mtu) }),
      ...(tcp === undefined ? {} : { tcp }),
      verdict: findings.map(({ code }) => code).join(" ") || "ok",
    };
    try {
      await askDaemon(subnetFile, "/probed", search);
    } catch (error) {
      if (error instanceof Fault) return;
      throw error;
    }
  }
}

/** The results for scripts. */
function renderJson(results: readonly ProbeResult[], expected: number): string {
  const peers = results.map(({ target, address, rtt, ...rest }) => ({
    key: target.key,
    node: target.node,
    subnet: target.subnet,
    ...(address ?? {}),
    ...(rtt === undefined ? {} : { rttMs: rtt }),
    ...rest,
  }));
  return `${JSON.stringify({ mtu: expected, peers }, null, 2)}\n`;
}

/** The results for people. */
export function renderResults(results: readonly ProbeResult[]): string {
  if (results.length === 0) return "There is no other node.\n";
  const rows = results.map(({ target, address, sent, received, rtt, mtu, tcp, findings }) => [
    target.subnet,
    target.node,
    address ? `${address.address} (${address.role})` : target.addresses.map((each) => each.address).join(" "),
    rtt === undefined ? "-" : `${rtt.toFixed(2)} ms`,
    `${sent - received}/${sent}`,
    mtu === undefined ? "-" : String(mtu),
    tcp === undefined ? "-" : tcp === "refused" || tcp === "accepted" ? "passes" : tcp,
    findings.map(({ code }) => code).join(" ") || "ok",
  ]);
  const head = ["SUBNET", "NODE", "ADDRESS", "RTT", "LOST", "MTU", "TCP", "RESULT"];
  const findings = results.flatMap((result) => result.findings);
  const told = findings.map(
    ({ severity, code, text, fix }) => `\n${severity} ${code}: ${text}\n  hint: ${fix}\n`,
  );
  return renderTable(head, rows) + told.join("");
}
