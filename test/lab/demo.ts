import { existsSync } from "node:fs";
import { Cluster, operatorConfig } from "./cluster.ts";
import { executable } from "./daemon.ts";
import { measureReach, type Reach, renderMatrix } from "./demo/matrix.ts";
import { type DemoOptions, parseOptions, USAGE, UsageError } from "./demo/options.ts";
import { Progress } from "./demo/progress.ts";
import { dropState, saveState, teardown } from "./demo/state.ts";
import { renderEntrance, renderHosts } from "./demo/summary.ts";
import { expectInSync } from "./oracle.ts";

/** Conventional exit code of a program that SIGINT ended: 128 + 2. */
const INTERRUPTED = 130;
const TOOLS = ["ip", "bridge", "nft", "ping", "etcd", "etcdctl"];

process.exit(await main(process.argv.slice(2)));

async function main(args: readonly string[]): Promise<number> {
  try {
    const options = parseOptions(args);
    if (options.help) {
      process.stdout.write(USAGE);
      return 0;
    }
    checkMachine();
    if (options.teardown) {
      const removed = await teardown();
      console.log(removed.length === 0 ? "nothing is left standing" : removed.join("\n"));
      return 0;
    }
    return await run(options);
  } catch (error) {
    const hint = error instanceof UsageError ? "\nTry: npm run demo -- --help" : "";
    process.stderr.write(`demo: ${error instanceof Error ? error.message : String(error)}${hint}\n`);
    return 1;
  }
}

function checkMachine(): void {
  if (process.platform !== "linux") throw new Error("needs Linux: it lives in network namespaces");
  if (process.getuid?.() !== 0) throw new Error("needs root, to make network namespaces: run it with sudo");
  const missing = TOOLS.filter((tool) => Bun.which(tool) === null);
  if (missing.length > 0) throw new Error(`missing: ${missing.join(", ")}; npm run setup installs them`);
}

async function run(options: DemoOptions): Promise<number> {
  if (!existsSync(executable())) {
    throw new Error(`no executable at ${executable()}; npm run build makes it (or set FLANNELD)`);
  }
  const progress = new Progress();
  const interruption = watchSignals(progress);
  const stack = new AsyncDisposableStack();
  const laid: { cluster?: Cluster } = {};
  try {
    const reach = await build(options, progress, interruption, stack, laid);
    const unanswered = reach.filter((entry) => entry.milliseconds === undefined);
    if (options.keep && laid.cluster !== undefined) {
      stack.move();
      console.log(`\n${renderEntrance(laid.cluster)}`);
    }
    if (unanswered.length === 0) return 0;
    for (const { from, to, address } of unanswered.slice(0, 10)) {
      process.stderr.write(
        `demo: no answer from ${to.host.name}'s pod (${address}) to ${from.host.name}'s pod\n`,
      );
    }
    return 1;
  } catch (error) {
    if (interruption.signal.aborted) return INTERRUPTED;
    throw error;
  } finally {
    if (!stack.disposed) {
      await stopDaemons(laid.cluster, progress);
      await progress.step("cleaned up", async () => {
        await stack.disposeAsync();
        // Only now: what could not be removed can still be torn down by its state file.
        dropState();
        return undefined;
      });
    }
  }
}

/** Lays everything out and measures it. What it makes is disposed by `stack`, at whatever point it fails. */
async function build(
  options: DemoOptions,
  progress: Progress,
  interruption: Interruption,
  stack: AsyncDisposableStack,
  laid: { cluster?: Cluster },
): Promise<readonly Reach[]> {
  const { hosts, family } = options;
  const config = operatorConfig(family, { Type: options.backend });
  await progress.step("switch and etcd", async () => {
    // Sessions of their own, kept or not: Ctrl-C must reach this process alone, which then ends them in order.
    laid.cluster = stack.use(await Cluster.create({ hosts: 0, family, config, detached: true }));
    saveState(laid.cluster);
    return laid.cluster.etcd.endpoint;
  });
  const cluster = laid.cluster as Cluster;
  await progress.step("hosts", async (update) => {
    for (let n = 1; n <= hosts; n++) {
      interruption.check();
      update(`${n}/${hosts}`);
      await cluster.addHost(n);
      saveState(cluster);
    }
    return String(hosts);
  });
  await progress.step(`flanneld (${options.backend})`, async (update) => {
    const daemons = cluster.hosts.map((host) => cluster.startDaemon(host));
    saveState(cluster);
    let ready = 0;
    const waits = daemons.map(async (daemon) => {
      const time = await daemon.ready;
      update(`${++ready}/${hosts} ready`);
      return time;
    });
    const times = await interruption.race(Promise.all(waits));
    return `${hosts} ready, the slowest after ${(Math.max(...times) / 1000).toFixed(2)} s`;
  });
  await progress.step("kernel state", async () => {
    await interruption.race(expectInSync(cluster.hosts, cluster.etcd, { deadline: 30_000 }));
    return "exactly what etcd's leases demand, on every host";
  });
  await progress.step("pods", async () => {
    await cluster.addPods();
    saveState(cluster);
    return `${cluster.pods.length}, wired from the subnet files`;
  });
  let reach: readonly Reach[] = [];
  await progress.step("pings", async (update) => {
    reach = await measureReach(cluster.pods, (done, all) => update(`${done}/${all}`), interruption.signal);
    interruption.check();
    const answered = reach.filter((entry) => entry.milliseconds !== undefined).length;
    return `${answered} of ${reach.length} pairs answered`;
  });
  console.log(`\n${await renderHosts(cluster.hosts)}`);
  console.log(`\nPod to pod, median round trip in ms`);
  console.log(`${renderMatrix(cluster.pods, reach, process.stdout.columns ?? 120)}\n`);
  return reach;
}

/** SIGTERM to every daemon, as the service manager does; one that does not end cleanly is told. */
async function stopDaemons(cluster: Cluster | undefined, progress: Progress): Promise<void> {
  const running = cluster?.daemons.filter((daemon) => daemon.running) ?? [];
  if (running.length === 0) return;
  await progress.step("flanneld stopped", async () => {
    const ends = await Promise.allSettled(running.map((daemon) => daemon.stop("SIGTERM")));
    const clean = ends.filter((end) => end.status === "fulfilled" && end.value.code === 0).length;
    return `${clean} of ${running.length} with exit code 0`;
  });
}

interface Interruption {
  readonly signal: AbortSignal;
  /** Throws when the operator wants to stop. */
  check(): void;
  /** Rejects at once when the operator wants to stop; only for waits that make nothing. */
  race<T>(work: Promise<T>): Promise<T>;
}

function watchSignals(progress: Progress): Interruption {
  const controller = new AbortController();
  const aborted = new Promise<never>((_, reject) => {
    controller.signal.addEventListener("abort", () => reject(new Error("interrupted")), { once: true });
  });
  aborted.catch(() => {});
  let first = 0;
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(name, () => {
      // A wrapper such as npm passes on what the terminal already sent: that is no second wish.
      if (!controller.signal.aborted) progress.note("interrupted: cleaning up");
      else if (performance.now() - first > 500) progress.note("still cleaning up");
      first ||= performance.now();
      controller.abort();
    });
  }
  return {
    signal: controller.signal,
    check: () => controller.signal.throwIfAborted(),
    race: (work) => {
      work.catch(() => {});
      return Promise.race([work, aborted]);
    },
  };
}
