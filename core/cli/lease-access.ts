import { type NetworkConfigReading, readNetworkConfig } from "../config/network.ts";
import type { LeaseManager } from "../lease/etcd/manage.ts";
import type { ConfigDocument, SubnetRanges } from "../lease/store.ts";
import { toFault } from "../observe/fault.ts";
import type { Log } from "../observe/log.ts";
import { etcdOptions, refuseKubernetes } from "./etcd-options.ts";
import type { Options } from "./options.ts";

/** Time a command waits for etcd altogether, ms; a single request gives up sooner. */
const PATIENCE_MS = 60_000;

/**
 * Gives `work` the leases in etcd and closes the connection afterwards; etcd's client, which is heavy, is imported now.
 * @throws Fault `STORE_UNSUPPORTED`, `ETCD_…`, and what `work` throws.
 */
export async function withLeases<T>(
  options: Options,
  log: Log,
  work: (manager: LeaseManager, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  refuseKubernetes(options);
  const [{ openEtcd }, { Layout }, { LeaseManager }] = await Promise.all([
    import("../lease/etcd/client.ts"),
    import("../lease/etcd/layout.ts"),
    import("../lease/etcd/manage.ts"),
  ]);
  const etcd = etcdOptions(options, log);
  const client = openEtcd(etcd);
  try {
    return await work(new LeaseManager(client, new Layout(etcd.prefix)), AbortSignal.timeout(PATIENCE_MS));
  } finally {
    client.close();
  }
}

/** The network config, or why there is none. */
export type ConfigState =
  | { readonly state: "valid"; readonly document: ConfigDocument; readonly reading: NetworkConfigReading }
  | { readonly state: "missing" }
  | { readonly state: "invalid"; readonly document: ConfigDocument; readonly problem: string };

/** Reads and judges the network config. Throws Fault `ETCD_…`. */
export async function readConfigState(manager: LeaseManager, signal: AbortSignal): Promise<ConfigState> {
  const document = await manager.config(signal);
  if (!document) return { state: "missing" };
  try {
    return { state: "valid", document, reading: readNetworkConfig(document.text, document.source) };
  } catch (error) {
    return { state: "invalid", document, problem: toFault(error, "CONFIG_INVALID").message };
  }
}

/** The ranges that leases must lie in, undefined where no valid config tells. */
export function rangesOf(config: ConfigState): SubnetRanges | undefined {
  if (config.state !== "valid") return undefined;
  const { ipv4, ipv6 } = config.reading.config;
  return { ...(ipv4 ? { ipv4 } : {}), ...(ipv6 ? { ipv6 } : {}) };
}
