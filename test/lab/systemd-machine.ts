import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Host } from "./host.ts";
import type { Ran } from "./namespace.ts";
import { until } from "./until.ts";

const NSPAWN = ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--link-journal=no"] as const;
/** Longest time for a boot on a busy machine, and for the way down before it is ended the hard way, ms. */
const BOOT_MS = 60_000;
const DOWN_MS = 15_000;
/** SIGRTMIN+4: power off (systemd(1)); SIGRTMIN is 34 with glibc. */
const POWER_OFF = 38;

/**
 * A machine that systemd has booted, in the network of a lab host: its file system is this machine's, with everything
 * that is written kept in memory beside it, and gone with it. `await using machine = await SystemdMachine.boot(host, {…})`.
 */
export class SystemdMachine implements AsyncDisposable {
  readonly #files: Files;
  readonly #container: Bun.Subprocess;
  readonly #pid: number;

  private constructor(files: Files, container: Bun.Subprocess, pid: number) {
    this.#files = files;
    this.#container = container;
    this.#pid = pid;
  }

  /** Why no such machine can be had here; undefined where it can. */
  static async obstacle(): Promise<string | undefined> {
    if (Bun.which("systemd-nspawn") === null) return "systemd-nspawn is not installed";
    try {
      using files = new Files();
      const tried = Bun.spawn([...NSPAWN, "--private-network", "--pipe", "-D", files.root, "/bin/true"], {
        stdin: "ignore",
        stdout: "ignore",
        stderr: "pipe",
      });
      const [code, text] = await Promise.all([tried.exited, tried.stderr.text()]);
      return code === 0 ? undefined : `systemd-nspawn: ${text.trim().split("\n")[0]}`;
    } catch (error) {
      return String(error);
    }
  }

  /** Boots; `binds` are shown read-only inside, by their path there. Nothing but the basic target is started. */
  static async boot(host: Host, binds: Readonly<Record<string, string>>): Promise<SystemdMachine> {
    await using stack = new AsyncDisposableStack();
    const files = stack.use(new Files());
    const container = Bun.spawn(
      [
        ...NSPAWN,
        `--machine=${host.namespace.name}`,
        `--network-namespace-path=${host.namespace.path}`,
        "--capability=CAP_NET_ADMIN,CAP_NET_RAW",
        ...Object.entries(binds).map(([inside, outside]) => `--bind-ro=${outside}:${inside}`),
        "--console=pipe",
        "-b",
        "-D",
        files.root,
        "systemd.unit=basic.target",
      ],
      {
        stdin: "ignore",
        stdout: "ignore",
        stderr: "ignore",
        // The daemon sets what lies below /proc/sys/net.
        env: { PATH: process.env.PATH ?? "", SYSTEMD_NSPAWN_API_VFS_WRITABLE: "network" },
      },
    );
    stack.defer(async () => {
      if (container.exitCode === null) container.kill("SIGKILL");
      await container.exited;
    });
    const pid = await until(() => initOf(container.pid), {
      message: "nspawn starts no init",
      deadline: BOOT_MS,
    });
    const machine = new SystemdMachine(files, container, pid);
    await until(async () => (await machine.run("systemctl", "is-active", "basic.target")).exitCode === 0, {
      message: "systemd does not come up",
      deadline: BOOT_MS,
      interval: 100,
    });
    stack.move();
    return machine;
  }

  /** Runs a command inside, as root there. */
  async run(...command: readonly string[]): Promise<Ran> {
    const child = Bun.spawn(["nsenter", "-t", String(this.#pid), "-a", "--", ...command], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr, exitCode] = await Promise.all([
      child.stdout.text(),
      child.stderr.text(),
      child.exited,
    ]);
    return { stdout, stderr, exitCode };
  }

  /** Runs lines of shell inside; returns what they print, throws with their standard error when one fails. */
  async sh(text: string): Promise<string> {
    const { stdout, stderr, exitCode } = await this.run("sh", "-ec", text);
    if (exitCode !== 0) throw new Error(`${text} ended with ${exitCode}: ${stderr}${stdout}`);
    return stdout;
  }

  /** Where a path of the machine is on this one. */
  path(inside: string): string {
    return `/proc/${this.#pid}/root${inside}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      if (this.#container.exitCode === null) {
        process.kill(this.#pid, POWER_OFF);
        await until(() => this.#container.exitCode !== null, { message: "poweroff", deadline: DOWN_MS });
      }
    } catch {
      this.#container.kill("SIGKILL");
    }
    await this.#container.exited;
    this.#files[Symbol.dispose]();
  }
}

/** A file system over this machine's own, in memory. */
class Files implements Disposable {
  readonly root: string;
  readonly #directory: string;

  constructor() {
    this.#directory = mkdtempSync(join(tmpdir(), "flannel-systemd-"));
    this.root = join(this.#directory, "root");
    mount("-t", "tmpfs", "tmpfs", this.#directory);
    for (const name of ["upper", "work", "root"]) mkdirSync(join(this.#directory, name));
    const [upper, work] = [join(this.#directory, "upper"), join(this.#directory, "work")];
    try {
      mount("-t", "overlay", "overlay", "-o", `lowerdir=/,upperdir=${upper},workdir=${work}`, this.root);
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
  }

  [Symbol.dispose](): void {
    Bun.spawnSync(["umount", this.root], { stderr: "ignore" });
    Bun.spawnSync(["umount", this.#directory]);
    if (existsSync(this.#directory)) rmdirSync(this.#directory);
  }
}

function mount(...args: readonly string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(["mount", ...args], { stderr: "pipe" });
  if (exitCode !== 0) throw new Error(`mount ${args.join(" ")}: ${stderr.toString().trim()}`);
}

/** The init that nspawn has started: its child, once that is process 1 of a pid namespace (NSpid, proc(5)). */
function initOf(pid: number): number | undefined {
  const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ");
  if (!child) return undefined;
  return /^NSpid:.*\t1$/m.test(readFileSync(`/proc/${child}/status`, "utf8")) ? Number(child) : undefined;
}
