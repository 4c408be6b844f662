import { existsSync, readFileSync, writeFileSync } from "node:fs";
import type { ActiveBackend, Families, Host, OwnLease, Peer } from "flannel/sdk";
import extension from "../../../backends/extension/index.ts";
import { run } from "../../../core/host/exec.ts";
import { TemporaryFolder } from "../../core/host/temporary-folder.ts";
import { refusalOf as anyRefusalOf } from "../../core/lease/etcd/probe.ts";
import { RecordingLog } from "../../core/observe/recording-log.ts";
import { FACTS } from "../facts.ts";

const NOTHING = { added: [], changed: [], removed: [] };
const V4: Families = { ipv4: true, ipv6: false };
/** The lease of this node. */
export const OWN: OwnLease = { subnets: { ipv4: "10.5.1.0/24" } };

/** The error that a promise is rejected with. */
export const refusalOf = async (promise: Promise<unknown>) => (await anyRefusalOf(promise)) as Error;

/** Writes a line per run: the name, the variables of a peer, the standard input. */
const note = (name: string) =>
  `read -r data; echo "${name} $SUBNET $PUBLIC_IP [$data]" >>"$OUT"; case $SUBNET in *.66.*) test ! -e "$OUT.refuse";; esac`;

/** Commands that write down that they ran. */
export const RECORDING = {
  PreStartupCommand: `echo "pre on $INTERFACE [$(cat)]" >>"$OUT"; echo careful >&2; echo "  the data "`,
  PostStartupCommand: `echo "post $NETWORK $IPV6NETWORK $SUBNET $IPV6SUBNET $PUBLIC_IP $PUBLIC_IPV6 [$(cat)]" >>"$OUT"`,
  SubnetAddCommand: note("add"),
  SubnetRemoveCommand: note("remove"),
};

/** Node n as its lease has it. */
export function peer(n: number, change: Partial<Peer["ipv4"]> & { backendType?: string } = {}): Peer {
  const { backendType = "extension", ...half } = change;
  return {
    key: `10.5.${n}.0-24`,
    backendType,
    ipv4: { subnet: `10.5.${n}.0/24`, publicIP: `192.0.2.${n}`, data: `data ${n}`, ...half },
  };
}

/** A machine on which the commands run for real; `$OUT` is a file of the test. */
export class Machine implements Disposable {
  readonly folder = new TemporaryFolder();
  readonly log = new RecordingLog();
  readonly out = this.folder.file("out");
  readonly state = this.folder.file("extension");

  /** A daemon that starts on it. */
  daemon(raw: Readonly<Record<string, unknown>>, families = V4) {
    const stop = new AbortController();
    const host: Host = {
      kernel: undefined as unknown as Host["kernel"],
      log: this.log,
      run: (file, args, options = {}) =>
        run(file, args, { ...options, env: { ...options.env, OUT: this.out } }),
      findLasting: () => [],
      keepRunning: () => {
        throw new Error("no processes here");
      },
      statePath: (name) => this.folder.file(name),
      wake() {},
      signal: stop.signal,
    };
    const { ipv4, ipv6 } = families;
    const networks = { ...(ipv4 ? { ipv4: "10.5.0.0/16" } : {}), ...(ipv6 ? { ipv6: "fd00:5::/48" } : {}) };
    return { backend: configure(raw, families, networks), host, stop };
  }

  /** Starts a daemon, leases and all. */
  async start(raw: Readonly<Record<string, unknown>> = RECORDING, families = V4, lease = OWN) {
    const { backend, host, stop } = this.daemon(raw, families);
    const published = await backend.prepare(host, FACTS);
    const { mtu } = await backend.attach(lease, FACTS);
    const sync = (...peers: Peer[]) => backend.sync(peers, NOTHING, FACTS);
    return { backend, host, published, mtu, sync, stop };
  }

  /** What the commands wrote since the last look. */
  lines(): string[] {
    if (!existsSync(this.out)) return [];
    const text = readFileSync(this.out, "utf8");
    writeFileSync(this.out, "");
    return text.split("\n").filter((line) => line !== "");
  }

  [Symbol.dispose](): void {
    this.folder[Symbol.dispose]();
  }
}

function configure(raw: unknown, families: Families, networks: OwnLease["subnets"]): ActiveBackend {
  const result = extension.options["~standard"].validate(raw);
  if (result instanceof Promise || result.issues) throw new Error("these options are fine");
  const backend = extension.configure({ options: result.value, families, networks, nodeId: "node-1" });
  if (backend.mode !== "active") throw new Error("extension is active");
  return backend;
}
