import { expect, test } from "bun:test";
import { listSources, readSource } from "../structure/sources.ts";
import { DOCUMENTS, readDocument } from "./markdown.ts";

const TABLE = "docs/operation.md";

/** Words that look like a code and are none: capabilities, variables of files and of the environment, netlink, clouds. */
const NO_CODE =
  /^(?:CAP|FLANNEL|FLANNELD|NLMSG|BUN|NOTIFY|SSL|NODE)_|^(?:DOCKER_OPTS|NORMAL_CVM|NEXT_HOP_(?:INSTANCE_NOT_FOUND|ADDRESS_NOT_ASSIGNED))$/;

/** Anything with an underscore in capitals; a single word only where it stands as a code. */
const WORD = /"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)"|(?:new Fault\(\s*|\bcode: |toFault\([^,()]*, )"([A-Z]+)"/g;

/** `code: "EISDIR"` is the system's. */
const ERRNO = /^E[A-Z]+$/;

function findCodes(): ReadonlySet<string> {
  const codes = new Set<string>();
  for (const path of listSources()) {
    for (const [, word, single] of readSource(path).matchAll(WORD)) {
      const code = word ?? single ?? "";
      if (!NO_CODE.test(code) && !ERRNO.test(code)) codes.add(code);
    }
  }
  // A plugin's state makes its code.
  const states = readSource("core/registry/entry.ts").matchAll(/^ {2}\| "(\w+)"/gm);
  for (const [, state = ""] of states) {
    if (state !== "available" && state !== "active") codes.add(`PLUGIN_${state.toUpperCase()}`);
  }
  return codes;
}

/** Codes in the first column of the tables. */
function documentedCodes(): string[] {
  const rows = readDocument(TABLE).matchAll(/^\| ((?:`[A-Z0-9_]+`(?:, )?)+) \| .+ \| .+ \|$/gm);
  return [...rows].flatMap(([, cell = ""]) => [...cell.matchAll(/`(\w+)`/g)].map(([, code = ""]) => code));
}

const codes = findCodes();

test("codes are found", () => {
  const known = [
    "INTERNAL",
    "ETCD_UNREACHABLE",
    "CONFIG_BOM",
    "LEASE_ENTRY_BAD",
    "PLUGIN_CONFLICT",
    "EXEC_FAILED",
  ];
  expect(known.filter((code) => !codes.has(code))).toEqual([]);
});

test(`every code is explained in ${TABLE}, section "Codes"`, () => {
  const documented = new Set(documentedCodes());
  expect([...codes].filter((code) => !documented.has(code)).sort()).toEqual([]);
});

test("every code that is explained exists", () => {
  expect(documentedCodes().filter((code) => !codes.has(code))).toEqual([]);
});

test("documents name no code that does not exist", () => {
  const families = new Set([...codes].map((code) => code.split("_")[0]));
  const stale = DOCUMENTS.flatMap((document) =>
    [...readDocument(document).matchAll(/`([A-Z]+_[A-Z_]+)`/g)]
      .map(([, word = ""]) => word)
      .filter((word) => !NO_CODE.test(word) && families.has(word.split("_")[0]) && !codes.has(word))
      .map((word) => `${document}: ${word}`),
  );
  expect(stale).toEqual([]);
});
