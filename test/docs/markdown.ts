import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

export const repository = resolve(import.meta.dir, "../..");

/** The documents for people, relative to the repository's root. */
export const DOCUMENTS: readonly string[] = [
  "README.md",
  "CHANGELOG.md",
  ...["docs/*.md", "backends/*/*.md", "plugins/*/*.md"].flatMap((pattern) => [
    ...new Bun.Glob(pattern).scanSync({ cwd: repository }),
  ]),
].sort();

/** A fenced block: ```` ```console run dual ```` has the language `console` and the words `run`, `dual`. */
export interface Block {
  readonly document: string;
  /** Line of the opening fence, from 1. */
  readonly line: number;
  readonly language: string;
  readonly words: readonly string[];
  readonly text: string;
}

const FENCE = /^```(\w*)([^\n`]*)\n([\s\S]*?)^```$/gm;

/** Text of a document, or of any file of the repository. */
export function readDocument(document: string): string {
  return readFileSync(join(repository, document), "utf8");
}

/** The fenced blocks of a document, in order. */
export function readBlocks(document: string): readonly Block[] {
  const text = readDocument(document);
  return [...text.matchAll(FENCE)].map(({ 1: language = "", 2: words = "", 3: body = "", index }) => ({
    document,
    line: text.slice(0, index).split("\n").length,
    language,
    words: words.split(" ").filter((word) => word !== ""),
    text: body,
  }));
}

/** A document without its fenced blocks: what is prose, with links and headings. */
export function readProse(document: string): string {
  return readDocument(document).replace(FENCE, "");
}

/** Targets of the links of a document that are not on the web: `configuration.md#leases`, `#leases`. */
export function readLinks(document: string): readonly string[] {
  const targets = [...readProse(document).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
  return targets.filter((target) => !/^https?:/.test(target));
}

/** Anchors of a document's headings as GitHub makes them, and those written as `<a id="…">`. */
export function readAnchors(document: string): ReadonlySet<string> {
  const prose = readProse(document);
  const headings = [...prose.matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
  const written = [...prose.matchAll(/<a id="([^"]+)">/g)].map(([, id = ""]) => id);
  return new Set([...headings, ...written]);
}
