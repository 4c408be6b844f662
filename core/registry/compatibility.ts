import { API } from "flannel/sdk";
import type { Problem } from "./entry.ts";
import type { Manifest } from "./manifest.ts";

/** Contract generations this daemon speaks. */
export const API_GENERATIONS: readonly number[] = [API];

/** The machine as Node names it. */
export interface Platform {
  /** `process.platform`, e.g. `linux`. */
  readonly os: string;
  /** `process.arch`, e.g. `x64`, `arm64`. */
  readonly arch: string;
}

/** Other names of what `process.arch` calls x64 and arm64 (Go's and the kernel's). */
const ARCH_ALIASES: Readonly<Record<string, string>> = { amd64: "x64", x86_64: "x64", aarch64: "arm64" };

/** Why a plugin cannot talk to this daemon, undefined when they have a contract generation in common. */
export function findApiProblem({ name, api }: Manifest): Problem | undefined {
  if (api.some((generation) => API_GENERATIONS.includes(generation))) return undefined;
  const theirs = api.join(", ");
  const ours = API_GENERATIONS.join(", ");
  return {
    what: `plugin "${name}" speaks plugin API ${theirs}, this flanneld speaks ${ours}`,
    fix: `install a version of "${name}" for API ${ours}, or a flanneld that speaks ${theirs}`,
  };
}

/** Why a plugin is not for this machine, undefined when it is. */
export function findPlatformProblem({ os, arch }: Manifest, platform: Platform): Problem | undefined {
  const fits = (wanted: readonly string[], own: string) =>
    wanted.some((word) => word === "*" || (ARCH_ALIASES[word] ?? word) === own);
  if (fits(os, platform.os) && fits(arch, platform.arch)) return undefined;
  return {
    what: `made for ${os.join("/")} on ${arch.join("/")}, this machine is ${platform.os} on ${platform.arch}`,
    fix: "nothing to do here; to use it on this machine ask its author for a build",
  };
}
