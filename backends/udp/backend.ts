import type {
  ActiveBackend,
  CleanupOptions,
  ConfigureInput,
  Finding,
  Host,
  HostFacts,
  LeaseData,
  OwnLease,
  Peer,
  SyncReport,
} from "flannel/sdk";
import { Fault } from "flannel/sdk";
import { COUNTERS, type Counter } from "./datapath/counters.ts";
import { ROUTE_FIELDS } from "./datapath/messages.ts";
import { ForwardingThread } from "./datapath/thread.ts";
import { baseAddress, deviceObjects, familiesOf, findSmallMtu, keepDevice, tunnelMtu } from "./device.ts";
import { describeThroughput, type Endpoints, openEndpoints } from "./endpoints.ts";
import { type Counts, endedFinding, judgeCounters } from "./findings.ts";
import type { Options } from "./options.ts";
import { parseAddress } from "./packet/address.ts";
import { planPeers, publishedData, TYPE } from "./peers.ts";
import { DEVICE, findTun, removeTun } from "./system/tun.ts";

const NO_COUNTS = Object.fromEntries(COUNTERS.map((name) => [name, 0])) as Record<Counter, number>;

/** Moves packets between a TUN device and UDP sockets, in a thread of its own. */
export class UdpBackend implements ActiveBackend {
  readonly mode = "active";
  readonly cleansUpUnaided = true;
  readonly devices = [DEVICE];
  readonly #input: ConfigureInput<Options>;
  #host: Host | undefined;
  #lease: OwnLease | undefined;
  #endpoints: Endpoints | undefined;
  #thread: ForwardingThread | undefined;
  /** Why nothing is forwarded although it should be. */
  #broken: string | undefined;
  /** Whether the device was had at all. */
  #opened = false;
  /** Routes and endpoints the thread has, as one text. */
  #known = "";
  #routes = 0;
  #seen: Counts = NO_COUNTS;

  constructor(input: ConfigureInput<Options>) {
    this.#input = input;
  }

  async prepare(host: Host, facts: HostFacts): Promise<LeaseData> {
    this.#host = host;
    await this.#open(facts);
    const { options, families } = this.#input;
    const data = familiesOf(families).map(
      (family) => [family, publishedData(options, family, facts)] as const,
    );
    return { backendType: TYPE, ...Object.fromEntries(data) };
  }

  async attach(lease: OwnLease, facts: HostFacts): Promise<{ readonly mtu: number }> {
    this.#lease = lease;
    const mtu = await this.#keepDevice(facts);
    await this.#forward();
    return { mtu };
  }

  async sync(peers: readonly Peer[], _: unknown, facts: HostFacts): Promise<SyncReport> {
    await this.#revive(facts);
    const mtu = await this.#keepDevice(facts);
    const { table, unusable } = planPeers(peers, this.#input.options);
    const text = `${table.routes.join()} ${table.endpoints.join()}`;
    if (text !== this.#known) {
      await this.#thread?.setPeers(table);
      this.#known = text;
      this.#routes = table.routes.length / ROUTE_FIELDS;
    }
    return { failed: [], unusable, mtu };
  }

  async health(): Promise<readonly Finding[]> {
    const thread = this.#thread;
    const findings = thread ? judgeCounters(this.#seen, thread.counters) : [];
    this.#seen = thread?.counters ?? NO_COUNTS;
    const failure = thread ? thread.failure : this.#broken;
    return failure === undefined ? findings : [...findings, endedFinding(failure)];
  }

  /** How packets are moved, and how many were. */
  describe(): Readonly<Record<string, string>> {
    if (!this.#endpoints) return {};
    return { ...describeThroughput(this.#endpoints, this.#thread?.counters), routes: String(this.#routes) };
  }

  async stop(): Promise<void> {
    this.#lease = undefined;
    await this.#close();
  }

  async #close(): Promise<void> {
    await this.#thread?.stop();
    this.#thread = undefined;
    this.#known = "";
    this.#routes = 0;
    this.#seen = NO_COUNTS;
    this.#endpoints?.close();
    this.#endpoints = undefined;
  }

  async cleanup({ dryRun, host }: CleanupOptions): Promise<readonly string[]> {
    // After a start that failed, a device that was not had may be at work for another process.
    if (!findTun() || (!host && !this.#opened)) return [];
    if (!dryRun) {
      await this.stop();
      removeTun();
    }
    return [`device ${DEVICE}, with the addresses and routes on it`];
  }

  async #open(facts: HostFacts): Promise<void> {
    const { options, families } = this.#input;
    await this.#close();
    this.#endpoints = openEndpoints(options, familiesOf(families), facts);
    this.#opened = true;
  }

  async #keepDevice(facts: HostFacts): Promise<number> {
    const { families, networks } = this.#input;
    const [tooSmall] = findSmallMtu(families, facts);
    if (tooSmall)
      throw new Fault(tooSmall.code, `${tooSmall.title}: ${tooSmall.text}`, { hint: tooSmall.fix });
    const mtu = tunnelMtu(families, facts);
    if (this.#host && this.#lease) {
      await keepDevice(this.#host.kernel, mtu, deviceObjects(this.#lease, networks));
    }
    return mtu;
  }

  /** Starts the thread. */
  async #forward(): Promise<void> {
    const host = this.#host;
    const { subnets } = this.#lease ?? {};
    if (!this.#endpoints || !host)
      throw new Fault("INTERNAL", "the udp backend is attached before it is prepared");
    const { tun, ipv4, ipv6, raw4, raw6 } = this.#endpoints;
    const source4 = subnets?.ipv4 && parseAddress(baseAddress(subnets.ipv4))?.words;
    const source6 = subnets?.ipv6 && parseAddress(baseAddress(subnets.ipv6))?.words;
    const input = {
      tun,
      raw4,
      raw6,
      ...(ipv4 ? { ipv4 } : {}),
      ...(ipv6 ? { ipv6 } : {}),
      ...(source4 ? { source4 } : {}),
      ...(source6 ? { source6 } : {}),
    };
    this.#thread = await ForwardingThread.start(input, () => host.wake());
    host.log.info("forwarding", this.describe());
  }

  /** A device that somebody deleted, or a thread that broke, is made anew; what that fails with is tried again. */
  async #revive(facts: HostFacts): Promise<void> {
    // After a stop nothing is forwarded, and nothing is broken.
    if (!this.#lease || (this.#thread && this.#thread.failure === undefined && findTun())) return;
    if (this.#thread) {
      this.#broken = this.#thread.failure ?? `${DEVICE} is gone`;
      this.#host?.log.warn(`forwarding starts again: ${this.#broken}`);
    }
    try {
      await this.#open(facts);
      await this.#keepDevice(facts);
      await this.#forward();
      this.#broken = undefined;
    } catch (error) {
      this.#broken = error instanceof Error ? error.message : String(error);
      throw error;
    }
  }
}
