import { cpus, loadavg, release, totalmem } from "node:os";

/** Where the figures were measured: they mean nothing without it. */
export interface Machine {
  /** Day, ISO. */
  readonly date: string;
  readonly cpu: string;
  readonly cores: number;
  /** e.g. `16 GB`. */
  readonly memory: string;
  readonly kernel: string;
  readonly etcd: string;
  /** One-minute load averages: above 0.5 before the start, something else was running. */
  readonly loadBefore: string;
  readonly loadAfter: string;
}

/** The load average of the last minute, two digits. */
export function readLoad(): string {
  return (loadavg()[0] ?? Number.NaN).toFixed(2);
}

/** Describes this machine; `loadBefore` was read when the benchmark began. */
export function describeMachine(loadBefore: string): Machine {
  const processors = cpus();
  return {
    date: new Date().toISOString().slice(0, 10),
    cpu: processors[0]?.model.trim() ?? "unknown processor",
    cores: processors.length,
    memory: `${Math.round(totalmem() / 1e9)} GB`,
    kernel: release(),
    etcd: /etcd Version: (\S+)/.exec(firstOutput(["etcd", "--version"]))?.[1] ?? "unknown",
    loadBefore,
    loadAfter: readLoad(),
  };
}

/** The first line that an executable prints for `--version`, on either stream. */
export function readVersion(file: string): string {
  return firstOutput([file, "--version"]).trim().split("\n")[0] ?? "";
}

function firstOutput(command: string[]): string {
  const { stdout, stderr } = Bun.spawnSync(command, { stdout: "pipe", stderr: "pipe" });
  return `${stdout.toString()}${stderr.toString()}`;
}
