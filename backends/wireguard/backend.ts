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
  PeerDelta,
  SyncReport,
  WireguardEndpoint,
  WireguardPeerChange,
  WireguardState,
} from "flannel/sdk";
import { findLeft, removeLeft } from "./cleanup.ts";
import { ensureDevice, type OpenDevice } from "./device.ts";
import { type Device, devicesOf, familiesOf, podMtu } from "./devices.ts";
import { diffPeers } from "./difference.ts";
import { cloneFinding, keyFindings, userspaceFinding } from "./findings.ts";
import { Hearing } from "./hearing.ts";
import { keepKey, keyPlaces, type PrivateKey } from "./key-file.ts";
import { ensureGuards, ensureLayout, removeGuards } from "./layout.ts";
import type { Options } from "./options.ts";
import { watchPeers } from "./peer-watch.ts";
import { type PeerData, planPeers, TYPE, type WantedPeer } from "./peers.ts";

/** What `prepare` was given and found. */
interface Run {
  readonly host: Host;
  /** Whether devices or guards were there before: an earlier run's, whose traffic goes on. */
  readonly adopted: boolean;
  /** Ends the looks at the peers. */
  readonly endWatch: () => void;
}

/** WireGuard between the hosts; every call compares the whole and writes only what differs. */
export class WireguardBackend implements ActiveBackend {
  readonly mode = "active";
  readonly cleansUpUnaided = true;
  readonly devices: readonly string[];
  /** Core leaves marked blackholes alone: the guards are among them. */
  readonly keepsBlackholes = true;
  readonly #input: ConfigureInput<Options>;
  readonly #devices: readonly Device[];
  #run: Run | undefined;
  #key: PrivateKey | undefined;
  #lease: OwnLease | undefined;
  #open: readonly OpenDevice[] = [];
  /** Devices on another port than before: so are their peers, for the port is that of the network config. */
  readonly #moved = new Set<string>();
  /** By device: which peers of before the start answer. */
  readonly #hearing = new Map<string, Hearing>();
  /** Peers that were wanted last, by device. */
  #wanted = new Map<string, readonly WantedPeer[]>();
  /** Whether they were all set: core repeats what failed, ever slower. */
  #isSynced = false;
  #clones: readonly string[] = [];

  constructor(input: ConfigureInput<Options>) {
    this.#input = input;
    this.#devices = devicesOf(input.options, input.families);
    this.devices = this.#devices.map(({ name }) => name);
  }

  async prepare(host: Host, facts: HostFacts): Promise<LeaseData> {
    const { devices, guards } = await findLeft(host, this.#input.networks);
    this.#run?.endWatch();
    const endWatch = watchPeers(host, () => this.#differs());
    this.#run = { host, adopted: devices.length + guards.length > 0, endWatch };
    // Before anything is made: from now on nothing for a pod elsewhere leaves in clear.
    await ensureGuards(host.kernel, this.#input.networks);
    const key = keepKey(keyPlaces());
    if (key.origin !== "read") host.log.info(`the private key was ${key.origin}`, { file: key.file });
    this.#key = key;
    await this.#ensure(facts);
    const { ListenPort, ListenPortV6, Mode } = this.#input.options;
    const ports = { ipv4: ListenPort, ipv6: Mode === "separate" ? ListenPortV6 : ListenPort };
    const data = familiesOf(this.#input.families).map((family): [string, PeerData] => [
      family,
      { PublicKey: key.publicKey, Port: ports[family] },
    ]);
    return { backendType: TYPE, ...Object.fromEntries(data) };
  }

  async attach(lease: OwnLease, facts: HostFacts): Promise<{ readonly mtu: number }> {
    this.#lease = lease;
    await this.#ensure(facts);
    const { host } = this.#require();
    const { formerNetworks = {}, options } = this.#input;
    // Last: until now nothing for a pod of those networks left in clear.
    const former = await removeGuards(host.kernel, formerNetworks);
    if (former.length > 0) host.log.info(`removed the guard of a former network: ${former.join(", ")}`);
    return { mtu: podMtu(options, facts) };
  }

  async sync(peers: readonly Peer[], _delta: PeerDelta, facts: HostFacts): Promise<SyncReport> {
    this.#isSynced = false;
    await this.#ensure(facts);
    const { key } = this.#require();
    const { options, networks } = this.#input;
    const plan = planPeers(peers, {
      options,
      devices: this.#devices,
      networks: Object.values(networks),
      ownPublicKey: key.publicKey,
      facts,
    });
    this.#clones = plan.clones;
    for (const open of this.#open) {
      await this.#syncPeers(open, await open.read(), plan.wanted.get(open.name) ?? []);
    }
    this.#isSynced = true;
    return { failed: [], unusable: plan.unusable, mtu: podMtu(options, facts) };
  }

  async health(): Promise<readonly Finding[]> {
    if (!this.#key) return [];
    const inUserspace = this.#open.filter(({ runsIn }) => runsIn === "userspace").map(({ name }) => name);
    return [
      ...keyFindings(this.#key),
      ...(inUserspace.length > 0 ? [userspaceFinding(inUserspace)] : []),
      ...(this.#clones.length > 0 ? [cloneFinding(this.#clones)] : []),
    ];
  }

  /** Device, peers and routes go on without us. */
  async stop(): Promise<void> {
    this.#run?.endWatch();
  }

  /**
   * After a start that failed (no `host` given), what an earlier run left stays: its traffic goes on. `flanneld
   * cleanup` removes everything.
   */
  async cleanup({ dryRun, host: asked }: CleanupOptions): Promise<readonly string[]> {
    if (!dryRun) this.#run?.endWatch();
    const host = asked ?? this.#run?.host;
    if (!host || (!asked && this.#run?.adopted)) return [];
    const left = await findLeft(host, this.#input.networks, asked && keyPlaces());
    if (!dryRun) await removeLeft(host, left);
    return left.lines;
  }

  /** Guards, devices with key, port and MTU, and what lies on them. */
  async #ensure(facts: HostFacts): Promise<void> {
    const { host, key } = this.#require();
    const { options, networks, formerNetworks = {} } = this.#input;
    const mtu = podMtu(options, facts);
    await ensureGuards(host.kernel, networks);
    const open: OpenDevice[] = [];
    for (const device of this.#devices) {
      const opened = await ensureDevice(host, { device, mtu, key });
      open.push(opened);
      // A new device knows no peers: what was wanted from the old one says nothing.
      if (opened.made) {
        this.#wanted.delete(device.name);
        this.#hearing.delete(device.name);
      }
      if (opened.moved) this.#moved.add(device.name);
      if (!this.#lease) continue;
      const layout = { networks, formerNetworks, subnets: this.#lease.subnets };
      const changed = await ensureLayout(host.kernel, device, layout);
      if (changed.length > 0) host.log.info(`set on ${device.name}: ${changed.join(", ")}`);
    }
    this.#open = open;
  }

  async #syncPeers(open: OpenDevice, state: WireguardState, wanted: readonly WantedPeer[]): Promise<void> {
    const { host } = this.#require();
    const changes = this.#diff(open, state, wanted);
    if (changes.length > 0) {
      await open.write({ peers: changes });
      const removed = changes.filter(({ remove }) => remove).length;
      host.log.info(`peers of ${open.name}`, {
        set: changes.length - removed,
        removed,
        peers: wanted.length,
      });
    }
    this.#wanted.set(open.name, wanted);
    this.#moved.delete(open.name);
  }

  #diff(
    open: OpenDevice,
    state: WireguardState,
    wanted: readonly WantedPeer[],
  ): readonly WireguardPeerChange[] {
    const before = this.#wanted.get(open.name) ?? [];
    const endpoints = new Map<string, WireguardEndpoint>();
    for (const { publicKey, endpoint } of before) endpoints.set(publicKey, endpoint);
    const hearing = this.#hearing.get(open.name) ?? new Hearing();
    this.#hearing.set(open.name, hearing);
    const { PersistentKeepaliveInterval: keepalive } = this.#input.options;
    const silent = this.#moved.has(open.name)
      ? new Set(state.peers.map(({ publicKey }) => publicKey))
      : hearing.findSilent(state, performance.now() / 1000, keepalive);
    return diffPeers(wanted, state, { endpoints, silent, now: Date.now() / 1000 });
  }

  /** Whether somebody has changed peers since they were made as wanted. */
  async #differs(): Promise<boolean> {
    if (!this.#isSynced) return false;
    for (const open of this.#open) {
      const wanted = this.#wanted.get(open.name);
      if (wanted && this.#diff(open, await open.read(), wanted).length > 0) return true;
    }
    return false;
  }

  #require(): { readonly host: Host; readonly key: PrivateKey } {
    if (!this.#run || !this.#key) throw new Error("prepare() was not called");
    return { host: this.#run.host, key: this.#key };
  }
}
