import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Cluster, type NetworkConfig, operatorConfig } from "../lab/cluster.ts";
import { executable } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { POD_BRIDGE } from "../lab/pod.ts";
import type { Family } from "../lab/segment.ts";

/** How a node is laid out before the first command of a document runs on it. */
export interface Layout {
  readonly family: Family;
  /** The network config in etcd; none is written where it is absent. */
  readonly config?: NetworkConfig;
  /** Whether flanneld runs here and on the other host. */
  readonly started: boolean;
  /** Whether there is the other host although nothing is started. */
  readonly pair?: true;
}

const BARE: Layout = { family: "v4", started: false };

function layout(family: Family, type: string): Layout {
  return { family, config: operatorConfig(family, { Type: type }), started: true };
}

/** Layouts by the word that documents name them with; under any other word nothing was done yet. */
const LAYOUTS: Readonly<Record<string, Layout>> = {
  vxlan: layout("v4", "vxlan"),
  operator: layout("v4", "vxlan"),
  dual: layout("dual", "vxlan"),
  members: { ...BARE, config: operatorConfig("v4", { Type: "vxlan", MembersOnly: true }), started: true },
  "host-gw": layout("v4", "host-gw"),
  alloc: layout("v4", "alloc"),
  pair: { ...BARE, pair: true },
  stopped: { ...layout("v4", "vxlan"), started: false },
};

/** What stands in for systemd: `start`, `stop` and `restart` of the one unit that documents know. */
const SYSTEMCTL = `#!/bin/sh
set -eu
[ "$2" = flanneld ]
stop() {
  [ -e "$DOC_NODE/pid" ] || return 0
  kill "$(cat "$DOC_NODE/pid")" || true
  while kill -0 "$(cat "$DOC_NODE/pid")" 2>/dev/null; do sleep 0.05; done
  rm "$DOC_NODE/pid"
}
start() {
  : >"$DOC_NODE/log"
  set -a
  [ ! -e /etc/default/flanneld ] || . /etc/default/flanneld
  set +a
  flanneld --etcd-endpoints="$ETCDCTL_ENDPOINTS" >"$DOC_NODE/log" 2>&1 </dev/null &
  echo $! >"$DOC_NODE/pid"
  for _ in $(seq 300); do
    grep -q '"msg":"ready"' "$DOC_NODE/log" && return 0
    kill -0 "$(cat "$DOC_NODE/pid")" 2>/dev/null || break
    sleep 0.1
  done
  cat "$DOC_NODE/log" >&2
  exit 1
}
case $1 in
  start) start ;;
  stop) stop ;;
  restart) stop; start ;;
  *) exit 2 ;;
esac
`;

/** Shows the daemon's log. */
const JOURNALCTL = '#!/bin/sh\ncat "$DOC_NODE/log"\n';

/** What stands in for Docker: the bridge it makes, under the name that the lab's pods look for. */
const DOCKERD = `#!/bin/sh
set -eu
for argument; do
  case $argument in
    --bip=*) bip=${"$"}{argument#*=} ;;
    --mtu=*) mtu=${"$"}{argument#*=} ;;
    *) exit 2 ;;
  esac
done
ip link add ${POD_BRIDGE} type bridge
ip link set ${POD_BRIDGE} mtu "$mtu" up
ip address add "$bip" dev ${POD_BRIDGE}
`;

/**
 * A node on which the commands of a document run as root, with the addresses of the documents: it is 192.0.2.1, a
 * second one 192.0.2.2, and etcd listens on 192.0.2.100 (which etcdctl is told by its environment). `/run/flannel`
 * and `/etc/default` are its own; `systemctl start flanneld` works.
 *
 *   h1 (commands) ── switch + etcd ── h2
 */
export class DocumentedNode implements AsyncDisposable {
  readonly cluster: Cluster;
  readonly #home: string;

  private constructor(cluster: Cluster, home: string) {
    this.cluster = cluster;
    this.#home = home;
  }

  /** A node laid out as the word says: `vxlan`, or `vxlan:removal` for another one of that kind. */
  static async create(word: string): Promise<DocumentedNode> {
    const { family, config, started, pair } = LAYOUTS[word.split(":")[0] ?? ""] ?? BARE;
    await using stack = new AsyncDisposableStack();
    const hosts = started || pair ? 2 : 1;
    const cluster = stack.use(await Cluster.create({ hosts, family, config: config ?? null }));
    const node = new DocumentedNode(cluster, mkdtempSync(join(tmpdir(), "flannel-docs-")));
    stack.defer(() => rmSync(node.#home, { recursive: true, force: true }));
    node.#furnish();
    if (started) {
      const other = cluster.hosts[1] as Host;
      // Subnets of an earlier run, so that none is one that a document gives to somebody else.
      for (const [at, { subnetFile }] of cluster.hosts.entries()) {
        writeFileSync(subnetFile, `FLANNEL_SUBNET=10.244.${10 + at}.1/24\n`);
      }
      await cluster.startDaemon(other).ready;
      const { printed, code } = await node.run("systemctl start flanneld");
      if (code !== 0) throw new Error(printed);
    }
    stack.move();
    return node;
  }

  get host(): Host {
    return this.cluster.hosts[0] as Host;
  }

  /** Runs shell text; both output streams are read as one, in the order they were written. */
  async run(text: string, on: Host = this.host): Promise<{ printed: string; code: number }> {
    const script = [
      // The namespace command gives every run its own mounts: nothing of this is seen outside.
      "mount -t tmpfs none /run && mkdir /run/flannel",
      `mount --bind ${on.directory} /run/flannel`,
      `mount --bind ${this.#home}/default /etc/default`,
      `cd ${this.#home}`,
      // A command that never ends must not outlive the test.
      'exec timeout -k 5 60 sh -ec "$1" 2>&1',
    ].join("\n");
    const command = ["env", ...this.#environment(), "sh", "-ec", script, "sh", text];
    const { stdout, stderr, exitCode } = await on.namespace.run(command);
    return { printed: stdout + stderr, code: exitCode };
  }

  #environment(): string[] {
    return [
      `PATH=${this.#home}/bin:${process.env.PATH ?? ""}`,
      `DOC_NODE=${this.#home}`,
      "ETCDCTL_API=3",
      `ETCDCTL_ENDPOINTS=${this.cluster.etcd.endpoint}`,
    ];
  }

  #furnish(): void {
    const bin = join(this.#home, "bin");
    mkdirSync(bin, { recursive: true });
    mkdirSync(join(this.#home, "default"));
    symlinkSync(executable(), join(bin, "flanneld"));
    for (const [name, text] of Object.entries({
      systemctl: SYSTEMCTL,
      journalctl: JOURNALCTL,
      dockerd: DOCKERD,
    })) {
      writeFileSync(join(bin, name), text);
      chmodSync(join(bin, name), 0o755);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster[Symbol.asyncDispose]();
    rmSync(this.#home, { recursive: true, force: true });
  }
}
