import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Host } from "./host.ts";
import { until } from "./until.ts";

/** Where the kernel's cgroup hierarchies are mounted: v2's, or v1's of which each has its own tree. */
const CGROUPS = "/sys/fs/cgroup";
const PROGRAM = "/bin/busybox";
const IMAGE = "lab";
/** dockerd waits 15 s for its containers by itself (`--shutdown-timeout`), ms. */
const GRACE_MS = 20_000;

/**
 * A real Docker daemon in a host's namespace with everything it keeps in the host's directory, and its containers in
 * a cgroup of their own. Needs the Debian packages `docker.io` and `busybox-static`.
 */
export class Dockerd implements AsyncDisposable {
  readonly host: Host;
  readonly #child: Bun.Subprocess;
  readonly #directory: string;
  readonly #containers: string[] = [];

  private constructor(host: Host, child: Bun.Subprocess, directory: string) {
    this.host = host;
    this.#child = child;
    this.#directory = directory;
  }

  /** Starts dockerd with options as an operator's unit would, and loads the image; resolves when it answers. */
  static async start(host: Host, options: readonly string[]): Promise<Dockerd> {
    const directory = join(host.directory, "docker");
    mkdirSync(directory);
    const log = Bun.file(join(directory, "log"));
    const child = Bun.spawn(
      // Not `ip netns exec`, which mounts a /sys that has no cgroups.
      [
        ...["nsenter", `--net=${host.namespace.path}`, "dockerd"],
        ...["--host", `unix://${directory}/socket`, "--pidfile", `${directory}/pid`],
        ...["--data-root", `${directory}/data`, "--exec-root", `${directory}/run`],
        ...["--cgroup-parent", cgroupOf(host), ...options],
      ],
      { stdin: "ignore", stdout: log, stderr: log, env: { PATH: process.env.PATH ?? "" } },
    );
    const docker = new Dockerd(host, child, directory);
    try {
      await until(() => docker.#client("version"), {
        message: async () => `${host.name}: dockerd does not answer\n${(await log.text()).slice(-2_000)}`,
        deadline: 30_000,
        interval: 100,
      });
      await docker.#import();
    } catch (error) {
      await docker[Symbol.asyncDispose]();
      throw error;
    }
    return docker;
  }

  /** Starts a container on the default bridge; it idles until the daemon goes. */
  async run(name: string): Promise<Container> {
    this.#containers.push(name);
    await this.#client("run", "--detach", "--name", name, IMAGE, PROGRAM, "sleep", "3600");
    const format = "{{.NetworkSettings.IPAddress}}";
    const ipv4 = (await this.#client("inspect", "--format", format, name)).trim();
    return { ipv4, exec: (...command) => this.#client("exec", name, PROGRAM, ...command) };
  }

  async #import(): Promise<void> {
    const root = join(this.#directory, "root");
    mkdirSync(join(root, "bin"), { recursive: true });
    await Bun.write(join(root, PROGRAM), Bun.file(Bun.which("busybox") ?? PROGRAM));
    await succeed(["chmod", "755", join(root, PROGRAM)]);
    const archive = join(this.#directory, "root.tar");
    await succeed(["tar", "-C", root, "-cf", archive, "."]);
    await this.#client("import", archive, IMAGE);
  }

  #client(...words: readonly string[]): Promise<string> {
    return succeed(["docker", "--host", `unix://${this.#directory}/socket`, ...words]);
  }

  /** Removes the containers, ends dockerd (and with it its containerd), and waits until nothing is mounted. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const name of this.#containers) await this.#client("rm", "--force", name).catch(() => {});
    if (this.#child.exitCode === null) this.#child.kill("SIGTERM");
    const hard = setTimeout(() => this.#child.kill("SIGKILL"), GRACE_MS);
    await this.#child.exited;
    clearTimeout(hard);
    await until(() => this.#isUnused(), { message: () => `${this.#directory} is still mounted` });
    rmSync(this.#directory, { recursive: true, force: true });
    removeCgroups(cgroupOf(this.host));
  }

  #isUnused(): boolean {
    return !readFileSync("/proc/self/mountinfo", "utf8").includes(` ${this.#directory}/`);
  }
}

/** A running container. */
export interface Container {
  /** Address that Docker gave it, without prefix length. */
  readonly ipv4: string;
  /** Runs a busybox applet inside and returns its standard output; throws when it fails. */
  exec(...command: readonly string[]): Promise<string>;
}

function cgroupOf(host: Host): string {
  return `/${host.namespace.name}`;
}

/** Docker leaves the parent of its containers' cgroups behind, in each hierarchy. */
function removeCgroups(path: string): void {
  const hierarchies = readdirSync(CGROUPS, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  for (const folder of ["", ...hierarchies.map(({ name }) => name)]) {
    const cgroup = join(CGROUPS, folder, path);
    if (existsSync(cgroup)) rmdirSync(cgroup);
  }
}

async function succeed(command: readonly string[]): Promise<string> {
  const child = Bun.spawn([...command], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}: ${stderr.trim()}`);
  return stdout;
}
