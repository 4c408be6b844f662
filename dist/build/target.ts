import { existsSync } from "node:fs";
import { BuildError } from "./error.ts";

/** A machine the executable is built for. */
export interface Target {
  /** Name on the command line and in file names, e.g. `linux-arm64-musl`. */
  readonly name: string;
  /** Bun's own name for it. */
  readonly bun: Bun.Build.CompileTarget;
  /** npm package that holds Bun's runtime for it. */
  readonly runtimePackage: string;
}

/** Every target of a release. */
export const TARGETS: readonly Target[] = [
  { name: "linux-x64", bun: "bun-linux-x64", runtimePackage: "@oven/bun-linux-x64" },
  { name: "linux-arm64", bun: "bun-linux-arm64", runtimePackage: "@oven/bun-linux-aarch64" },
  { name: "linux-x64-musl", bun: "bun-linux-x64-musl", runtimePackage: "@oven/bun-linux-x64-musl" },
  { name: "linux-arm64-musl", bun: "bun-linux-arm64-musl", runtimePackage: "@oven/bun-linux-aarch64-musl" },
];

/** Targets of a plain build; the second is left out with a notice when its runtime cannot be had. */
export const DEFAULT_TARGETS: readonly string[] = ["linux-x64", "linux-arm64"];

/** The target of the machine that builds. */
export function hostTarget(): Target {
  const musl = existsSync(`/lib/ld-musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`);
  return findTarget(`linux-${process.arch}${musl ? "-musl" : ""}`);
}

/**
 * The target of that name; `host` is the machine that builds.
 * @throws BuildError naming the known targets.
 */
export function findTarget(name: string): Target {
  if (name === "host") return hostTarget();
  const target = TARGETS.find((candidate) => candidate.name === name);
  if (target) return target;
  const known = TARGETS.map((candidate) => candidate.name).join(", ");
  throw new BuildError(`--target: unknown target "${name}"; known: host, all, ${known}`);
}
