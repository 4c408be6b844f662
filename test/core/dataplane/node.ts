import type { DeclarativeBackend } from "flannel/sdk";
import * as v from "valibot";
import vxlan from "../../../backends/vxlan/index.ts";
import { options as vxlanOptions } from "../../../backends/vxlan/options.ts";
import { DeclarativeDriver } from "../../../core/dataplane/declarative.ts";
import type { DriverEvents } from "../../../core/dataplane/driver.ts";
import type { Repaired } from "../../../core/dataplane/repaired.ts";
import { newDataplaneStats } from "../../../core/dataplane/stats.ts";
import type { LeaseData, Peer, Subnets } from "../../../core/lease/lease.ts";
import { type Prefix, parsePrefix } from "../../../core/net/prefix.ts";
import type { Kernel, Notice } from "../../../core/netlink/kernel.ts";
import type { SysctlObject } from "../../../core/netlink/objects.ts";
import { Health } from "../../../core/observe/health.ts";
import type { ExternalInterface } from "../../../plugins/sdk/facts.ts";
import { kernelIn } from "../../lab/in-namespace.ts";
import { Namespace } from "../../lab/namespace.ts";
import { until } from "../../lab/until.ts";
import { RecordingLog } from "../observe/recording-log.ts";

export const NETWORKS: Subnets = { ipv4: "10.5.0.0/16", ipv6: "fd00:5::/32" };
export const OWN: Subnets = { ipv4: "10.5.1.0/24", ipv6: "fd00:5:1::/64" };
/** CIDR texts as values. */
export function prefixesOf(networks: readonly string[]): readonly Prefix[] {
  return networks.map((text) => {
    const prefix = parsePrefix(text);
    if (!prefix) throw new Error(`no prefix: ${text}`);
    return prefix;
  });
}
/** What the device of peer n is called by the others. */
export const macOf = (n: number) => `02:00:00:00:02:${n.toString(16).padStart(2, "0")}`;

/** Peer n (2–250) with both families, as vxlan leases tell it. */
export function peerOf(n: number, change: { mac?: string; address?: string } = {}): Peer {
  const { mac = macOf(n), address = `192.0.2.${n}` } = change;
  const data = { VNI: 1, VtepMAC: mac };
  return {
    key: `10.5.${n}.0-24&fd00:5:${n}::-64`,
    backendType: "vxlan",
    ipv4: { subnet: `10.5.${n}.0/24`, publicIP: address, data },
    ipv6: { subnet: `fd00:5:${n}::/64`, publicIP: `2001:db8::${n}`, data },
  };
}

/** Peer n as a node that runs IPv4 only sees it. */
export function peer4Of(n: number, change: { mac?: string; address?: string } = {}): Peer {
  const { ipv6: _, ...peer } = peerOf(n, change);
  return peer;
}

/** The vxlan backend, dual stack unless said otherwise. */
export function vxlanBackend(
  options: { DirectRouting?: boolean; VNI?: number; ChecksumOffload?: "auto" | "on" | "off" } = {},
  families = { ipv4: true, ipv6: true },
): DeclarativeBackend {
  const backend = vxlan.configure({
    options: v.parse(vxlanOptions, { Port: 8472, ...options }),
    families,
    networks: NETWORKS,
    nodeId: "node-1",
  });
  if (backend.mode !== "declarative") throw new Error("vxlan is declarative");
  return backend;
}

/** Writing calls of a kernel, counted; what the kernel took for already so counts too. */
export interface Writes {
  changes: number;
  links: number;
}

/** The kernel with its writes counted. */
function counting(kernel: Kernel, writes: Writes): Kernel {
  const noted = <Arguments extends unknown[], Result>(
    call: (...args: Arguments) => Result,
    note: (...args: Arguments) => void,
  ) => {
    return (...args: Arguments) => {
      note(...args);
      return call.apply(kernel, args);
    };
  };
  const link = () => {
    writes.links++;
  };
  return new Proxy(kernel, {
    get(_, name: keyof Kernel) {
      if (name === "createLink") return noted(kernel.createLink, link);
      if (name === "setLink") return noted(kernel.setLink, link);
      if (name === "deleteLink") return noted(kernel.deleteLink, link);
      if (name === "apply") {
        return noted(kernel.apply, (changes) => {
          writes.changes += changes.length;
        });
      }
      const member = kernel[name];
      return typeof member === "function" ? member.bind(kernel) : member;
    },
  });
}

/**
 * A machine of the cluster in one namespace, with nobody on the other end of its wire:
 *
 *     eth0 192.0.2.1/24, 2001:db8::1/64 ── veth ── far0 (up)
 */
export class Node implements AsyncDisposable {
  readonly ns: Namespace;
  readonly kernel: Kernel;
  readonly #stack: AsyncDisposableStack;

  private constructor(ns: Namespace, kernel: Kernel, stack: AsyncDisposableStack) {
    this.ns = ns;
    this.kernel = kernel;
    this.#stack = stack;
  }

  /** `open` opens the kernel of the namespace; over rtnetlink unless said otherwise. */
  static async create(
    hint: string,
    open: (ns: Namespace) => Promise<Kernel & Disposable> = async (ns) => kernelIn(ns),
  ): Promise<Node> {
    await using stack = new AsyncDisposableStack();
    const ns = stack.use(await Namespace.create(hint));
    await ns.ip("link add eth0 mtu 1500 address 02:00:00:00:00:01 type veth peer name far0");
    await ns.ip("link set far0 up");
    await ns.ip("link set eth0 up");
    await ns.ip("address add 192.0.2.1/24 dev eth0");
    await ns.ip("address add 2001:db8::1/64 dev eth0 nodad");
    const kernel = stack.use(await open(ns));
    return new Node(ns, kernel, stack.move());
  }

  /** `eth0` as the agent describes it. */
  async external(change: Partial<ExternalInterface> = {}): Promise<ExternalInterface> {
    const link = await this.kernel.link("eth0");
    if (!link) throw new Error("eth0 is gone");
    const { name, index, mtu, mac } = link;
    const addresses = {
      ipv4: "192.0.2.1",
      ipv6: "2001:db8::1",
      publicIP: "192.0.2.1",
      publicIPv6: "2001:db8::1",
    };
    return { name, index, mtu, ...(mac === undefined ? {} : { mac }), ...addresses, ...change };
  }

  /** A daemon's data plane on this machine, not started yet. */
  async drive(backend: DeclarativeBackend = vxlanBackend(), options: DriveOptions = {}): Promise<Drive> {
    return new Drive(this.kernel, backend, options.external ?? (await this.external()), options);
  }

  /** All that anybody changed while `work` ran, as the kernel tells it. */
  async noticesDuring(work: () => Promise<void>): Promise<Notice[]> {
    const controller = new AbortController();
    const notices: Notice[] = [];
    const subscription = this.kernel.notices(controller.signal);
    const before = new Set((await this.kernel.links()).map((link) => JSON.stringify(link)));
    const listening = (async () => {
      for await (const batch of subscription) notices.push(...batch);
    })();
    await work();
    // A change of our own, to know that everything before it has arrived.
    await this.ns.ip("link add mark0 type bridge");
    await until(() => notices.some((notice) => notice.kind === "link" && notice.link.name === "mark0"), {
      message: "the mark",
    });
    controller.abort();
    await listening;
    await this.ns.ip("link delete mark0");
    return notices
      .filter((notice) => !JSON.stringify(notice).includes('"mark0"'))
      .filter((notice) => !isKernelsOwn(notice, before));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/** NUD_PERMANENT (linux/neighbour.h), RT_SCOPE_LINK (linux/rtnetlink.h). */
const PERMANENT = 0x80;
const SCOPE_LINK = 253;

/**
 * What the kernel tells late of its own accord: duplicate address detection is over, a neighbour was probed, the state
 * of a link is repeated as it was `before`.
 */
function isKernelsOwn(notice: Notice, before: ReadonlySet<string>): boolean {
  if (notice.kind === "address") return notice.address.scope === SCOPE_LINK;
  if (notice.kind === "neighbour") return (notice.neighbour.state & PERMANENT) === 0;
  return notice.kind === "link" && notice.action === "put" && before.has(JSON.stringify(notice.link));
}

/** What a daemon is told beside its backend. */
export interface DriveOptions {
  /** Networks now and of the last run, as CIDR text. */
  readonly networks?: readonly string[];
  /** Instead of `eth0` as it is. */
  readonly external?: ExternalInterface;
  /** See DeclarativeInput. */
  readonly starting?: boolean;
}

/** A driver with what it was given and what it told, and its repair loop while it runs. */
export class Drive implements AsyncDisposable {
  readonly driver: DeclarativeDriver;
  readonly log = new RecordingLog();
  readonly health = new Health(this.log);
  readonly stats = newDataplaneStats();
  /** What was set right, look by look. */
  readonly repaired: Repaired[] = [];
  readonly writes: Writes = { changes: 0, links: 0 };
  readonly sysctls: SysctlObject[] = [];
  /** What the lease says, and each later version of it. */
  readonly published: LeaseData[] = [];
  /** The MTU for pods, and each later one. */
  readonly mtus: number[] = [];
  readonly #peers = new Map<string, Peer>();
  readonly #controller = new AbortController();
  #running: Promise<void> | undefined;

  constructor(
    kernel: Kernel,
    backend: DeclarativeBackend,
    external: ExternalInterface,
    options: DriveOptions,
  ) {
    const networks = options.networks ?? [NETWORKS.ipv4 ?? "", NETWORKS.ipv6 ?? ""];
    this.driver = new DeclarativeDriver({
      backend,
      kernel: counting(kernel, this.writes),
      external,
      networks: prefixesOf(networks),
      writeSysctl: (object) => {
        this.sysctls.push(object);
        return undefined;
      },
      health: this.health,
      log: this.log,
      stats: this.stats,
      ...(options.starting ? { starting: true } : {}),
    });
  }

  /** prepare → attach → first update, as the agent does. */
  async start(...peers: readonly Peer[]): Promise<this> {
    return this.startAs(OWN, peers);
  }

  /** As {@link start}, with a lease of these subnets. */
  async startAs(subnets: Subnets, peers: readonly Peer[]): Promise<this> {
    this.published.push(await this.driver.prepare());
    this.mtus.push(await this.driver.attach({ subnets }));
    await this.update(peers);
    return this;
  }

  /** Starts, and then repairs until the end of the scope. */
  async run(...peers: readonly Peer[]): Promise<this> {
    await this.start(...peers);
    const events: DriverEvents = {
      published: (data) => this.published.push(data),
      mtu: (mtu) => this.mtus.push(mtu),
      repaired: (repaired) => this.repaired.push(repaired),
    };
    this.#running = this.driver.run(events, this.#controller.signal);
    return this;
  }

  /** Peers added or changed, and keys removed. */
  async update(peers: readonly Peer[], removed: readonly string[] = []): Promise<void> {
    const added = peers.filter((peer) => !this.#peers.has(peer.key));
    const changed = peers.filter((peer) => this.#peers.has(peer.key));
    for (const key of removed) this.#peers.delete(key);
    for (const peer of peers) this.#peers.set(peer.key, peer);
    await this.driver.update(this.#peers, { added, changed, removed });
  }

  /** Forgets what was counted. */
  resetWrites(): void {
    Object.assign(this.writes, { changes: 0, links: 0 });
  }

  /** Ends the repair loop; everything in the kernel stays. */
  async stop(): Promise<void> {
    this.#controller.abort();
    await this.#running;
    await this.driver.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}
