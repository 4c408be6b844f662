import { readFileSync } from "node:fs";
import { join } from "node:path";

/** What the executable says of itself. */
export interface BuildIdentity {
  /** From package.json, with `+<commit>` (and `.dirty`) when it is not built from a version's tag. */
  readonly version: string;
  /** Abbreviated commit, empty outside a git checkout. */
  readonly commit: string;
}

/** Reads the identity of the source tree; nothing of it depends on the time or machine of the build. */
export function identifyBuild(repository: string): BuildIdentity {
  const { version } = JSON.parse(readFileSync(join(repository, "package.json"), "utf8")) as {
    version: string;
  };
  const commit = git(repository, "rev-parse", "--short=12", "HEAD");
  if (commit === "") return { version, commit };
  const dirty = git(repository, "status", "--porcelain", "--untracked-files=no") !== "";
  const tagged = git(repository, "tag", "--points-at", "HEAD").split("\n").includes(`v${version}`);
  if (tagged && !dirty) return { version, commit };
  return { version: `${version}+${commit}${dirty ? ".dirty" : ""}`, commit };
}

function git(repository: string, ...args: string[]): string {
  if (!Bun.which("git")) return "";
  const result = Bun.spawnSync(["git", "-C", repository, ...args], { stderr: "ignore" });
  return result.success ? result.stdout.toString().trim() : "";
}
