import { type EtcdStore, type EtcdStoreOptions, openEtcdStore } from "../../../../core/lease/etcd/store.ts";
import type { Lease, LeaseAttrs, Subnets } from "../../../../core/lease/lease.ts";
import type { HeldLease, LeaseState, PeerUpdate, SubnetRanges } from "../../../../core/lease/store.ts";
import { Health } from "../../../../core/observe/health.ts";
import type { Fields, Log } from "../../../../core/observe/log.ts";
import { until } from "../../../lab/until.ts";

/** Time for one test with real etcd members on a busy machine; every wait inside has a deadline of its own. */
export const TEST_TIMEOUT_MS = 60_000;

export const PREFIX = "/coreos.com/network";

/** A /16 in /24 blocks. */
export const RANGES: SubnetRanges = {
  ipv4: { network: "10.5.0.0/16", subnetLen: 24, subnetMin: "10.5.1.0", subnetMax: "10.5.255.0" },
};

/** Exactly one block. */
export const ONE_SUBNET: SubnetRanges = {
  ipv4: { network: "10.5.0.0/16", subnetLen: 24, subnetMin: "10.5.1.0", subnetMax: "10.5.1.0" },
};

/** Attributes of node `n`. */
export function attrsOf(n: number, over: Partial<LeaseAttrs> = {}): LeaseAttrs {
  const hex = n.toString(16).padStart(12, "0");
  return {
    backendType: "vxlan",
    publicIP: `192.0.${2 + (n >> 8)}.${n & 255}`,
    backendData: { VNI: 1, VtepMAC: `02:00:00:00:${hex.slice(8, 10)}:${hex.slice(10)}` },
    nodeId: `${hex}-${hex}`,
    bootId: `boot-${n}`,
    ...over,
  };
}

export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  readonly fields: Fields;
}

/** Collects log lines. */
export class RecordingLog implements Log {
  readonly lines: LogLine[] = [];
  debug(message: string, fields: Fields = {}): void {
    this.lines.push({ level: "debug", message, fields });
  }
  info(message: string, fields: Fields = {}): void {
    this.lines.push({ level: "info", message, fields });
  }
  warn(message: string, fields: Fields = {}): void {
    this.lines.push({ level: "warn", message, fields });
  }
  error(message: string, fields: Fields = {}): void {
    this.lines.push({ level: "error", message, fields });
  }
  child(): Log {
    return this;
  }
  /** All text, for finding things in it. */
  get text(): string {
    return this.lines
      .map((line) => `${line.level} ${line.message} ${JSON.stringify(line.fields)}`)
      .join("\n");
  }
}

/** The store of one node, with all it says: what the agent does with it, minus the kernel. */
export class TestNode implements AsyncDisposable {
  readonly log = new RecordingLog();
  readonly health = new Health(this.log);
  readonly states: LeaseState[] = [];
  readonly updates: PeerUpdate[] = [];
  /** Peers by key as the updates tell, our own included. */
  readonly peers = new Map<string, Lease>();
  held: HeldLease | undefined;
  readonly #stop = new AbortController();
  readonly #tasks: Promise<unknown>[] = [];

  private constructor(
    readonly number: number,
    private readonly opened: { store?: EtcdStore },
  ) {}

  get store(): EtcdStore {
    if (!this.opened.store) throw new Error("not open");
    return this.opened.store;
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Opens the store of node `number`; short leases unless told otherwise. */
  static async open(
    number: number,
    endpoints: string | readonly string[],
    over: Partial<EtcdStoreOptions> = {},
  ): Promise<TestNode> {
    const node = new TestNode(number, {});
    node.opened.store = await openEtcdStore({
      endpoints: typeof endpoints === "string" ? [endpoints] : endpoints,
      prefix: PREFIX,
      ttlMs: 4_000,
      marginMs: 2_500,
      log: node.log,
      health: node.health,
      ...over,
    });
    return node;
  }

  /** Acquires, keeps and watches. */
  async join(
    ranges: SubnetRanges = RANGES,
    over: Partial<LeaseAttrs> = {},
    previous?: Subnets,
  ): Promise<HeldLease> {
    const held = await this.acquire(ranges, over, previous);
    this.keep(held);
    this.watch();
    return held;
  }

  async acquire(
    ranges: SubnetRanges = RANGES,
    over: Partial<LeaseAttrs> = {},
    previous?: Subnets,
  ): Promise<HeldLease> {
    const attrs = attrsOf(this.number, over);
    this.held = await this.store.acquire({ ranges, attrs, ...(previous ? { previous } : {}) }, this.signal);
    return this.held;
  }

  keep(held: HeldLease): void {
    this.#tasks.push(this.store.keep(held, (state) => this.states.push(state), this.signal));
  }

  watch(): void {
    this.#tasks.push(
      (async () => {
        for await (const update of this.store.watchPeers(this.signal)) {
          this.updates.push(update);
          apply(this.peers, update);
        }
      })(),
    );
  }

  /** The last state the keeper told. */
  get state(): LeaseState | undefined {
    return this.states.at(-1);
  }

  /** Public addresses of the peers by key, sorted. */
  get table(): string {
    return [...this.peers]
      .map(([key, lease]) => `${key}=${lease.attrs.publicIP}`)
      .sort()
      .join(" ");
  }

  /** Waits until the keeper reports a state. */
  async untilState(state: LeaseState["state"], deadline = 10_000): Promise<LeaseState> {
    return await until(() => (this.state?.state === state ? this.state : undefined), {
      message: () => `node ${this.number} is not ${state}: ${JSON.stringify(this.state)}\n${this.log.text}`,
      deadline,
    });
  }

  /** Waits until exactly these keys are known. */
  async untilKeys(keys: readonly string[], deadline = 10_000): Promise<void> {
    const wanted = [...keys].sort().join(" ");
    const known = () => [...this.peers.keys()].sort().join(" ");
    await until(() => known() === wanted, {
      message: () => `node ${this.number} knows ${known()}, not ${wanted}\n${this.log.text}`,
      deadline,
    });
  }

  /** Stops all loops and closes the store. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#tasks);
    await this.store.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

function apply(peers: Map<string, Lease>, update: PeerUpdate): void {
  if (update.type === "snapshot") {
    const kept = new Set([...update.leases.map((lease) => lease.key), ...(update.unreadable ?? [])]);
    for (const key of peers.keys()) if (!kept.has(key)) peers.delete(key);
    for (const lease of update.leases) peers.set(lease.key, lease);
    return;
  }
  for (const key of update.deletes) peers.delete(key);
  for (const lease of update.puts) peers.set(lease.key, lease);
}
