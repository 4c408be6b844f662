import {
  type ActiveBackend,
  type CleanupOptions,
  type ConfigureInput,
  Fault,
  type Host,
  type HostFacts,
  type LeaseData,
  type OwnLease,
  type Peer,
  type PeerDelta,
  type SyncReport,
} from "flannel/sdk";
import { Commands } from "./command.ts";
import { type Environment, ownEnvironment, peerData, peerEnvironment } from "./environment.ts";
import { Memory } from "./memory.ts";
import type { CommandName, Options } from "./options.ts";
import { PeerCommands } from "./peers.ts";

/** Value of `BackendType` in the leases of this backend. */
export const TYPE = "extension";

/** Name of the file with what is remembered, beside the subnet file. */
const STATE = "extension";

/** Added to the time a command may take at the stop: to write the file, to log. */
const STOP_MARGIN_MS = 500;

/** What exists once the daemon runs. */
interface Running {
  readonly commands: Commands;
  readonly memory: Memory;
  readonly peers: PeerCommands;
}

/** Runs the operator's commands: at start, for every peer that comes, changes or goes, and at the stop. */
export class ExtensionBackend implements ActiveBackend {
  readonly mode = "active";
  readonly stopPatience?: number;
  /** What the commands make is not named as our devices are, nor marked as our routes. */
  readonly devices: readonly string[] = [];
  readonly #input: ConfigureInput<Options>;
  #running: Running | undefined;
  #synced = false;

  constructor(input: ConfigureInput<Options>) {
    this.#input = input;
    const { ShutdownCommand, Timeout } = input.options;
    if (ShutdownCommand.trim() !== "") this.stopPatience = Timeout * 1_000 + STOP_MARGIN_MS;
  }

  /** PreStartupCommand; what it prints is what peers get on standard input. */
  async prepare(host: Host, { external }: HostFacts): Promise<LeaseData> {
    const { commands, memory } = this.#open(host);
    if (memory.problem !== undefined) {
      host.log.warn(
        `peers of the last run are not known, so none of them gets its SubnetRemoveCommand: ${memory.problem}`,
      );
    }
    memory.save();
    const { ipv4, ipv6 } = this.#input.families;
    if (!commands.has("PreStartupCommand")) return { backendType: TYPE };
    const data = (await this.#atStart(commands, "PreStartupCommand", { INTERFACE: external.name })).trim();
    return { backendType: TYPE, ...(ipv4 ? { ipv4: data } : {}), ...(ipv6 ? { ipv6: data } : {}) };
  }

  /** PostStartupCommand. */
  async attach(lease: OwnLease, facts: HostFacts): Promise<{ readonly mtu: number }> {
    const { commands, memory } = this.#opened();
    memory.own = ownEnvironment(this.#input.networks, lease.subnets, facts);
    memory.save();
    if (commands.has("PostStartupCommand")) await this.#atStart(commands, "PostStartupCommand", memory.own);
    return { mtu: this.#mtu(facts) };
  }

  async sync(peers: readonly Peer[], _delta: PeerDelta, facts: HostFacts): Promise<SyncReport> {
    const unusable: { key: string; reason: string }[] = [];
    const wanted = new Map<string, { environment: Record<string, string>; data: string }>();
    for (const peer of peers) {
      const data = peerData(peer);
      if (peer.backendType !== TYPE) {
        unusable.push({
          key: peer.key,
          reason: `uses backend "${peer.backendType}", this node uses "${TYPE}"`,
        });
      } else if (data === undefined) {
        unusable.push({ key: peer.key, reason: "has data that is no text" });
      } else {
        wanted.set(peer.key, { environment: { ...peerEnvironment(peer, facts) }, data });
      }
    }
    this.#synced = true;
    return { failed: await this.#opened().peers.follow(wanted), unusable, mtu: this.#mtu(facts) };
  }

  /** ShutdownCommand, where there is one: it takes everything down, so nothing has to be remembered then. */
  async stop(): Promise<void> {
    if (!this.#running) return;
    const { commands, memory } = this.#running;
    if (!memory.exists || !commands.has("ShutdownCommand")) return;
    await this.#shutDown(commands, memory);
    memory.clear();
  }

  /**
   * SubnetRemoveCommand for every peer that is remembered, then ShutdownCommand. Throws an Error with what failed; a
   * peer whose command failed stays remembered.
   */
  async cleanup({ dryRun, host }: CleanupOptions): Promise<readonly string[]> {
    const running = this.#running ?? (host && this.#open(host));
    if (!running) return [];
    const { commands, memory, peers } = running;
    // After a failed start what the last run made stays: its data path goes on without the daemon.
    const isUndoing = host === undefined && !this.#synced;
    if (!memory.exists || (isUndoing && memory.adopted)) return [];
    const steps = [
      ...peers.remembered.map((key) => `peer ${key}: SubnetRemoveCommand`),
      ...(commands.has("ShutdownCommand") ? ["what ShutdownCommand removes"] : []),
    ];
    if (dryRun) return steps;
    const problems = await peers.removeAll();
    try {
      if (commands.has("ShutdownCommand")) await this.#shutDown(commands, memory);
    } catch (error) {
      problems.push(error instanceof Error ? error.message : String(error));
    }
    if (problems.length > 0) throw new Error(problems.join("; "));
    memory.clear();
    return steps;
  }

  #mtu({ external }: HostFacts): number {
    return this.#input.options.MTU || external.mtu;
  }

  #shutDown(commands: Commands, memory: Memory): Promise<string> {
    return commands.run({ name: "ShutdownCommand", environment: memory.own, final: true });
  }

  async #atStart(commands: Commands, name: CommandName, environment: Environment): Promise<string> {
    try {
      return await commands.run({ name, environment });
    } catch (error) {
      throw new Fault("EXTENSION_COMMAND", error instanceof Error ? error.message : String(error), {
        hint: `Try the command by hand; \`Backend.${name}\` of the network config holds it.`,
        cause: error,
      });
    }
  }

  #open(host: Host): Running {
    const commands = new Commands(this.#input.options, host);
    const memory = new Memory(host.statePath(STATE));
    this.#running = { commands, memory, peers: new PeerCommands(commands, memory, host) };
    return this.#running;
  }

  #opened(): Running {
    if (!this.#running) throw new Error("the backend was not prepared");
    return this.#running;
  }
}
