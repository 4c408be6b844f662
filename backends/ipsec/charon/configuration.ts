import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Where packages put strongswan.conf: Debian and Alpine, Red Hat. `STRONGSWAN_CONF` names another place. */
const FILES = ["/etc/strongswan.conf", "/etc/strongswan/strongswan.conf"] as const;
/** Deeper than anybody's files include each other. */
const DEEPEST = 10;

/** strongSwan's configuration as charon reads it: strongswan.conf, each `include` followed by what it names. */
export function readConfiguration(named = process.env.STRONGSWAN_CONF): string {
  return (named ? [named] : FILES).map((file) => readWhole(file, 0)).join("");
}

function readWhole(file: string, depth: number): string {
  let text: string;
  try {
    text = readFileSync(file, "utf8").replaceAll(/#.*$/gm, "");
  } catch {
    // charon does without, and so do we.
    return "";
  }
  if (depth === DEEPEST) return text;
  return text.replaceAll(
    /(^|[{}\s])include\s+(?:"([^"]+)"|([^\s{}]+))/g,
    (line, _before: string, quoted: string | undefined, plain: string) =>
      `${line}\n${filesOf(quoted ?? plain, dirname(file))
        .map((path) => readWhole(path, depth + 1))
        .join("")}`,
  );
}

/** Files of a pattern, relative to the folder of the file that has it. */
function filesOf(pattern: string, folder: string): readonly string[] {
  try {
    const glob = new Bun.Glob(join(folder, pattern).slice(1));
    return [...glob.scanSync({ cwd: "/", absolute: true, dot: true })].sort();
  } catch {
    return [];
  }
}

/** The rule that charon makes for routes of its own (`ip rule`), by number. */
export interface RoutingRule {
  /** 0 where it makes none. */
  readonly table: number;
  readonly priority: number;
}

/** What its options `routing_table` and `routing_table_prio` are without any configuration. */
const DEFAULT = 220;

/** The rule of a charon with that configuration. */
export function routingRuleOf(configuration: string): RoutingRule {
  return {
    table: numberOf(configuration, "routing_table"),
    priority: numberOf(configuration, "routing_table_prio"),
  };
}

/** The last one counts: later files override earlier ones. */
function numberOf(configuration: string, name: string): number {
  const values = [...configuration.matchAll(new RegExp(`\\b${name}\\s*=\\s*"?(\\d+)`, "g"))];
  return values.length === 0 ? DEFAULT : Number(values.at(-1)?.[1]);
}
