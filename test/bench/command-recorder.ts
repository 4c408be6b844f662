import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Commands that set traffic rules; each may be missing on a host. */
const COMMANDS = [
  "nft",
  ...["iptables", "ip6tables"].flatMap((name) =>
    ["", "-nft", "-legacy"].flatMap((variant) =>
      ["", "-save", "-restore"].map((end) => `${name}${variant}${end}`),
    ),
  ),
];

/** A folder to put in front of PATH, with commands of the same names that note that they were started. */
export class CommandRecorder {
  readonly #folder: string;
  readonly #log: string;

  /** @param directory where the folder is made; removed with it. */
  constructor(directory: string) {
    this.#folder = join(directory, "recorded");
    this.#log = join(directory, "recorded.log");
    mkdirSync(this.#folder);
    writeFileSync(this.#log, "");
    for (const name of COMMANDS) {
      const file = Bun.which(name);
      if (file === null) continue;
      const path = join(this.#folder, name);
      writeFileSync(path, `#!/bin/sh\necho "${name} $*" >>${this.#log}\nexec ${file} "$@"\n`);
      chmodSync(path, 0o755);
    }
  }

  /** PATH for the process to be watched. */
  get path(): string {
    return `${this.#folder}:${process.env.PATH ?? ""}`;
  }

  /** Command lines so far. */
  lines(): readonly string[] {
    return readFileSync(this.#log, "utf8").split("\n").filter(Boolean);
  }
}

/** Whether a command line changes rules: `nft -f -`, `…-restore`, `iptables -A …`; not lists and saves. */
export function isWrite(line: string): boolean {
  const [command = "", ...args] = line.split(" ");
  if (command === "nft") return !args.includes("list") && !args.includes("--version");
  if (command.endsWith("-save")) return false;
  if (command.endsWith("-restore")) return true;
  return args.some((word) => /^-[ADINXFPE]$/.test(word));
}
