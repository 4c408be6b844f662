/** No reason not to be ready goes untried: each that the sources can give is broken and repaired by a test of a daemon. */
import { expect, test } from "bun:test";
import { listFiles, listSources, readSource } from "../../structure/sources.ts";

/** Serve commands only: what they find is printed, and no daemon hears of it. */
const COMMANDS = /^core\/cli\/(?!commands\/run\.ts)/;

const daemonSources = listSources().filter((path) => !COMMANDS.test(path));

/** Places whose code comes from elsewhere, and the expression that finds it there. */
const ELSEWHERE: Readonly<Record<string, readonly (readonly [file: string, code: RegExp])[]>> = {
  "core/lease/etcd/outage.ts": [["core/lease/etcd/failure.ts", /"(ETCD_\w+)",/g]],
  "core/dataplane/cloud/finding.ts": [
    ["core/dataplane/cloud/finding.ts", /\["(CLOUD_\w+)",/g],
    // A Fault of core's own.
    ["core/dataplane/phase.ts", /new Fault\("(\w+)"/g],
  ],
  "core/observe/http.ts": [["core/observe/http.ts", /code: "(\w+)"/g]],
  // What an error of its check says ends the start, or refuses a config: CONFIG_REFUSED is the reason then.
  "backends/wireguard/index.ts": [],
};

const AT_START =
  "found by a backend's check: it ends the start, or is the text of CONFIG_REFUSED or HANDOVER_FAILED";
const PASSING = "over with the next try, which comes at once: nothing to be repaired";

/** Codes that a finding of severity error has and that keep no running daemon from being ready. */
const EXEMPT: Readonly<Record<string, string>> = {
  HOST_GW_NAT: AT_START,
  IPIP_MTU: AT_START,
  IPSEC_CHARON_MISSING: AT_START,
  PLUGIN_REQUIREMENT_MISSING: AT_START,
  TEMPLATE_NO_ADDRESS: AT_START,
  UDP_MTU_TOO_SMALL: AT_START,
  WIREGUARD_MODE: AT_START,
  WIREGUARD_MTU_IPV6: AT_START,
  WIREGUARD_PORTS_EQUAL: AT_START,
  ETCD_COMPACTED: PASSING,
  ETCD_LEASE_GONE: PASSING,
  ETCD_CLOSED: "the daemon stops",
};

/** `const TRAFFIC = { failed: "TRAFFIC_FAILED" }` and `const CODE = "CONFIG_MISSING"`, by name and member. */
function constantOf(path: string, expression: string): string | undefined {
  const [name = "", member] = expression.split(".");
  const folder = path.slice(0, path.lastIndexOf("/"));
  for (const file of [path, `${folder}/findings.ts`]) {
    if (!daemonSources.includes(file)) continue;
    const [, value = ""] = new RegExp(`\\bconst ${name} = ("\\w+"|\\{[^}]*\\})`).exec(readSource(file)) ?? [];
    const [, code] = (member ? new RegExp(`\\b${member}: "(\\w+)"`) : /^"(\w+)"$/).exec(value) ?? [];
    if (code !== undefined) return code;
  }
  return undefined;
}

/** The object literal around a place in a text. */
function literalAround(text: string, at: number): string {
  let from = at;
  for (let depth = 0; from > 0 && depth < 1; from--) {
    if (text[from - 1] === "{") depth += 1;
    else if (text[from - 1] === "}") depth -= 1;
  }
  let to = at;
  for (let depth = 0; to < text.length && depth < 1; to++) {
    if (text[to] === "}") depth += 1;
    else if (text[to] === "{") depth -= 1;
  }
  return text.slice(from, to);
}

/** Codes of the findings of severity error that a source makes; those that cannot be told are its path. */
function codesOf(path: string): readonly string[] {
  const text = readSource(path);
  const judged = [...text.matchAll(/\badd\(\s*"([A-Z_]+)"/g)].map(([, code = ""]) => code);
  const found = [...text.matchAll(/\bseverity: [^,\n]*"error"/g)].flatMap(({ index }) => {
    const [, expression = "code"] = /\bcode: ([\w."]+)/.exec(literalAround(text, index)) ?? [];
    if (expression.startsWith('"')) return [expression.slice(1, -1)];
    const known = constantOf(path, expression);
    if (known !== undefined) return [known];
    const places = ELSEWHERE[path];
    if (!places) return [`${path}: ${expression}`];
    return places.flatMap(([file, pattern]) =>
      [...readSource(file).matchAll(pattern)].map(([, code = ""]) => code),
    );
  });
  return path === "core/agent/readiness.ts" ? [...judged, ...found] : found;
}

const codes = new Set(daemonSources.flatMap(codesOf));

/** Codes that are named by tests with which a daemon loses its readiness and gets it back. */
const tried = new Set(
  listFiles("test/e2e")
    .filter((path) => path.endsWith(".ts") && path !== "test/e2e/health/complete.test.ts")
    .map(readSource)
    .filter((text) => text.includes('/readiness.ts"'))
    .flatMap((text) => [...text.matchAll(/"([A-Z]+(?:_[A-Z]+)*)"/g)])
    .map(([, code = ""]) => code),
);

test("reasons are found", () => {
  const known = [
    "STARTING",
    "CONFIG_MISSING",
    "TRAFFIC_NO_TOOL",
    "LEASE_CONFLICT",
    "CLOUD_DENIED",
    "STRAY_ERROR",
  ];
  expect(known.filter((code) => !codes.has(code))).toEqual([]);
});

test("each is broken and repaired", () => {
  expect([...codes].filter((code) => !(code in EXEMPT) && !tried.has(code)).sort()).toEqual([]);
});

test("what is exempt exists", () => {
  expect(Object.keys(EXEMPT).filter((code) => !codes.has(code))).toEqual([]);
});
