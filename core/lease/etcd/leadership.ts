import type { EtcdClient } from "./client.ts";
import { type Grant, grantLease, renewLease, revokeLease } from "./grant.ts";
import type { Layout } from "./layout.ts";
import { COMPARE } from "./rpc.ts";

export interface LeadershipInput {
  readonly client: EtcdClient;
  readonly layout: Layout;
  /** What the key is called below `<prefix>/leaders/`. */
  readonly task: string;
  /** Written into the key, for people. */
  readonly holder: string;
}

/**
 * An election with one key: whoever creates it leads until the etcd lease on which it hangs runs out. Nobody waits in
 * line; who wants to lead asks again.
 */
export class Leadership {
  readonly #input: LeadershipInput;
  #grant: Grant | undefined;

  constructor(input: LeadershipInput) {
    this.#input = input;
  }

  /**
   * Whether this node leads, from now on for at least `ms` ms. A node that leads already prolongs its term.
   * @throws Fault `ETCD_…`.
   */
  async claim(ms: number, signal: AbortSignal): Promise<boolean> {
    const { client } = this.#input;
    if (this.#grant) {
      const renewed = await renewLease(client, this.#grant.id, signal);
      if (renewed && (await this.#isMine(renewed, signal))) return true;
      this.#grant = undefined;
      // The key was taken away by hand: what else hangs on the etcd lease is nothing.
      if (renewed) await revokeLease(client, renewed.id, signal);
    }
    if ((await this.#holder(signal)) !== undefined) return false;
    return await this.#run(ms, signal);
  }

  async #run(ms: number, signal: AbortSignal): Promise<boolean> {
    const { client, holder } = this.#input;
    const grant = await grantLease(client, ms, signal);
    const key = this.#key();
    const { succeeded } = await client.call(
      "txn",
      {
        compare: [{ key, target: COMPARE.version, result: COMPARE.equal, version: "0" }],
        success: [{ request_put: { key, value: Buffer.from(holder), lease: grant.id } }],
      },
      signal,
    );
    if (!succeeded && !(await this.#isMine(grant, signal))) {
      await revokeLease(client, grant.id, signal);
      return false;
    }
    this.#grant = grant;
    return true;
  }

  async #isMine(grant: Grant, signal: AbortSignal): Promise<boolean> {
    return (await this.#holder(signal)) === grant.id;
  }

  /** The etcd lease on which the key hangs, undefined when nobody leads. */
  async #holder(signal: AbortSignal): Promise<string | undefined> {
    const { kvs } = await this.#input.client.call("range", { key: this.#key() }, signal);
    return kvs[0]?.lease;
  }

  #key(): Buffer {
    return this.#input.layout.leaderOf(this.#input.task);
  }
}
