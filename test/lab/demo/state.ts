import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Cluster } from "../cluster.ts";
import { until } from "../until.ts";

/**
 * Only root can write here, so that nobody else can tell a teardown what to remove. Tests of the demo have a folder
 * of their own.
 */
const DIRECTORY = process.env.FLANNEL_DEMO_STATE ?? "/run/flannel-demo";

/** A process that is certainly the same one: pids are used again, start times are not. */
interface ProcessIdentity {
  readonly pid: number;
  /** Field 22 of /proc/PID/stat: clock ticks since boot. */
  readonly startTime: string;
}

/** What a demo made, so that it can be removed when the demo itself cannot do it any more. */
interface DemoState {
  readonly owner: ProcessIdentity;
  readonly namespaces: readonly string[];
  readonly processes: readonly ProcessIdentity[];
  readonly directories: readonly string[];
}

const path = () => join(DIRECTORY, `${process.pid}.json`);

/** Records what stands now; called after each step that makes something. */
export function saveState(cluster: Cluster): void {
  const located = [...cluster.pods, ...cluster.hosts, cluster.switch];
  const pids = [...cluster.daemons.map((daemon) => daemon.pid), cluster.etcd.pid];
  const state: DemoState = {
    owner: { pid: process.pid, startTime: startTime(process.pid) ?? "" },
    namespaces: located.map((place) => place.namespace.name),
    processes: pids.flatMap((pid) => {
      const started = pid === undefined ? undefined : startTime(pid);
      return pid === undefined || started === undefined ? [] : [{ pid, startTime: started }];
    }),
    directories: [...cluster.hosts.map((host) => host.directory), cluster.etcd.folder],
  };
  mkdirSync(DIRECTORY, { recursive: true, mode: 0o700 });
  writeFileSync(`${path()}.new`, JSON.stringify(state));
  renameSync(`${path()}.new`, path());
}

/** Forgets this demo: everything was removed. */
export function dropState(): void {
  rmSync(path(), { force: true });
  removeDirectoryIfEmpty();
}

function removeDirectoryIfEmpty(): void {
  try {
    rmdirSync(DIRECTORY);
  } catch {
    // Other demos stand, or none ever stood.
  }
}

/**
 * Removes what kept (or killed) demos left standing, by their state files; running demos are left alone. Returns a
 * line per demo.
 */
export async function teardown(): Promise<readonly string[]> {
  if (!existsSync(DIRECTORY)) return [];
  const lines: string[] = [];
  for (const name of readdirSync(DIRECTORY).filter((entry) => entry.endsWith(".json"))) {
    const file = join(DIRECTORY, name);
    const state = JSON.parse(readFileSync(file, "utf8")) as DemoState;
    if (isAlive(state.owner)) {
      lines.push(`demo ${state.owner.pid} is still running: left alone`);
      continue;
    }
    const ended = await endProcesses(state.processes);
    const removed = state.namespaces.filter((namespace) => deleteNamespace(namespace));
    for (const directory of state.directories) rmSync(directory, { recursive: true, force: true });
    rmSync(file);
    lines.push(`demo ${state.owner.pid}: ended ${ended} processes, removed ${removed.length} namespaces`);
  }
  removeDirectoryIfEmpty();
  return lines;
}

async function endProcesses(processes: readonly ProcessIdentity[]): Promise<number> {
  const alive = processes.filter(isAlive);
  for (const process of alive) send(process, "SIGTERM");
  const gone = () => !alive.some(isAlive);
  try {
    await until(gone, { message: "processes ended", deadline: 3_000 });
  } catch {
    for (const process of alive) send(process, "SIGKILL");
    await until(gone, { message: "processes ended after SIGKILL", deadline: 3_000 });
  }
  return alive.length;
}

function send(target: ProcessIdentity, signal: NodeJS.Signals): void {
  if (!isAlive(target)) return;
  try {
    process.kill(target.pid, signal);
  } catch {
    // It ended between the look and the signal.
  }
}

function deleteNamespace(name: string): boolean {
  return Bun.spawnSync(["ip", "netns", "delete", name], { stderr: "ignore" }).exitCode === 0;
}

function isAlive({ pid, startTime: started }: ProcessIdentity): boolean {
  return startTime(pid) === started;
}

/** Undefined when there is no such process, or only its remains. */
function startTime(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name in parentheses may hold spaces; what follows is fields 3 (state), 4, …
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}
