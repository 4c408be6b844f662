import { test } from "bun:test";
import { dirname, join, relative, resolve } from "node:path";
import { executable } from "../daemon.ts";

/** The repository, visible in the guest at the same place. */
const ROOT = resolve(import.meta.dir, "../../..");
const RUN = join(import.meta.dir, "run.sh");
/** Lines by which the guest tells how a test ended; see {@link VmTests}. */
const MARK = "[vm] test ";

/** Options of {@link runInVm}. */
export interface VmOptions {
  /** Environment of the command, besides PATH, FLANNELD and FLANNEL_VM=1. */
  readonly env?: Readonly<Record<string, string>>;
  /** Further folders or files below /tmp that must be visible. */
  readonly see?: readonly string[];
  /** Memory of the guest in MiB; default 1536. */
  readonly memory?: number;
  /** Seconds until the guest is ended; default 600. */
  readonly timeout?: number;
}

/** What a command in a guest printed (both streams) and how it ended; 255 when the guest never got that far. */
export interface VmRun {
  readonly output: string;
  readonly exitCode: number;
}

/** What one test has inside a guest, ms. */
const GUEST_TEST_MS = 480_000;

/** Whether this process runs in such a guest. */
export const IN_VM = process.env.FLANNEL_VM === "1";

/**
 * Runs a command as root on a kernel of its own that has everything this project may need (ipip, wireguard, xfrm,
 * netem, dummy …), in the repository's folder. The guest sees the host's files; its writes are gone afterwards, it has
 * no network but its own. The first call on a machine prepares the kernel (test/setup.sh starts that in advance).
 */
export async function runInVm(command: readonly string[], options: VmOptions = {}): Promise<VmRun> {
  const { env = {}, see = [], memory, timeout } = options;
  const child = Bun.spawn(
    [
      "bash",
      RUN,
      ...Object.entries(env).flatMap(([name, value]) => ["--env", `${name}=${value}`]),
      ...see.flatMap((path) => ["--see", path]),
      ...(memory === undefined ? [] : ["--memory", `${memory}`]),
      ...(timeout === undefined ? [] : ["--timeout", `${timeout}`]),
      "--",
      ...command,
    ],
    {
      cwd: ROOT,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      env: {
        ...process.env,
        PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
        FLANNELD: executable(),
      },
    },
  );
  const [output, errors, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { output: errors + output, exitCode };
}

/**
 * Tests that run in a guest, reported one by one by the file they stand in:
 *
 * ```ts
 * const vm = vmTests(import.meta.path);
 * vm.test("pods reach each other", async () => { … });
 * ```
 *
 * On the host, the file's first test boots one guest that runs the same file with `bun test`; each test then repeats
 * what its namesake said there. In the guest, they are ordinary tests. Hooks and everything else at the top of the file
 * belong under `if (IN_VM)`. The names must be unique in the file.
 */
export function vmTests(file: string, options: VmOptions = {}): VmTests {
  return new VmTests(file, options);
}

/** See {@link vmTests}. */
export class VmTests {
  readonly #file: string;
  readonly #options: VmOptions;
  #run: Promise<VmRun> | undefined;

  constructor(file: string, options: VmOptions) {
    this.#file = file;
    this.#options = options;
  }

  /** Registers a test; inside the guest it has eight minutes, all together have the guest's time. */
  test(name: string, body: () => void | Promise<void>): void {
    const seconds = this.#options.timeout ?? 600;
    // Preparing the kernel may come on top.
    if (!IN_VM) test(name, () => this.#repeat(name), (seconds + 300) * 1000);
    else test(name, () => report(name, body), GUEST_TEST_MS);
  }

  async #repeat(name: string): Promise<void> {
    this.#run ??= runFileInVm(this.#file, this.#options);
    const { output, exitCode } = await this.#run;
    if (output.includes(`${MARK}passed: ${name}\n`)) return;
    throw new Error(`in the guest (exit code ${exitCode}):\n${output}`);
  }
}

function runFileInVm(file: string, options: VmOptions): Promise<VmRun> {
  return runInVm(
    [process.execPath, "test", "--timeout", `${GUEST_TEST_MS}`, `./${relative(ROOT, file)}`],
    options,
  );
}

async function report(name: string, body: () => void | Promise<void>): Promise<void> {
  await body();
  console.log(`\n${MARK}passed: ${name}`);
}
