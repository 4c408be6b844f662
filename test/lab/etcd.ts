import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePorts } from "./ports.ts";
import { PATIENCE, until } from "./until.ts";

/** Certificate files of a TLS server; with `caFile` clients must present a certificate signed by it. */
export interface ServerTls {
  readonly certFile: string;
  readonly keyFile: string;
  readonly caFile: string;
  /** Whether clients must authenticate by certificate; default true. */
  readonly requireClient?: boolean;
  /** What `etcdctl` presents. */
  readonly client: { readonly certFile: string; readonly keyFile: string };
}

export interface EtcdServerOptions {
  readonly tls?: ServerTls;
  /** Further command line arguments of etcd; they win over the defaults. */
  readonly args?: readonly string[];
  /** Address to serve on, either family; default 127.0.0.1. */
  readonly address?: string;
  /** Client port; default a free one. Inside a namespace of its own any port is free. */
  readonly port?: number;
  /** Name of the network namespace that etcd and etcdctl run in; default ours. */
  readonly namespace?: string;
  /** A session of its own, so that it survives this process. */
  readonly detached?: boolean;
}

/** Data lies in memory where that is possible: these members need no durability across a power cut. */
const DATA_ROOT = "/dev/shm";

/** Fast timers: the shortest lease etcd grants is 1.5 election time-outs, rounded up to a second. */
const TIMERS = ["--heartbeat-interval", `${20 * PATIENCE}`, "--election-timeout", `${200 * PATIENCE}`];

/** One etcd member on loopback with a disposable data folder. Several form a cluster: see etcd-cluster.ts. */
export class EtcdServer implements AsyncDisposable {
  /** URL clients use. */
  readonly endpoint: string;
  readonly clientPort: number;
  /** `user:password` that {@link ctl} uses; set by {@link enableAuth}. */
  user: string | undefined;
  /** Holds the data and the output; removed with the server. */
  readonly folder: string;
  readonly #arguments: readonly string[];
  readonly #options: EtcdServerOptions;
  #process: Bun.Subprocess | undefined;
  #paused = false;
  #runs = 0;

  private constructor(
    folder: string,
    clientPort: number,
    endpoint: string,
    args: readonly string[],
    options: EtcdServerOptions,
  ) {
    this.folder = folder;
    this.clientPort = clientPort;
    this.endpoint = endpoint;
    this.#arguments = args;
    this.#options = options;
  }

  /** Starts a single member and waits until it serves; on other ports when somebody was faster. */
  static async start(options: EtcdServerOptions = {}): Promise<EtcdServer> {
    for (let tries = 1; ; tries += 1) {
      const [freePort = 0, peerPort = 0] = await freePorts(2);
      const clientPort = options.port ?? freePort;
      const server = EtcdServer.prepare(
        options,
        clientPort,
        peerPort,
        "m0",
        `m0=http://127.0.0.1:${peerPort}`,
      );
      try {
        server.spawn();
        await server.ready();
        return server;
      } catch (error) {
        await server[Symbol.asyncDispose]();
        if (tries === 3 || !server.output.includes("address already in use")) throw error;
      }
    }
  }

  /** Makes a member without starting it. */
  static prepare(
    options: EtcdServerOptions,
    clientPort: number,
    peerPort: number,
    name: string,
    initialCluster: string,
  ): EtcdServer {
    const { tls, address = "127.0.0.1" } = options;
    const folder = mkdtempSync(join(DATA_ROOT, "etcd-test-"));
    const endpoint = `${tls ? "https" : "http"}://${address.includes(":") ? `[${address}]` : address}:${clientPort}`;
    const args = [
      ...["--name", name, "--data-dir", join(folder, "data"), "--logger", "zap", "--log-level", "error"],
      ...["--listen-client-urls", endpoint, "--advertise-client-urls", endpoint],
      ...["--listen-peer-urls", `http://127.0.0.1:${peerPort}`],
      ...["--initial-advertise-peer-urls", `http://127.0.0.1:${peerPort}`],
      ...["--initial-cluster", initialCluster],
      ...TIMERS,
      ...(tls ? ["--cert-file", tls.certFile, "--key-file", tls.keyFile] : []),
      ...(tls && tls.requireClient !== false ? ["--client-cert-auth", "--trusted-ca-file", tls.caFile] : []),
      ...(options.args ?? []),
    ];
    return new EtcdServer(folder, clientPort, endpoint, args, options);
  }

  /** Starts the process; {@link ready} tells when it serves. */
  spawn(): void {
    this.#process = Bun.spawn([...this.#inside(), "etcd", ...this.#arguments], {
      stdin: "ignore",
      stdout: "ignore",
      stderr: Bun.file(this.#log),
      env: { PATH: process.env.PATH ?? "" },
      detached: this.#options.detached === true,
    });
  }

  /** Output of etcd since it was last started, for failed tests. */
  get output(): string {
    return existsSync(this.#log) ? readFileSync(this.#log, "utf8") : "";
  }

  get #log(): string {
    return join(this.folder, "etcd.log");
  }

  /** Process id; undefined while stopped. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  #inside(): string[] {
    const { namespace } = this.#options;
    return namespace === undefined ? [] : ["ip", "netns", "exec", namespace];
  }

  /** Waits until the member answers a linearizable read. */
  async ready(): Promise<void> {
    const ended = () =>
      this.#process === undefined || this.#process.exitCode !== null || this.#process.killed;
    const serves = await until(async () => (ended() ? "ended" : (await this.tryCtl("get", "ready?")).ok), {
      message: () => `etcd at ${this.endpoint} does not serve: ${this.output.slice(-500)}`,
      deadline: 15_000,
      interval: 30,
    });
    if (serves === "ended") throw new Error(`etcd at ${this.endpoint} ended: ${this.output.slice(-500)}`);
  }

  /** Runs etcdctl against this member and returns its standard output; throws when it fails. */
  async ctl(...args: string[]): Promise<string> {
    const { ok, stdout, stderr } = await this.tryCtl(...args);
    if (!ok) throw new Error(`etcdctl ${args.join(" ")}: ${stderr}`);
    return stdout;
  }

  /** As {@link ctl}, telling success apart instead of throwing. */
  tryCtl(...args: string[]): Promise<{ ok: boolean; stdout: string; stderr: string }> {
    return this.#run(args, "");
  }

  /** Through files instead of pipes: with many children at once Bun 1.4.5 now and then misses the end of a pipe. */
  async #run(
    args: readonly string[],
    input: string,
  ): Promise<{ ok: boolean; stdout: string; stderr: string }> {
    const { tls } = this.#options;
    this.#runs += 1;
    const files = ["in", "out", "err"].map((name) => join(this.folder, `ctl-${this.#runs}.${name}`));
    const [stdin = "", stdout = "", stderr = ""] = files;
    writeFileSync(stdin, input);
    const child = Bun.spawn(
      [
        ...this.#inside(),
        ...[
          "etcdctl",
          "--endpoints",
          this.endpoint,
          "--command-timeout",
          `${2 * PATIENCE}s`,
          "--dial-timeout",
          `${PATIENCE}s`,
        ],
        ...(tls ? ["--cacert", tls.caFile, "--cert", tls.client.certFile, "--key", tls.client.keyFile] : []),
        ...(this.user === undefined ? [] : ["--user", this.user]),
        ...args,
      ],
      {
        stdin: Bun.file(stdin),
        stdout: Bun.file(stdout),
        stderr: Bun.file(stderr),
        env: { PATH: process.env.PATH ?? "", ETCDCTL_API: "3" },
      },
    );
    const code = await child.exited;
    const [out = "", err = ""] = [stdout, stderr].map((file) => readFileSync(file, "utf8").trim());
    for (const file of files) rmSync(file);
    return { ok: code === 0, stdout: out, stderr: err };
  }

  /** Runs etcdctl operations such as `put key value` in one transaction. */
  async txn(operations: readonly string[]): Promise<void> {
    const { ok, stderr } = await this.#run(["txn"], `\n${operations.join("\n")}\n\n\n`);
    if (!ok) throw new Error(`etcdctl txn: ${stderr}`);
  }

  /** Current store revision. */
  async revision(): Promise<number> {
    const text = await this.ctl("get", "revision?", "-w", "json");
    return (JSON.parse(text) as { header: { revision: number } }).header.revision;
  }

  /** Value of one key, undefined when it is absent. */
  async get(key: string): Promise<{ value: string; lease: string; modRevision: number } | undefined> {
    // 64-bit lease ids do not survive JSON.parse as numbers.
    const text = (await this.ctl("get", key, "-w", "json")).replace(/"lease":(\d+)/g, '"lease":"$1"');
    const { kvs = [] } = JSON.parse(text) as {
      kvs?: { value?: string; lease?: string; mod_revision: number }[];
    };
    const [found] = kvs;
    if (!found) return undefined;
    return {
      value: Buffer.from(found.value ?? "", "base64").toString(),
      lease: found.lease ?? "0",
      modRevision: found.mod_revision,
    };
  }

  /** Keys below `prefix`. */
  async keys(prefix: string): Promise<string[]> {
    const text = await this.ctl("get", prefix, "--prefix", "--keys-only");
    return text.split("\n").filter((line) => line !== "");
  }

  /**
   * Turns authentication on: `root` with password `root`, and `user` with read and write access below `prefix` only.
   */
  async enableAuth(user: string, password: string, prefix: string): Promise<void> {
    await this.ctl("user", "add", "root:root");
    await this.ctl("user", "grant-role", "root", "root");
    await this.ctl("role", "add", "flannel");
    await this.ctl("role", "grant-permission", "flannel", "--prefix=true", "readwrite", prefix);
    await this.ctl("user", "add", `${user}:${password}`);
    await this.ctl("user", "grant-role", user, "flannel");
    await this.ctl("auth", "enable");
    this.user = "root:root";
  }

  /** Gives a user another password; tokens of before are void. */
  async password(user: string, password: string): Promise<void> {
    const { ok, stderr } = await this.#run(["user", "passwd", "--interactive=false", user], `${password}\n`);
    if (!ok) throw new Error(`etcdctl user passwd: ${stderr}`);
  }

  /** Freezes the process: connections stay, nothing answers. */
  pause(): void {
    this.#paused = true;
    this.#process?.kill("SIGSTOP");
  }

  /** Undoes {@link pause}. */
  resume(): void {
    this.#paused = false;
    this.#process?.kill("SIGCONT");
  }

  /** Ends the process and waits for it; the data stay. */
  async stop(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const running = this.#process;
    if (!running) return;
    this.#process = undefined;
    if (this.#paused) running.kill("SIGCONT");
    this.#paused = false;
    running.kill(signal);
    await running.exited;
  }

  /** Starts the member again on the same ports, optionally with its data wiped. */
  async restart(options: { readonly wipe?: boolean } = {}): Promise<void> {
    await this.stop();
    if (options.wipe) rmSync(join(this.folder, "data"), { recursive: true, force: true });
    this.spawn();
    await this.ready();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
