import type { Subprocess } from "bun";
import type { Shown, ShownNft } from "./shown.ts";

/** What a finished command printed. */
export interface Ran {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number;
}

/** Time a process has to end after a polite request, and again after a hard one. */
const GRACE_MS = 2000;
let created = 0;

/**
 * A network namespace of its own, gone with everything started in it at the end of the scope:
 * `await using ns = await Namespace.create("peer")`. Loopback is up, IPv6 is on, duplicate address detection is off
 * (addresses are usable at once). The names hold the pid and a counter, so that test runs beside each other do not
 * meet. A machine's namespaces of crashed runs can be found with `ip netns list | grep ^fl`.
 */
export class Namespace implements AsyncDisposable {
  readonly name: string;
  readonly #processes = new Set<Subprocess>();

  private constructor(name: string) {
    this.name = name;
  }

  static async create(hint = "ns"): Promise<Namespace> {
    created += 1;
    const name = `fl${process.pid}-${created}-${hint}`;
    await runCommand(["ip", "netns", "add", name]);
    const namespace = new Namespace(name);
    try {
      await namespace.exec(
        "sh",
        "-c",
        "sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.default.disable_ipv6=0" +
          " net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0 && ip link set lo up",
      );
    } catch (error) {
      await namespace[Symbol.asyncDispose]();
      throw error;
    }
    return namespace;
  }

  /** The namespace as a file, for setns(2) and `ip link set … netns`. */
  get path(): string {
    return `/var/run/netns/${this.name}`;
  }

  /** Runs a command inside and returns its standard output; throws with its standard error on a non-zero exit. */
  async exec(...command: readonly string[]): Promise<string> {
    return (await runCommand(this.#inside(command))).stdout;
  }

  /** Like {@link exec}, for commands that may fail, or want input. */
  run(
    command: readonly string[],
    options: { readonly input?: string; readonly env?: Readonly<Record<string, string>> } = {},
  ): Promise<Ran> {
    return collect(this.#inside(command), options);
  }

  /** `ip` with the arguments of a line: `ns.ip("link add br0 type bridge")`. */
  ip(line: string): Promise<string> {
    return this.exec("ip", ...line.trim().split(/\s+/));
  }

  /** Many `ip` lines in one process; throws with the standard error when one fails. */
  async ipBatch(...lines: readonly string[]): Promise<void> {
    const { exitCode, stderr } = await this.run(["ip", "-batch", "-"], { input: `${lines.join("\n")}\n` });
    if (exitCode !== 0) throw new Error(`ip -batch: ${stderr.trim()}`);
  }

  /** `bridge` with the arguments of a line. */
  bridge(line: string): Promise<string> {
    return this.exec("bridge", ...line.trim().split(/\s+/));
  }

  /** Standard output parsed as JSON: `await ns.json("ip", "-j", "route")`; empty output is an empty list. */
  json(tool: "nft", ...options: readonly string[]): Promise<{ readonly nftables: readonly ShownNft[] }>;
  json(tool: "ip" | "bridge", ...options: readonly string[]): Promise<[Shown, ...Shown[]]>;
  async json(...command: readonly string[]): Promise<unknown> {
    const text = await this.exec(...command);
    return text.trim() === "" ? [] : JSON.parse(text);
  }

  /** Starts a process that runs until the namespace goes, or until the test kills it. */
  spawn(...command: readonly string[]): Subprocess<"ignore", "pipe", "pipe"> {
    const child = Bun.spawn(this.#inside(command), { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
    this.#processes.add(child);
    child.exited.finally(() => this.#processes.delete(child));
    return child;
  }

  /** Processes inside, but not this one while it is visiting. */
  async pids(): Promise<number[]> {
    const { stdout } = await collect(["ip", "netns", "pids", this.name]);
    return stdout
      .split("\n")
      .map(Number)
      .filter((pid) => pid > 0 && pid !== process.pid);
  }

  /** Ends what was started inside (by pid, children too) and deletes the namespace. */
  async [Symbol.asyncDispose](): Promise<void> {
    const started = performance.now();
    const asked = new Set<number>();
    for (;;) {
      const pids = await this.pids();
      if (pids.length === 0) break;
      const waited = performance.now() - started;
      if (waited > 2 * GRACE_MS) throw new Error(`${this.name}: processes ${pids.join(", ")} do not end`);
      for (const pid of pids) {
        // Politely once only: a second request may mean "at once" to a daemon.
        if (waited > GRACE_MS) signal(pid, "SIGKILL");
        else if (!asked.has(pid)) signal(pid, "SIGTERM");
        asked.add(pid);
      }
      await Bun.sleep(10);
    }
    await Promise.all([...this.#processes].map((child) => child.exited));
    await collect(["ip", "netns", "delete", this.name]);
  }

  #inside(command: readonly string[]): string[] {
    return ["ip", "netns", "exec", this.name, ...command];
  }
}

/** Connects two namespaces with a veth pair; both ends are up. */
export async function connect(
  [a, aDevice]: readonly [Namespace, string],
  [b, bDevice]: readonly [Namespace, string],
): Promise<void> {
  await a.ip(`link add ${aDevice} type veth peer name ${bDevice} netns ${b.name}`);
  await a.ip(`link set ${aDevice} up`);
  await b.ip(`link set ${bDevice} up`);
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It ended meanwhile.
  }
}

async function runCommand(command: readonly string[]): Promise<Ran> {
  const ran = await collect(command);
  if (ran.exitCode !== 0)
    throw new Error(`${command.join(" ")} ended with ${ran.exitCode}: ${ran.stderr.trim()}`);
  return ran;
}

async function collect(
  command: readonly string[],
  { input, env }: { readonly input?: string; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<Ran> {
  const child = Bun.spawn([...command], {
    env: { ...process.env, ...env },
    stdin: input === undefined ? "ignore" : new TextEncoder().encode(input),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { stdout, stderr, exitCode };
}
