/**
 * What the documents show is what happens. A fenced block is tried out when its info string says so:
 *
 * - ```` ```json config ````: a network config that `flanneld config check` finds no fault with;
 * - ```` ```sh run [NODE] ````: shell text, run as root on a node, that has to succeed;
 * - ```` ```console run [NODE] ````: commands after `$ `, each followed by what it prints, where `…` stands for anything.
 *
 * NODE names the node and how it was laid out (see documented-node.ts); blocks of one document that name the same one
 * run on it one after the other.
 */
import { describe, expect, test } from "bun:test";
import { executable } from "../lab/daemon.ts";
import { DocumentedNode } from "./documented-node.ts";
import { type Block, DOCUMENTS, readBlocks } from "./markdown.ts";
import { matches, readTranscript } from "./transcript.ts";

const TIMEOUT = 120_000;
const blocks = DOCUMENTS.flatMap(readBlocks);

test(
  "network configs are valid",
  async () => {
    const configs = blocks.filter(({ language, words }) => language === "json" && words.includes("config"));
    expect(configs.length).toBeGreaterThan(3);
    for (const block of configs) {
      const check = Bun.spawn([executable(), "config", "check", "-"], {
        stdin: new TextEncoder().encode(block.text),
        stdout: "ignore",
        stderr: "pipe",
      });
      expect({ ...placeOf(block), printed: await new Response(check.stderr).text() }).toEqual({
        ...placeOf(block),
        printed: "",
      });
    }
  },
  TIMEOUT,
);

describe.each(DOCUMENTS)("%s", (document) => {
  const nodes = Map.groupBy(
    blocks.filter((block) => block.document === document && block.words[0] === "run"),
    ({ words }) => words[1] ?? "bare",
  );
  test.each([...nodes.keys()])(
    "does what it shows on the node: %s",
    async (word) => {
      await using node = await DocumentedNode.create(word);
      for (const block of nodes.get(word) ?? []) await tryOut(node, block);
    },
    TIMEOUT,
  );
});

async function tryOut(node: DocumentedNode, block: Block): Promise<void> {
  if (block.language === "sh") {
    expect({ ...placeOf(block), ...(await node.run(block.text)) }).toMatchObject({
      ...placeOf(block),
      code: 0,
    });
    return;
  }
  const steps = readTranscript(block.text);
  expect(steps.length).toBeGreaterThan(0);
  for (const { command, output } of steps) {
    const { printed } = await node.run(command);
    if (matches(output, printed)) continue;
    throw new Error(`${block.document}:${block.line}: ${command}\nshown:\n${output}\n\nprinted:\n${printed}`);
  }
}

function placeOf({ document, line }: Block): { place: string } {
  return { place: `${document}:${line}` };
}
