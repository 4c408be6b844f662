import type { Cluster } from "../lab/cluster.ts";
import { PREFIX } from "../lab/cluster.ts";
import type { Host } from "../lab/host.ts";
import { hasV4 } from "../lab/segment.ts";

/** A subnet key as etcd has it. */
export interface StoredKey {
  /** Key below `subnets/`. */
  readonly key: string;
  /** The value, parsed; undefined when it is no JSON. */
  readonly value: Readonly<Record<string, unknown>> | undefined;
  /** The value as it is. */
  readonly text: string;
  /** etcd lease id in decimal, `0` for none. */
  readonly lease: string;
  readonly modRevision: number;
}

/** All keys below `<prefix>/subnets/` in one read, in the order of the store. */
export async function storedLeases(
  { etcd }: Pick<Cluster, "etcd">,
  prefix = PREFIX,
): Promise<readonly StoredKey[]> {
  const folder = `${prefix}/subnets/`;
  const json = await etcd.ctl("get", folder, "--prefix", "-w", "json");
  // 64-bit lease ids do not survive JSON.parse as numbers.
  const { kvs = [] } = JSON.parse(json.replace(/"lease":(\d+)/g, '"lease":"$1"')) as {
    kvs?: { key: string; value?: string; lease?: string; mod_revision: number }[];
  };
  return kvs.map(({ key, value = "", lease = "0", mod_revision }) => {
    const text = Buffer.from(value, "base64").toString();
    return {
      key: Buffer.from(key, "base64").toString().slice(folder.length),
      text,
      value: parse(text),
      lease,
      modRevision: mod_revision,
    };
  });
}

/** The key that carries a host's address; throws when there are several. */
export async function ownLease(
  cluster: Pick<Cluster, "etcd">,
  host: Host,
  prefix = PREFIX,
): Promise<StoredKey | undefined> {
  const own = (await storedLeases(cluster, prefix)).filter(({ value }) =>
    hasV4(host.family) ? value?.PublicIP === host.ipv4 : value?.PublicIPv6 === host.ipv6,
  );
  if (own.length > 1) throw new Error(`${host.name} has ${own.length} keys: ${own.map(({ key }) => key)}`);
  return own[0];
}

/** Operations in one transaction: etcd's default `--max-txn-ops`. */
const BATCH = 128;

/** Writes many subnet keys without expiry, in few transactions. */
export async function putLeases(
  { etcd, switch: on }: Pick<Cluster, "etcd" | "switch">,
  leases: readonly { readonly key: string; readonly value: unknown }[],
  prefix = PREFIX,
): Promise<void> {
  for (let at = 0; at < leases.length; at += BATCH) {
    const puts = leases
      .slice(at, at + BATCH)
      .map(({ key, value }) => `put ${prefix}/subnets/${key} ${JSON.stringify(JSON.stringify(value))}`);
    const { exitCode, stderr } = await on.namespace.run(["etcdctl", "--endpoints", etcd.endpoint, "txn"], {
      input: `\n${puts.join("\n")}\n\n\n`,
    });
    if (exitCode !== 0) throw new Error(`etcdctl txn: ${stderr}`);
  }
}

function parse(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch {
    return undefined;
  }
}
