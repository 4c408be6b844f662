import type { TemporaryRoot } from "./plugin-root.ts";

/** A way for a plugin's code to be broken. */
export interface Breakage {
  readonly name: string;
  readonly source: string;
  /** What the reason must contain; `<folder>` stands for the plugin's folder. */
  readonly reason: string;
}

const shape = (members: string) => `export default { ${members} };`;
const OPTIONS = 'options: { "~standard": { version: 1, vendor: "x", validate: (value) => ({ value }) } }';

/** Code that cannot be loaded, and what the operator has to read about it. */
export const BREAKAGES: readonly Breakage[] = [
  {
    name: "syntax",
    source: "export const a = 1;\nconst b = = 2;\n",
    reason: "<folder>/index.ts:2:11: Unexpected =",
  },
  {
    name: "throws",
    source: 'interface Unused {\n  a: string;\n}\n\nthrow new TypeError("boom");\n',
    reason: "<folder>/index.ts:5:11: TypeError: boom",
  },
  { name: "throws-null", source: "throw null;", reason: "threw null" },
  {
    name: "package",
    source: 'import x from "left-pad"; export default x;',
    reason: 'imports the package "left-pad"',
  },
  {
    name: "relative",
    source: 'import x from "./gone.ts"; export default x;',
    reason: "Cannot find module './gone.ts'",
  },
  {
    name: "sdk",
    source: 'import { nope } from "flannel/sdk"; export default nope;',
    reason: "'nope' not found",
  },
  { name: "await", source: "await new Promise(() => {});", reason: "did not finish loading within 300 ms" },
  { name: "loop", source: "for (;;);", reason: "did not finish loading within 300 ms" },
  { name: "exit", source: "process.exit(0);", reason: "ended its thread (process.exit)" },
  { name: "no-default", source: "export const plugin = {};", reason: "has no default export" },
  { name: "no-object", source: "export default () => 1;", reason: "its default export is a function" },
  { name: "no-names", source: shape(OPTIONS), reason: '"optionNames" is missing' },
  { name: "no-schema", source: shape("optionNames: [], options: {}"), reason: "no Standard Schema" },
  {
    name: "no-configure",
    source: shape(`optionNames: [], ${OPTIONS}`),
    reason: '"configure" is missing, not a function',
  },
  {
    name: "bad-check",
    source: shape(`optionNames: [], ${OPTIONS}, configure() {}, check: true`),
    reason: '"check" is a boolean, not a function',
  },
  {
    name: "outside",
    source: 'import "../../elsewhere.ts"; export default {};',
    reason: "from outside its folder",
  },
  {
    name: "text",
    source: 'import t from "./a.txt" with { type: "text" }; export default t;',
    reason: "a.txt is imported, but only",
  },
];

/** Adds all of them to a root. */
export function addBroken(root: TemporaryRoot): void {
  root.write(root.outside("elsewhere.ts"), "export {};");
  for (const { name, source } of BREAKAGES) {
    root.add(
      name,
      { timeouts: { load: source === "for (;;);" || source.startsWith("await") ? 300 : 5_000 } },
      source,
    );
    if (name === "text") root.write("text/a.txt", "hello");
  }
}
