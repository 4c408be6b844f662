/**
 * `bun dist/build/docs.ts [--check]`: writes the parts of docs/ that follow from the code. They stand between
 * `<!-- generated: NAME -->` and `<!-- /generated -->`. With `--check` nothing is written; exit code 1 when a document
 * is out of date.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { AGENT_METRICS } from "../../core/agent/metrics.ts";
import {
  environmentName,
  FLAG_NAMES,
  type FlagGroup,
  type FlagName,
  flagSpec,
  GROUP_TITLES,
} from "../../core/cli/flag-table.ts";

const SECTION = /(<!-- generated: (.+?) -->\n)[\s\S]*?(<!-- \/generated -->)/g;

/**
 * A document with all its generated sections written anew. Sections are `flags GROUP` and `metrics`.
 * @throws Error when a section has a name that nothing generates.
 */
export function regenerate(document: string): string {
  return document.replace(SECTION, (_, head: string, name: string, foot: string) => {
    if (name === "metrics") return `${head}${metricTable()}\n${foot}`;
    const group = /^flags (\w+)$/.exec(name)?.[1];
    if (group === undefined || !Object.hasOwn(GROUP_TITLES, group)) {
      throw new Error(`nothing generates the section "${name}"`);
    }
    return `${head}${flagTable(group as FlagGroup)}\n${foot}`;
  });
}

/** The flags of a group as a table in Markdown. */
export function flagTable(group: FlagGroup): string {
  const names = FLAG_NAMES.filter((name) => flagSpec(name).group === group);
  return ["| flag | default | meaning |", "|---|---|---|", ...names.map(flagRow)].join("\n");
}

/** All metrics as a table in Markdown. */
export function metricTable(): string {
  const rows = AGENT_METRICS.map(({ name, type, labels = [], help }) => {
    const shown = labels.map((label) => `\`${label}\``).join(", ");
    return `| \`${name}\` | ${type} | ${shown} | ${escapeBars(help)} |`;
  });
  return ["| metric | type | labels | meaning |", "|---|---|---|---|", ...rows].join("\n");
}

function flagRow(name: FlagName): string {
  const { type, initial, initialText, help, noEnvironment } = flagSpec(name);
  const value = type.placeholder === "" ? "" : ` ${type.placeholder}`;
  const variable = noEnvironment ? "not from the environment" : `\`${environmentName(name)}\``;
  const shown = initialText ?? (initial === undefined ? "none" : `\`${initial}\``);
  const notes = type.repeats ? `${help} May be repeated.` : help;
  return `| \`--${name}${escapeBars(value)}\`<br>${variable} | ${shown} | ${escapeBars(notes)} |`;
}

/** A bar would end the cell. */
function escapeBars(text: string): string {
  return text.replaceAll("|", "\\|");
}

if (import.meta.main) {
  const folder = resolve(import.meta.dir, "../../docs");
  const check = process.argv.includes("--check");
  for (const name of readdirSync(folder).filter((each) => each.endsWith(".md"))) {
    const path = join(folder, name);
    const text = readFileSync(path, "utf8");
    const wanted = regenerate(text);
    if (wanted === text) continue;
    console.log(`docs/${name} ${check ? "is out of date: bun dist/build/docs.ts" : "written"}`);
    if (check) process.exitCode = 1;
    else writeFileSync(path, wanted);
  }
}
