import type { IKeyValue, IRequestOp } from "etcd3";
import type { StoredLease } from "../entry.ts";
import type { EtcdClient } from "./client.ts";
import type { Layout } from "./layout.ts";
import { decodeStored, type StoredJunk } from "./list.ts";
import { COMPARE } from "./rpc.ts";

/**
 * The writes to subnet keys. Every one is a transaction that compares first: a lost comparison is a result
 * (`undefined` or `exists`), never an overwrite.
 */
export class SubnetWriter {
  readonly #client: EtcdClient;
  readonly #layout: Layout;

  constructor(client: EtcdClient, layout: Layout) {
    this.#client = client;
    this.#layout = layout;
  }

  /** Reads one key (linearizable), undefined when it is absent. */
  async read(key: string, signal: AbortSignal): Promise<StoredLease | StoredJunk | undefined> {
    const { kvs } = await this.#client.call("range", { key: this.#layout.keyOf(key) }, signal);
    return kvs[0] && decodeStored(this.#layout, kvs[0]);
  }

  /**
   * Creates a key under an etcd lease if it is absent, and deletes `remove` with it, all or nothing. The answer tells
   * which keys were created after `since`, the revision of the list the choice was made from: these may overlap.
   */
  async create(
    key: string,
    value: string,
    leaseId: string,
    since: number,
    remove: readonly StoredLease[],
    signal: AbortSignal,
  ): Promise<CreateResult> {
    const fullKey = this.#layout.keyOf(key);
    const createdSince = {
      key: this.#layout.subnetsFrom,
      range_end: this.#layout.subnetsTo,
      min_create_revision: since + 1,
    };
    const result = await this.#client.call(
      "txn",
      {
        compare: [
          { key: fullKey, target: COMPARE.version, result: COMPARE.equal, version: "0" },
          ...remove.map((lease) => this.#unchanged(lease)),
        ],
        success: [
          ...remove.map((lease) => this.#deletion(lease)),
          { request_put: { key: fullKey, value: Buffer.from(value), lease: leaseId } },
          { request_range: createdSince },
        ],
        failure: [{ request_range: { key: fullKey } }],
      },
      signal,
    );
    const kvs = result.responses.at(-1)?.response_range?.kvs ?? [];
    if (result.succeeded) {
      return { outcome: "created", revision: Number(result.header.revision), newer: this.#decode(kvs) };
    }
    const [holder] = kvs;
    if (holder?.lease !== leaseId) return { outcome: "exists" };
    // Our own earlier try, whose answer was lost.
    const newer = await this.#client.call("range", createdSince, signal);
    return { outcome: "created", revision: Number(holder.mod_revision), newer: this.#decode(newer.kvs) };
  }

  /**
   * Rewrites a key that stands at `found.modRevision`, and deletes `remove` with it. The key keeps its etcd lease (or
   * its lack of one) unless another is given. Returns the new mod revision, undefined when the key was changed.
   */
  async rewrite(
    found: Pick<StoredLease, "key" | "modRevision">,
    value: string,
    leaseId: string | undefined,
    remove: readonly StoredLease[],
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const key = this.#layout.keyOf(found.key);
    const put = {
      key,
      value: Buffer.from(value),
      ...(leaseId === undefined ? { ignore_lease: true } : { lease: leaseId }),
    };
    const result = await this.#client.call(
      "txn",
      {
        compare: [this.#unchanged(found), ...remove.map((lease) => this.#unchanged(lease))],
        success: [...remove.map((lease) => this.#deletion(lease)), { request_put: put }],
      },
      signal,
    );
    return result.succeeded ? Number(result.header.revision) : undefined;
  }

  /** Deletes a key that stands at `found.modRevision`; false when it was changed or is gone. */
  async remove(found: Pick<StoredLease, "key" | "modRevision">, signal: AbortSignal): Promise<boolean> {
    const result = await this.#client.call(
      "txn",
      { compare: [this.#unchanged(found)], success: [this.#deletion(found)] },
      signal,
    );
    return result.succeeded;
  }

  #unchanged({ key, modRevision }: Pick<StoredLease, "key" | "modRevision">): object {
    return {
      key: this.#layout.keyOf(key),
      target: COMPARE.mod,
      result: COMPARE.equal,
      mod_revision: String(modRevision),
    };
  }

  #deletion({ key }: Pick<StoredLease, "key">): IRequestOp {
    return { request_delete_range: { key: this.#layout.keyOf(key) } };
  }

  #decode(kvs: readonly IKeyValue[]): readonly (StoredLease | StoredJunk)[] {
    return kvs.map((kv) => decodeStored(this.#layout, kv));
  }
}

/** What came of a creation. */
export type CreateResult =
  | {
      readonly outcome: "created";
      /** Mod (and create) revision of the new key. */
      readonly revision: number;
      /** Entries created after the list, our own included. */
      readonly newer: readonly (StoredLease | StoredJunk)[];
    }
  | { readonly outcome: "exists" };
