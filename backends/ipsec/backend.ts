import {
  type ActiveBackend,
  type CleanupOptions,
  type ConfigureInput,
  Fault,
  type Finding,
  type Host,
  type HostFacts,
  type LeaseData,
  type OwnLease,
  type Peer,
  type PeerDelta,
  type SyncReport,
} from "flannel/sdk";
import { findCharon } from "./charon/find.ts";
import { SOCKET } from "./charon/remains.ts";
import { CharonService, type Connection, noteOf } from "./charon/service.ts";
import { connectionName, settingsOf } from "./connection.ts";
import { Connections } from "./connections.ts";
import { downFinding, foreignFinding, missingFinding, tunnelFinding, userSpaceFinding } from "./findings.ts";
import { TunnelKernel } from "./kernel.ts";
import type { Options } from "./options.ts";
import { isWithin } from "./prefix.ts";
import { type FarEnd, findFarEnds, type OwnEnd, TYPE } from "./tunnel.ts";
import { ViciClient } from "./vici/client.ts";

/** Bytes that a tunnel adds to a packet at most: outer IPv4 20, ESP 8, IV 16, padding and trailer 17, ICV 16. */
const OVERHEAD = 77;
/** UDP header of ESP in UDP (RFC 3948). */
const UDP_OVERHEAD = 8;
/** MTU of the device that charon's own data path has, always in UDP: TUN_DEFAULT_MTU (strongSwan, tun_device.h). */
const USER_SPACE_MTU = 1400;
/** How long the start waits for charon to listen, ms; what comes later is retried. */
const PATIENCE_MS = 5_000;
/** Time between two looks at charon and the kernel, ms: it doubles while tunnels are missing, up to what it is else. */
const SOON_MS = 500;
const LATER_MS = 5_000;
/** A tunnel that takes longer is a finding, ms. */
const LATE_MS = 20_000;

/** What exists once the daemon runs. */
interface Running {
  readonly host: Host;
  readonly charon: CharonService;
  readonly kernel: TunnelKernel;
}

/** Policies and routes in the kernel, keys and connections at charon, both made as the leases say. */
export class IpsecBackend implements ActiveBackend {
  readonly mode = "active";
  /** The whole network is dropped but for what has a tunnel. */
  readonly keepsBlackholes = true;
  readonly keepsPolicies = true;
  readonly #input: ConfigureInput<Options>;
  readonly #network: string;
  #running: Running | undefined;
  #own: OwnEnd | undefined;
  #external: string | undefined;
  #connections: Connections | undefined;
  #inUserSpace = false;
  #fars: readonly FarEnd[] = [];
  #up = 0;
  #down: string | undefined;
  #timer: Timer | undefined;
  #pause = SOON_MS;
  #synced = false;

  constructor(input: ConfigureInput<Options>) {
    this.#input = input;
    this.#network = input.networks.ipv4 ?? "";
  }

  /** Our marked routes lie on the external interface. */
  get devices(): readonly string[] {
    return this.#external === undefined ? [] : [this.#external];
  }

  async prepare(host: Host, { external }: HostFacts): Promise<LeaseData> {
    const search = findCharon(this.#input.flags);
    if (search.found === undefined) {
      const { code, title, text, fix } = missingFinding(search);
      throw new Fault(code, `${title}: ${text}`, { hint: fix });
    }
    this.#external = external.name;
    const kernel = this.#kernelOf(host);
    const inherit = () => void kernel.inherit().catch(() => {});
    const charon = new CharonService(search.found, host, { orphaned: inherit, changed: () => host.wake() });
    this.#running = { host, charon, kernel };
    return { backendType: TYPE };
  }

  async attach({ subnets }: OwnLease, { external }: HostFacts): Promise<{ readonly mtu: number }> {
    const { charon } = this.#opened();
    const { ipv4 } = external;
    if (ipv4 === undefined || subnets.ipv4 === undefined) throw new Error("ipsec needs an IPv4 address");
    this.#own = { address: ipv4, identity: external.publicIP ?? ipv4, subnet: subnets.ipv4 };
    await charon.start(settingsOf(this.#own, this.#input.options));
    const connection = await charon.awaitUp(PATIENCE_MS);
    this.#inUserSpace = connection?.inUserSpace ?? false;
    return { mtu: this.#mtuOn(external) };
  }

  async sync(peers: readonly Peer[], _delta: PeerDelta, { external }: HostFacts): Promise<SyncReport> {
    const { host, charon, kernel } = this.#opened();
    const own = this.#attached();
    const { ends, unusable } = findFarEnds(peers);
    this.#fars = ends;
    this.#synced = true;
    clearTimeout(this.#timer);
    try {
      const refused = await kernel.program(own, external.name, ends, !this.#inUserSpace);
      const connection = await charon.connect();
      const connections = await this.#reopen(connection, own, external.name);
      const unloaded = await connections.load(own, ends);
      const isComplete = await this.#raise(connections, kernel, own);
      this.#down = undefined;
      this.#lookAgain(host, isComplete);
      const failed = ends.flatMap(({ key, subnet }) => {
        const reason = refused.get(subnet) ?? unloaded.get(key);
        return reason === undefined ? [] : [{ key, reason }];
      });
      return { failed, unusable, mtu: this.#mtuOn(external) };
    } catch (error) {
      this.#down = charon.ended ?? (error instanceof Error ? error.message : String(error));
      throw error;
    }
  }

  async health(): Promise<readonly Finding[]> {
    if (!this.#running) return [];
    const late = this.#connections?.downFor(LATE_MS);
    const own = this.#own;
    const keys = own
      ? this.#fars.filter((far) => late?.has(connectionName(own, far))).map(({ key }) => key)
      : [];
    return [
      ...(this.#down === undefined ? [] : [downFinding(this.#down)]),
      ...(this.#down === undefined && this.#running.charon.isForeign ? [foreignFinding()] : []),
      ...(this.#inUserSpace ? [userSpaceFinding()] : []),
      ...(keys.length > 0 ? [tunnelFinding(keys)] : []),
    ];
  }

  describe(): Readonly<Record<string, string>> {
    const pid = this.#running?.charon.pid;
    const isForeign = this.#running?.charon.isForeign ?? true;
    return {
      charon: isForeign ? "run by somebody else" : pid === undefined ? "not running" : `pid ${pid}`,
      packets: this.#inUserSpace ? "moved by charon (kernel-libipsec)" : "moved by the kernel",
      tunnels: `${this.#up} of ${this.#fars.length} up`,
    };
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#running?.charon.leave();
  }

  async cleanup({ dryRun, host }: CleanupOptions): Promise<readonly string[]> {
    if (host === undefined && !this.#synced) {
      clearTimeout(this.#timer);
      // Of a start that failed nothing is left but charon; what the last run made stays, and goes on without us.
      if (!dryRun) await this.#running?.charon.giveUp();
      return [];
    }
    const kernel = this.#running?.kernel ?? (host && this.#kernelOf(host));
    const names = await this.#cleanCharon(dryRun, host);
    if (!dryRun) await this.#running?.charon.end();
    return [...names.map((name) => `connection ${name} of charon`), ...((await kernel?.clean(dryRun)) ?? [])];
  }

  /** What charon has of ours; there need be none. One of ours is ended afterwards, and need not answer. */
  async #cleanCharon(dryRun: boolean, host = this.#running?.host): Promise<readonly string[]> {
    let client: ViciClient;
    try {
      client = await ViciClient.open(SOCKET);
    } catch {
      return [];
    }
    try {
      const connection = { client, inUserSpace: false, isOurs: false };
      return await new Connections(connection, this.#input.options, this.#isInNetwork).clean(dryRun);
    } catch (error) {
      if (host && host.findLasting(noteOf(host)).length > 0) return [];
      throw error;
    } finally {
      client.close();
    }
  }

  #kernelOf({ kernel }: Host): TunnelKernel {
    return new TunnelKernel(kernel, this.#network, this.#input.formerNetworks?.ipv4);
  }

  readonly #isInNetwork = (cidr: string): boolean =>
    [this.#network, this.#input.formerNetworks?.ipv4 ?? ""].some((network) => isWithin(cidr, network));

  /** What a tunnel over this interface carries, bytes. */
  #mtuOn({ mtu }: HostFacts["external"]): number {
    if (this.#inUserSpace) return Math.min(mtu - OVERHEAD - UDP_OVERHEAD, USER_SPACE_MTU);
    return mtu - OVERHEAD - (this.#input.options.UDPEncap ? UDP_OVERHEAD : 0);
  }

  /** The configuration at this connection; a new charon knows nothing yet. */
  async #reopen(connection: Connection, own: OwnEnd, dev: string): Promise<Connections> {
    if (this.#connections?.isAt(connection)) return this.#connections;
    if (connection.inUserSpace !== this.#inUserSpace) {
      this.#inUserSpace = connection.inUserSpace;
      await this.#opened().kernel.program(own, dev, this.#fars, !this.#inUserSpace);
    }
    this.#connections = new Connections(connection, this.#input.options, this.#isInNetwork);
    return this.#connections;
  }

  /** Starts what is not up, and removes states that what is up has replaced. Whether all is up. */
  async #raise(connections: Connections, kernel: TunnelKernel, own: OwnEnd): Promise<boolean> {
    const associations = await connections.raise(own, this.#fars, async () =>
      this.#inUserSpace ? undefined : kernel.spis(),
    );
    const isUp = (far: FarEnd) => associations.get(connectionName(own, far))?.isUp ?? false;
    await kernel.removeStale({
      own: own.address,
      spis: new Set([...associations.values()].flatMap(({ spis }) => spis)),
      peers: new Map(this.#fars.map((far) => [far.address, isUp(far)])),
    });
    this.#up = this.#fars.filter(isUp).length;
    return this.#up === this.#fars.length;
  }

  #lookAgain(host: Host, isComplete: boolean): void {
    if (host.signal.aborted) return;
    this.#pause = isComplete ? SOON_MS : Math.min(this.#pause * 2, LATER_MS);
    this.#timer = setTimeout(() => host.wake(), isComplete ? LATER_MS : this.#pause);
    this.#timer.unref();
  }

  #opened(): Running {
    if (!this.#running) throw new Error("the backend was not prepared");
    return this.#running;
  }

  #attached(): OwnEnd {
    if (!this.#own) throw new Error("the backend was not attached");
    return this.#own;
  }
}
