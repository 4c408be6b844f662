import { randomBytes } from "node:crypto";
import { Fault } from "../../observe/fault.ts";
import { type ClockReading, readClocks } from "../renewal.ts";
import type { EtcdClient } from "./client.ts";

/** An etcd lease (etcd's word for a time to live that keys hang on). */
export interface Grant {
  /** Decimal 64-bit id. */
  readonly id: string;
  /** Granted time to live, ms; etcd raises what is below its minimum. */
  readonly ttlMs: number;
  /** The clocks just before the call that granted or renewed it. */
  readonly confirmed: ClockReading;
}

/** Asks for a new etcd lease. The id is ours, so that a repeated call grants nothing twice. */
export async function grantLease(client: EtcdClient, ttlMs: number, signal: AbortSignal): Promise<Grant> {
  const confirmed = readClocks();
  const id = randomLeaseId();
  try {
    const { TTL } = await client.call("leaseGrant", { ID: id, TTL: Math.ceil(ttlMs / 1000) }, signal);
    return { id, ttlMs: Number(TTL) * 1000, confirmed };
  } catch (error) {
    // The first try was done although its answer was lost (etcd lease/lessor.go, ErrLeaseExists).
    if (!(error instanceof Fault && /lease already exists/.test(error.message))) throw error;
    const ttl = await client.keepAlive(id, signal);
    return { id, ttlMs: ttl * 1000, confirmed };
  }
}

/** Renews an etcd lease; undefined when etcd no longer has it. */
export async function renewLease(
  client: EtcdClient,
  id: string,
  signal: AbortSignal,
): Promise<Grant | undefined> {
  const confirmed = readClocks();
  const ttl = await client.keepAlive(id, signal);
  return ttl > 0 ? { id, ttlMs: ttl * 1000, confirmed } : undefined;
}

/** Gives an etcd lease back, and with it every key that hangs on it. One that is gone already is fine. */
export async function revokeLease(client: EtcdClient, id: string, signal?: AbortSignal): Promise<void> {
  try {
    await client.call("leaseRevoke", { ID: id }, signal);
  } catch (error) {
    if (!(error instanceof Fault && error.code === "ETCD_LEASE_GONE")) throw error;
  }
}

/** Positive and not zero, as etcd wants ids. */
function randomLeaseId(): string {
  return ((randomBytes(8).readBigUInt64BE() & 0x7fff_ffff_ffff_ffffn) | 1n).toString();
}
