import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { DOCUMENTS, readAnchors, readLinks, repository } from "./markdown.ts";

test.each(DOCUMENTS)("links of %s lead somewhere", (document) => {
  const broken = readLinks(document).filter((link) => {
    const [path = "", anchor] = link.split("#");
    const target = path === "" ? document : normalize(join(dirname(document), path));
    if (!existsSync(join(repository, target))) return true;
    return anchor !== undefined && !readAnchors(target).has(anchor);
  });
  expect(broken).toEqual([]);
});
