import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import * as v from "valibot";
import type { Environment } from "./environment.ts";

const environment = v.record(v.string(), v.string());

/** A peer as SubnetAddCommand was given it. */
const peer = v.object({ environment, data: v.string() });

const memory = v.object({
  /** What the own commands were given. */
  own: environment,
  /** Peers that SubnetAddCommand was run for, whether or not it succeeded, by key. */
  peers: v.record(v.string(), peer),
});

/** A peer as SubnetAddCommand was given it, so that SubnetRemoveCommand can be given the same. */
export type RememberedPeer = v.InferOutput<typeof peer>;

type Remembered = v.InferOutput<typeof memory>;

/**
 * What the commands were run for, kept in a file, so that a peer that vanished while the daemon was down still gets its
 * SubnetRemoveCommand. Without the file nothing is remembered: so after a reboot, when the kernel has forgotten too.
 */
export class Memory {
  readonly path: string;
  own: Environment;
  readonly peers: Map<string, RememberedPeer>;
  /** Whether a run before this one left something to remember. */
  readonly adopted: boolean;
  /** Whether there may be something on the host that the commands made. */
  exists: boolean;
  /** Why the file of the last run could not be used. */
  readonly problem: string | undefined;

  constructor(path: string) {
    this.path = path;
    const { remembered, problem } = read(path);
    this.own = remembered?.own ?? {};
    this.peers = new Map(Object.entries(remembered?.peers ?? {}));
    this.adopted = remembered !== undefined;
    this.exists = this.adopted;
    this.problem = problem;
  }

  /** Writes the file, in one step. Throws the system's error. */
  save(): void {
    const remembered: Remembered = { own: { ...this.own }, peers: Object.fromEntries(this.peers) };
    const temporary = `${this.path}.tmp`;
    writeFileSync(temporary, JSON.stringify(remembered), { mode: 0o600 });
    renameSync(temporary, this.path);
    this.exists = true;
  }

  /** Forgets everything, the file too. */
  clear(): void {
    this.own = {};
    this.peers.clear();
    this.exists = false;
    rmSync(this.path, { force: true });
  }
}

/** Whether two peers would be given to the commands alike. */
export function isSame(a: RememberedPeer, b: RememberedPeer): boolean {
  return a.data === b.data && isDeepStrictEqual(a.environment, b.environment);
}

function read(path: string): { readonly remembered?: Remembered; readonly problem?: string } {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as { code?: unknown }).code === "ENOENT") return {};
    return { problem: error instanceof Error ? error.message : String(error) };
  }
  try {
    return { remembered: v.parse(memory, JSON.parse(text)) };
  } catch {
    return { problem: `${path} is not what flanneld wrote` };
  }
}
