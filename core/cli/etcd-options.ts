import type { EtcdOptions } from "../lease/etcd/client.ts";
import { Fault } from "../observe/fault.ts";
import type { Log } from "../observe/log.ts";
import type { Options } from "./options.ts";

type EtcdFlags = Pick<
  Options,
  | "etcdEndpoints"
  | "etcdPrefix"
  | "etcdKeyfile"
  | "etcdCertfile"
  | "etcdCafile"
  | "etcdUsername"
  | "etcdPassword"
>;

/** How etcd is reached, and below which prefix, as the flags say. */
export function etcdOptions(flags: EtcdFlags, log: Log): EtcdOptions & { readonly prefix: string } {
  const { etcdUsername: username, etcdPassword: password } = flags;
  return {
    endpoints: flags.etcdEndpoints,
    prefix: flags.etcdPrefix,
    ...(flags.etcdCafile === undefined ? {} : { caFile: flags.etcdCafile }),
    ...(flags.etcdCertfile === undefined ? {} : { certFile: flags.etcdCertfile }),
    ...(flags.etcdKeyfile === undefined ? {} : { keyFile: flags.etcdKeyfile }),
    ...(username === undefined || password === undefined ? {} : { login: { username, password } }),
    log,
  };
}

/** Throws Fault `STORE_UNSUPPORTED` for the datastore we lack: falling back to etcd would be another cluster. */
export function refuseKubernetes({ kubeSubnetMgr }: Pick<Options, "kubeSubnetMgr">): void {
  if (!kubeSubnetMgr) return;
  throw new Fault("STORE_UNSUPPORTED", "flag -kube-subnet-mgr: this version keeps leases in etcd only", {
    hint: "Leave the flag out and give -etcd-endpoints.",
  });
}
