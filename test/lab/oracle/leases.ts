import type { EtcdServer } from "../etcd.ts";

/** One subnet key as etcd has it, read with none of the daemon's code. */
export interface StoredLease {
  /** Key without the prefix. */
  readonly key: string;
  readonly ipv4?: StoredFamily;
  readonly ipv6?: StoredFamily;
  readonly backendType: string;
}

export interface StoredFamily {
  /** CIDR text. */
  readonly subnet: string;
  readonly publicIP?: string;
  /** From the vxlan backend's data. */
  readonly mac?: string;
}

/** The part of the network config that decides what hosts must look like. */
export interface StoredConfig {
  readonly network?: string;
  readonly ipv6Network?: string;
  /** Lower-case backend type. */
  readonly type: string;
  readonly vni: number;
  readonly directRouting: boolean;
  readonly enableIPv4: boolean;
  readonly enableIPv6: boolean;
}

/** Everything below `prefix`. Subnet keys that are not leases (junk) are left out. */
export async function readStore(
  etcd: EtcdServer,
  prefix = "/coreos.com/network",
): Promise<{ readonly config: StoredConfig; readonly leases: readonly StoredLease[] }> {
  const text = await etcd.ctl("get", `${prefix}/`, "--prefix", "-w", "json");
  const { kvs = [] } = JSON.parse(text) as { kvs?: { key: string; value?: string }[] };
  const entries = new Map(kvs.map((kv) => [decode(kv.key), decode(kv.value ?? "")] as const));
  const config = entries.get(`${prefix}/config`);
  if (config === undefined) throw new Error(`etcd has no ${prefix}/config`);
  const subnets = `${prefix}/subnets/`;
  return {
    config: readConfig(JSON.parse(config) as JsonObject),
    leases: [...entries]
      .filter(([key]) => key.startsWith(subnets))
      .map(([key, value]) => readLease(key.slice(subnets.length), value))
      .filter((lease) => lease !== undefined),
  };
}

type JsonObject = { readonly [key: string]: unknown };

function decode(base64: string): string {
  return Buffer.from(base64, "base64").toString();
}

function readConfig(config: JsonObject): StoredConfig {
  const backend = (config.Backend ?? { Type: "vxlan" }) as JsonObject;
  return {
    ...(config.Network === undefined ? {} : { network: String(config.Network) }),
    ...(config.IPv6Network === undefined ? {} : { ipv6Network: String(config.IPv6Network) }),
    type: String(backend.Type).toLowerCase(),
    vni: Number(backend.VNI ?? 1),
    directRouting: backend.DirectRouting === true,
    enableIPv4: config.EnableIPv4 !== false,
    enableIPv6: config.EnableIPv6 === true,
  };
}

function readLease(key: string, text: string): StoredLease | undefined {
  const match = /^(?:(\d+\.\d+\.\d+\.\d+)-(\d+))?(?:(?:^|&)([0-9a-f:]+)-(\d+))?$/.exec(key);
  if (match === null || key === "") return undefined;
  let value: JsonObject;
  try {
    value = JSON.parse(text) as JsonObject;
  } catch {
    return undefined;
  }
  return {
    key,
    ...(match[1] === undefined
      ? {}
      : { ipv4: family(`${match[1]}/${match[2]}`, value.PublicIP, value.BackendData) }),
    ...(match[3] === undefined
      ? {}
      : { ipv6: family(`${match[3]}/${match[4]}`, value.PublicIPv6, value.BackendV6Data) }),
    backendType: String(value.BackendType ?? ""),
  };
}

function family(subnet: string, publicIP: unknown, data: unknown): StoredFamily {
  const mac = (data as JsonObject | null | undefined)?.VtepMAC;
  return {
    subnet,
    ...(typeof publicIP === "string" ? { publicIP } : {}),
    ...(typeof mac === "string" ? { mac: mac.toLowerCase() } : {}),
  };
}
