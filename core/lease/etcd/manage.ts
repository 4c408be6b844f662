import { Fault } from "../../observe/fault.ts";
import type { LeaseInventory, TimeLeft } from "../audit.ts";
import { type BadEntry, isBad, isReservation, type StoredLease } from "../entry.ts";
import { encodeKey } from "../key.ts";
import type { LeaseAttrs, Subnets } from "../lease.ts";
import { overlapsAny } from "../overlap.ts";
import type { ConfigDocument } from "../store.ts";
import { encodeValue } from "../value.ts";
import type { EtcdClient } from "./client.ts";
import type { Layout } from "./layout.ts";
import { decodeStored, type Listing, listSubnets } from "./list.ts";
import { COMPARE } from "./rpc.ts";
import { SubnetWriter } from "./write.ts";

/** Requests under way at a time when the time left of every lease is asked for. */
const WIDTH = 32;
/** Lost comparisons in a row after which something else keeps writing. */
const MOST_RACES = 5;

/** What became of a reservation that was asked for. */
export type Reserved = "created" | "converted" | "existed";

/** The leases in etcd as an operator works on them; the daemon's own way is core/lease/etcd/store.ts. */
export class LeaseManager {
  readonly #client: EtcdClient;
  readonly #layout: Layout;
  readonly #writer: SubnetWriter;

  constructor(client: EtcdClient, layout: Layout) {
    this.#client = client;
    this.#layout = layout;
    this.#writer = new SubnetWriter(client, layout);
  }

  /** The network config, undefined when there is none. Throws Fault `ETCD_…`. */
  async config(signal: AbortSignal): Promise<ConfigDocument | undefined> {
    const { kvs } = await this.#client.call("range", { key: Buffer.from(this.#layout.config) }, signal);
    const [kv] = kvs;
    if (!kv) return undefined;
    const source = `etcd key ${this.#layout.config}`;
    return { text: kv.value.toString(), source, revision: Number(kv.mod_revision) };
  }

  /** All leases at one revision. */
  list(signal: AbortSignal): Promise<Listing> {
    return listSubnets(this.#client, this.#layout, signal);
  }

  /** All leases with their time left, for which each is asked: nothing for a daemon to do. */
  async inventory(signal: AbortSignal): Promise<LeaseInventory> {
    const { leases, bad } = await this.list(signal);
    const ids = [...new Set(leases.filter((lease) => !isReservation(lease)).map(({ leaseId }) => leaseId))];
    const times = new Map<string, TimeLeft>();
    const ask = async () => {
      for (let id = ids.pop(); id !== undefined; id = ids.pop()) {
        const { TTL, grantedTTL } = await this.#client.call("leaseTimeToLive", { ID: id }, signal);
        // -1: it expired since the list was made (etcd api/etcdserverpb/rpc.proto).
        if (Number(TTL) >= 0) times.set(id, { left: Number(TTL), granted: Number(grantedTTL) });
      }
    };
    await Promise.all(Array.from({ length: WIDTH }, ask));
    return { leases, bad, times };
  }

  /**
   * Makes a key without etcd lease for a node. `force` also turns a lease that this node holds into one.
   * @throws Fault `LEASE_TAKEN` when others have the subnet, `LEASE_HELD` without `force`, `LEASE_RACE`, `ETCD_…`.
   */
  async reserve(subnets: Subnets, owner: LeaseAttrs, force: boolean, signal: AbortSignal): Promise<Reserved> {
    const key = encodeKey(subnets);
    for (let tries = 0; tries < MOST_RACES; tries++) {
      const { leases, bad, revision } = await this.list(signal);
      const found = leases.find((lease) => lease.key === key);
      const rival = [...leases, ...bad].find(
        (entry) => entry !== found && entry.subnets && overlapsAny(entry.subnets, subnets),
      );
      if (rival) throw takenFault(key, rival);
      if (!found) {
        if (await this.#create(key, encodeValue(owner), subnets, revision, signal)) return "created";
        continue;
      }
      if (!belongsTo(found.attrs, owner)) throw takenFault(key, found);
      if (isReservation(found)) return "existed";
      if (!force) throw heldFault(found);
      const written = await this.#writer.rewrite(found, encodeValue(found.attrs), "0", [], signal);
      if (written !== undefined) return "converted";
    }
    throw raceFault(key);
  }

  /**
   * Asks etcd whether leases may be written, with a transaction whose comparison never holds: permissions are judged
   * all the same (etcd server/etcdserver/apply, checkTxnAuth). Writes nothing. Throws Fault `ETCD_PERMISSION`, `ETCD_…`.
   */
  async rehearseWrite(signal: AbortSignal): Promise<void> {
    const key = this.#layout.keyOf(".check");
    const never = { key, target: COMPARE.version, result: COMPARE.less, version: "0" };
    const put = { request_put: { key, value: Buffer.alloc(0) } };
    await this.#client.call("txn", { compare: [never], success: [put] }, signal);
  }

  /** Deletes an entry as it was read; false when it changed or went meanwhile. */
  remove(
    entry: { readonly key: string; readonly modRevision: number },
    signal: AbortSignal,
  ): Promise<boolean> {
    return this.#writer.remove(entry, signal);
  }

  /** Creates the key without etcd lease; undone, and false, when a lease that overlaps it came about meanwhile. */
  async #create(
    key: string,
    value: string,
    subnets: Subnets,
    since: number,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { subnetsFrom, subnetsTo } = this.#layout;
    const fullKey = this.#layout.keyOf(key);
    const result = await this.#client.call(
      "txn",
      {
        compare: [{ key: fullKey, target: COMPARE.version, result: COMPARE.equal, version: "0" }],
        success: [
          { request_put: { key: fullKey, value: Buffer.from(value) } },
          { request_range: { key: subnetsFrom, range_end: subnetsTo, min_create_revision: since + 1 } },
        ],
      },
      signal,
    );
    if (!result.succeeded) return false;
    const newer = result.responses.at(-1)?.response_range?.kvs ?? [];
    const rival = newer
      .map((kv) => decodeStored(this.#layout, kv))
      .find((entry) => entry.key !== key && entry.subnets && overlapsAny(entry.subnets, subnets));
    if (!rival) return true;
    await this.remove({ key, modRevision: Number(result.header.revision) }, signal);
    return false;
  }
}

/** Whether a stored value is of the node that `owner` names, by id or by address. */
function belongsTo(attrs: LeaseAttrs, owner: LeaseAttrs): boolean {
  if (owner.nodeId !== undefined) return attrs.nodeId === owner.nodeId;
  if (owner.publicIP !== undefined) return attrs.publicIP === owner.publicIP;
  return attrs.publicIPv6 === owner.publicIPv6;
}

function takenFault(key: string, holder: StoredLease | BadEntry): Fault {
  const owner = isBad(holder)
    ? `a key with a value that cannot be read (${holder.reason})`
    : (holder.attrs.nodeId ?? holder.attrs.publicIP ?? holder.attrs.publicIPv6);
  return new Fault("LEASE_TAKEN", `subnet ${key} cannot be reserved: ${holder.key} belongs to ${owner}`, {
    hint: "Choose another subnet, or release that one first: flanneld leases ls shows all.",
  });
}

function heldFault({ key }: StoredLease): Fault {
  return new Fault("LEASE_HELD", `that node holds ${key} already, as a lease that expires`, {
    hint: "With --force it loses its expiry and becomes a reservation; the node goes on undisturbed.",
  });
}

function raceFault(key: string): Fault {
  return new Fault("LEASE_RACE", `the keys around ${key} change all the time`, { hint: "Try again." });
}
