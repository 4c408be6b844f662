import { type Association, readAssociations, readCallers } from "./associations.ts";
import type { Connection } from "./charon/service.ts";
import {
  childName,
  connectionMessage,
  connectionName,
  KEY_ID,
  sharedKeyMessage,
  subnetsOfName,
} from "./connection.ts";
import type { Options } from "./options.ts";
import type { FarEnd, OwnEnd } from "./tunnel.ts";
import { listOf, type ViciMessage } from "./vici/message.ts";

/** How long the far end may take to start a tunnel that is its turn to start, ms. */
const TURN_MS = 2_000;

/** How long one that the far end has begun is waited for: slow machines take seconds to find a key, ms. */
const CALL_MS = 15_000;

/** Pauses between two starts of a tunnel that fails at once, ms: they grow. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;

/** A connection that has no tunnel. */
interface Down {
  readonly since: number;
  /** Not started again before. */
  readonly next: number;
  /** Pause after the next start, ms. */
  readonly pause: number;
}

/** The configuration of one charon: its key and its connections, made as wanted through one VICI connection. */
export class Connections {
  readonly #connection: Connection;
  readonly #options: Options;
  readonly #isInNetwork: (cidr: string) => boolean;
  /** Connections of ours that charon has; undefined before it was asked. */
  #known: Set<string> | undefined;
  /** Those of them that were loaded by us, as they are wanted now. */
  readonly #loaded = new Set<string>();
  #owners = "";
  /** Connections whose tunnel was seen without states, by name. */
  readonly #lost = new Set<string>();
  /** Connections without a tunnel, by name. */
  readonly #down = new Map<string, Down>();

  constructor(connection: Connection, options: Options, isInNetwork: (cidr: string) => boolean) {
    this.#connection = connection;
    this.#options = options;
    this.#isInNetwork = isInNetwork;
  }

  /** Whether this is the configuration at that connection. */
  isAt(connection: Connection): boolean {
    return this.#connection === connection;
  }

  /** Loads what is missing, unloads what is too much. Returns why, by key of the peer, charon refuses something. */
  async load(own: OwnEnd, fars: readonly FarEnd[]): Promise<ReadonlyMap<string, string>> {
    const { client, inUserSpace } = this.#connection;
    this.#known ??= await this.#find();
    await this.#loadKey(own, fars);
    const refused = new Map<string, string>();
    const wanted = new Map(fars.map((far) => [connectionName(own, far), far]));
    for (const [name, far] of wanted) {
      if (this.#loaded.has(name)) continue;
      try {
        await client.request("load-conn", connectionMessage(own, far, this.#options, inUserSpace));
        this.#known.add(name);
        this.#loaded.add(name);
      } catch (error) {
        if (!client.isOpen) throw error;
        refused.set(far.key, error instanceof Error ? error.message : String(error));
      }
    }
    for (const name of this.#known) if (!wanted.has(name)) await this.#unload(name);
    return refused;
  }

  /**
   * Starts tunnels that are not up: at once where the own address is the lower one, else when the far end has let its
   * turn pass, so that not both start one at the same moment. One whose states somebody has deleted is ended first: charon
   * does not notice. `readSpis` tells the SPIs that the kernel has, undefined where charon moves the packets itself.
   * Returns how all stand, by name.
   */
  async raise(
    own: OwnEnd,
    fars: readonly FarEnd[],
    readSpis: () => Promise<ReadonlySet<number> | undefined>,
    now = performance.now(),
  ): Promise<ReadonlyMap<string, Association>> {
    const { client } = this.#connection;
    const events = await client.list("list-sas", "list-sa");
    const associations = readAssociations(events, await readSpis());
    const callers = readCallers(events);
    for (const far of fars) {
      const name = connectionName(own, far);
      const association = associations.get(name);
      if (association?.isUp) {
        this.#down.delete(name);
        this.#lost.delete(name);
        continue;
      }
      const turn = comesBefore(own.identity, far.address) ? 0 : TURN_MS;
      const down = this.#down.get(name) ?? { since: now, next: now + turn, pause: FIRST_PAUSE_MS };
      this.#down.set(name, down);
      const isCalled = callers.has(far.address) && now - down.since < CALL_MS;
      const isTried = association?.isTried || isCalled;
      if (association?.isLost) await this.#end(name);
      else if (!isTried && now >= down.next && this.#loaded.has(name)) await this.#start(own, far, now);
    }
    return associations;
  }

  /** Not waited for: a far end that is away is tried for ever. The next start, if need be, comes after a longer pause. */
  async #start(own: OwnEnd, far: FarEnd, now: number): Promise<void> {
    const name = connectionName(own, far);
    const down = this.#down.get(name);
    if (down) {
      const pause = Math.min(down.pause * 2, LONGEST_PAUSE_MS);
      this.#down.set(name, { since: down.since, next: now + down.pause * (1 + Math.random()), pause });
    }
    const { client } = this.#connection;
    await client.request("initiate", { child: childName(own, far), ike: name, timeout: "-1" });
  }

  /** Connections without a tunnel for at least so long, ms. */
  downFor(ms: number, now = performance.now()): ReadonlySet<string> {
    return new Set([...this.#down].filter(([, { since }]) => now - since >= ms).map(([name]) => name));
  }

  /** Takes all of ours away, tunnels too; returns their names. */
  async clean(dryRun: boolean): Promise<readonly string[]> {
    const { client } = this.#connection;
    const names = listOf(await client.request("get-conns"), "conns").filter((name) => this.#isOurs(name));
    if (dryRun) return names;
    this.#known ??= new Set(names);
    for (const name of names) await this.#unload(name);
    await client.request("unload-shared", { id: KEY_ID });
    return names;
  }

  async #loadKey(own: OwnEnd, fars: readonly FarEnd[]): Promise<void> {
    const message = sharedKeyMessage(own, fars, this.#options.PSK);
    const owners = listOf(message, "owners").join(" ");
    if (owners === this.#owners) return;
    await this.#connection.client.request("load-shared", message);
    this.#owners = owners;
  }

  /** Connections of ours that charon has, or tunnels of; those that are there as they are wanted need no loading. */
  async #find(): Promise<Set<string>> {
    const { client, isOurs } = this.#connection;
    const isMine = (name: string) => this.#isOurs(name);
    const loaded = listOf(await client.request("get-conns"), "conns").filter(isMine);
    if (!isOurs) return new Set(loaded);
    for (const name of loaded) this.#loaded.add(name);
    const tunnels = readAssociations(await client.list("list-sas", "list-sa"));
    return new Set([...loaded, ...[...tunnels.keys()].filter(isMine)]);
  }

  /** Ends a tunnel without states that is seen so for the second time: once may be the middle of a change of keys. */
  async #end(name: string): Promise<void> {
    if (this.#lost.has(name)) await this.#terminate(name);
    else this.#lost.add(name);
  }

  async #unload(name: string): Promise<void> {
    await this.#requestIfThere("unload-conn", { name });
    await this.#terminate(name);
    this.#known?.delete(name);
    this.#loaded.delete(name);
    this.#down.delete(name);
  }

  async #terminate(name: string): Promise<void> {
    this.#lost.delete(name);
    await this.#requestIfThere("terminate", { ike: name, force: "yes", timeout: "-1" });
  }

  /** charon refuses to end what is not there. */
  async #requestIfThere(command: string, message: ViciMessage): Promise<void> {
    const { client } = this.#connection;
    try {
      await client.request(command, message);
    } catch (error) {
      if (!client.isOpen) throw error;
    }
  }

  #isOurs(name: string): boolean {
    return subnetsOfName(name)?.some(this.#isInNetwork) ?? false;
  }
}

function comesBefore(own: string, far: string): boolean {
  return toNumber(own) < toNumber(far);
}

function toNumber(address: string): number {
  return address.split(".").reduce((sum, byte) => sum * 256 + Number(byte), 0);
}
