import type { Host } from "flannel/sdk";
import type { Commands } from "./command.ts";
import { isSame, type Memory, type RememberedPeer } from "./memory.ts";

/** After this time a sync starts no further command, ms: it has to end within the 300 s of plugin.json. */
const SYNC_BUDGET_MS = 150_000;

/** A command that failed, as core shows it. */
interface Failed {
  readonly key: string;
  readonly reason: string;
}

/** Runs SubnetAddCommand and SubnetRemoveCommand, one after the other, so that each peer has been told of once. */
export class PeerCommands {
  readonly #commands: Commands;
  readonly #memory: Memory;
  readonly #signal: AbortSignal;
  /** Peers that SubnetAddCommand succeeded for in this run. */
  readonly #added = new Set<string>();

  constructor(commands: Commands, memory: Memory, { signal }: Host) {
    this.#commands = commands;
    this.#memory = memory;
    this.#signal = signal;
  }

  /** Keys of the peers that would get a SubnetRemoveCommand. */
  get remembered(): readonly string[] {
    return this.#commands.has("SubnetRemoveCommand") ? [...this.#memory.peers.keys()] : [];
  }

  /**
   * Makes `wanted` so: removes who is gone, adds who is new, both in turn for who changed; who is in place already is
   * left alone. Returns what failed, to be tried again. Throws when the state file cannot be written.
   */
  async follow(wanted: ReadonlyMap<string, RememberedPeer>): Promise<readonly Failed[]> {
    const { peers } = this.#memory;
    const gone = [...peers.keys()].filter((key) => !wanted.has(key));
    const due = [...wanted].filter(([key, peer]) => {
      const known = peers.get(key);
      return !this.#added.has(key) || known === undefined || !isSame(known, peer);
    });
    if (gone.length === 0 && due.length === 0) return [];
    const end = performance.now() + SYNC_BUDGET_MS;
    const failed: Failed[] = [];
    const attempt = async (key: string, step: () => Promise<void>) => {
      try {
        if (this.#signal.aborted) throw new Error("the daemon stops");
        if (performance.now() > end) throw new Error("its turn has not come: other commands take too long");
        await step();
      } catch (error) {
        failed.push({ key, reason: reasonOf(error) });
      }
    };
    // Remembered before it is known to have worked: half of it may have, and the daemon may die meanwhile.
    for (const [key, peer] of due) if (!peers.has(key)) peers.set(key, peer);
    this.#memory.save();
    for (const key of gone) await attempt(key, () => this.#forget(key));
    for (const [key, peer] of due) await attempt(key, () => this.#replace(key, peer));
    this.#memory.save();
    return failed;
  }

  /** SubnetRemoveCommand for all; returns what failed. */
  async removeAll(): Promise<string[]> {
    const problems: string[] = [];
    for (const key of [...this.#memory.peers.keys()]) {
      try {
        await this.#forget(key, true);
      } catch (error) {
        problems.push(`${key}: ${reasonOf(error)}`);
      }
    }
    this.#memory.save();
    return problems;
  }

  async #forget(key: string, final = false): Promise<void> {
    const known = this.#memory.peers.get(key);
    if (known) await this.#run("SubnetRemoveCommand", key, known, final);
    this.#memory.peers.delete(key);
    this.#added.delete(key);
  }

  async #replace(key: string, peer: RememberedPeer): Promise<void> {
    const known = this.#memory.peers.get(key);
    this.#added.delete(key);
    if (known && !isSame(known, peer)) {
      // What is old may be gone already: that must not keep out what is new. The log has it.
      await this.#run("SubnetRemoveCommand", key, known).catch(() => {});
      this.#memory.peers.set(key, peer);
      this.#memory.save();
    }
    await this.#run("SubnetAddCommand", key, peer);
    this.#added.add(key);
  }

  async #run(
    name: "SubnetAddCommand" | "SubnetRemoveCommand",
    key: string,
    { environment, data }: RememberedPeer,
    final = false,
  ): Promise<void> {
    if (!this.#commands.has(name)) return;
    await this.#commands.run({ name, environment, input: data, peer: key, final });
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
