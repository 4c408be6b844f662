import { PREFIX } from "../lab/cluster.ts";
import type { EtcdServer } from "../lab/etcd.ts";

/** Cluster network of all benchmarks: room for 65,536 nodes with a /24 each. */
export const NETWORK = "10.0.0.0/8";

/** The range daemons allocate from; peers that join later ({@link joiner}) lie above it. */
export const CONFIG = {
  Network: NETWORK,
  SubnetLen: 24,
  SubnetMin: "10.1.0.0",
  SubnetMax: "10.239.255.0",
  Backend: { Type: "vxlan" },
};

/** A lease as flannel writes it. */
export interface PeerLease {
  /** CIDR text of the subnet. */
  readonly subnet: string;
  /** Below `<prefix>/subnets/`. */
  readonly key: string;
  readonly value: string;
}

/** Operations in one transaction; etcd has to be started with `--max-txn-ops` of at least this. */
export const TXN_OPERATIONS = 1_000;

/** Time to live of the peers' leases, seconds: flannel's. */
const TTL = 86_400;

/** Peer number `n`, 0–49,999. */
export function peer(n: number): PeerLease {
  return lease(n, 16 + Math.floor(n / 256));
}

/** Peer number `n`, 0–255, outside of what {@link peer} and the daemons use. */
export function joiner(n: number): PeerLease {
  return lease(60_000 + n, 250);
}

function lease(n: number, second: number): PeerLease {
  const third = n % 256;
  const hex = (value: number) => value.toString(16).padStart(2, "0");
  const value = {
    // Not on the underlay's segment, and unique.
    PublicIP: `172.${16 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`,
    PublicIPv6: null,
    BackendType: "vxlan",
    BackendData: { VNI: 1, VtepMAC: `0a:58:00:${hex(n >> 16)}:${hex((n >> 8) & 255)}:${hex(n & 255)}` },
  };
  return {
    subnet: `10.${second}.${third}.0/24`,
    key: `10.${second}.${third}.0-24`,
    value: JSON.stringify(value),
  };
}

/**
 * Writes the config and `count` peers. They hang on one etcd lease, so that a reader that asks for every key's time
 * to live gets the answer it would get from a cluster of flannels.
 */
export async function fill(etcd: EtcdServer, count: number): Promise<void> {
  await etcd.ctl("put", `${PREFIX}/config`, JSON.stringify(CONFIG));
  await putPeers(etcd, 0, count);
}

/** Writes peers number `first` to `first + count - 1`, {@link TXN_OPERATIONS} at a time. */
export async function putPeers(etcd: EtcdServer, first: number, count: number): Promise<void> {
  const id = /lease ([0-9a-f]+) granted/.exec(await etcd.ctl("lease", "grant", String(TTL)))?.[1];
  if (id === undefined) throw new Error("etcd granted no lease");
  for (let done = 0; done < count; done += TXN_OPERATIONS) {
    const peers = Array.from({ length: Math.min(TXN_OPERATIONS, count - done) }, (_, n) =>
      peer(first + done + n),
    );
    await etcd.txn(
      peers.map(({ key, value }) => `put --lease=${id} ${PREFIX}/subnets/${key} ${JSON.stringify(value)}`),
    );
  }
}
