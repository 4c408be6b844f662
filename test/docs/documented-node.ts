import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Cluster, type NetworkConfig, networkConfig } from "../lab/cluster.ts";
import { executable } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import type { Family } from "../lab/segment.ts";

/** How a node is laid out before the first command of a document runs on it. */
export interface Layout {
  readonly family: Family;
  /** The network config in etcd; none is written where it is absent. */
  readonly config?: NetworkConfig;
  /** Whether flanneld runs here and on the other host. */
  readonly started: boolean;
}

const layout = (family: Family, backend: NetworkConfig[string]): Layout => ({
  family,
  config: networkConfig(family, backend as { Type: string }),
  started: true,
});

/** Layouts by the word that documents name them with. Any other word is a node of its own where nothing was done. */
const LAYOUTS: Readonly<Record<string, Layout>> = {
  vxlan: layout("v4", { Type: "vxlan" }),
  dual: layout("dual", { Type: "vxlan" }),
  "host-gw": layout("v4", { Type: "host-gw" }),
  alloc: layout("v4", { Type: "alloc" }),
  stopped: { ...layout("v4", { Type: "vxlan" }), started: false },
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

/**
 * A node on which the commands of a document run as root, with the addresses of the documents: it is 192.0.2.1, a
 * second one 192.0.2.2, and etcd listens on 192.0.2.100 (which etcdctl is told by its environment). \`/run/flannel\`
 * is its own; \`systemctl start flanneld\` works.
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

  static async create(word = ""): Promise<DocumentedNode> {
    const { family, config, started } = LAYOUTS[word] ?? { family: "v4", started: false };
    await using stack = new AsyncDisposableStack();
    const cluster = stack.use(await Cluster.create({ family, config: config ?? null }));
    const node = new DocumentedNode(cluster, mkdtempSync(join(tmpdir(), "flannel-docs-")));
    stack.defer(() => rmSync(node.#home, { recursive: true, force: true }));
    node.#furnish();
    if (started) {
      const other = cluster.hosts[1] as Host;
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
  async run(text: string): Promise<{ printed: string; code: number }> {
    const script = [
      // The namespace command gives every run its own mounts: nothing of this is seen outside.
      "mount -t tmpfs none /run && mkdir /run/flannel",
      `mount --bind ${this.host.directory} /run/flannel`,
      `cd ${this.#home}`,
      'exec sh -ec "$1" 2>&1',
    ].join("\n");
    const command = ["env", ...this.#environment(), "sh", "-ec", script, "sh", text];
    const { stdout, stderr, exitCode } = await this.host.namespace.run(command);
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
    symlinkSync(executable(), join(bin, "flanneld"));
    for (const [name, text] of Object.entries({ systemctl: SYSTEMCTL, journalctl: JOURNALCTL })) {
      writeFileSync(join(bin, name), text);
      chmodSync(join(bin, name), 0o755);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster[Symbol.asyncDispose]();
    rmSync(this.#home, { recursive: true, force: true });
  }
}
