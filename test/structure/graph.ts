import { posix } from "node:path";
import { readSource } from "./sources.ts";

/** One import, re-export or `import()` of a file. */
export interface Import {
  readonly from: string;
  /** A file of the repository (`core/net/ipv4.ts`), or a package or built-in module by its name. */
  readonly to: string;
  /** Only types: nothing is loaded at run time. */
  readonly typeOnly: boolean;
  /** Loaded when it is needed, by `import()`. */
  readonly lazy: boolean;
}

/** `import …`, `import … from`, `export … from` at the beginning of a line, over several lines where they are. */
const STATEMENT = /^(import|export)\s+(type\s)?(?:([^"';()=]*?)\sfrom\s+)?"([^"\n]+)"/gm;
const LAZY = /\bimport\(\s*"([^"\n]+)"\s*\)(\s*\.\w)?/g;
const COMMENT = /\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm;

/** All imports of a file of the repository. */
export function importsOf(path: string, text = readSource(path)): readonly Import[] {
  const code = text.replace(COMMENT, "");
  const resolved = (to: string) => (to.startsWith(".") ? posix.join(posix.dirname(path), to) : to);
  const imports: Import[] = [];
  for (const [, , type, names, to = ""] of code.matchAll(STATEMENT)) {
    imports.push({ from: path, to: resolved(to), typeOnly: Boolean(type) || isTypeList(names), lazy: false });
  }
  for (const [, to = "", member] of code.matchAll(LAZY)) {
    // `import("x").T` is a type, save behind `await`, which has brackets around it.
    imports.push({ from: path, to: resolved(to), typeOnly: member !== undefined, lazy: true });
  }
  return imports;
}

/** Whether every name in `{ type A, type B }` is a type. */
function isTypeList(names: string | undefined): boolean {
  const list = /^\{([\s\S]*)\}$/.exec(names?.trim() ?? "")?.[1];
  if (list === undefined) return false;
  const entries = list.split(",").map((entry) => entry.trim());
  return entries.filter((entry) => entry !== "").every((entry) => entry.startsWith("type "));
}

/** The circles of a graph, each once, from its smallest node on. */
export function findCircles(edges: ReadonlyMap<string, ReadonlySet<string>>): readonly (readonly string[])[] {
  const circles = new Map<string, readonly string[]>();
  const done = new Set<string>();
  const visit = (node: string, path: readonly string[]): void => {
    const at = path.indexOf(node);
    if (at >= 0) {
      const circle = path.slice(at);
      const first = circle.indexOf(circle.toSorted()[0] ?? "");
      const turned = [...circle.slice(first), ...circle.slice(0, first)];
      circles.set(turned.join(" "), turned);
      return;
    }
    if (done.has(node)) return;
    for (const next of edges.get(node) ?? []) visit(next, [...path, node]);
    done.add(node);
  };
  for (const node of edges.keys()) visit(node, []);
  return [...circles.values()];
}

/** A graph of the given pairs. */
export function graphOf(
  pairs: Iterable<readonly [string, string]>,
): ReadonlyMap<string, ReadonlySet<string>> {
  const edges = new Map<string, Set<string>>();
  for (const [from, to] of pairs) {
    const known = edges.get(from);
    if (known) known.add(to);
    else edges.set(from, new Set([to]));
  }
  return edges;
}
