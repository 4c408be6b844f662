import * as v from "valibot";
import type { Fault } from "../observe/fault.ts";
import { readChecked } from "./strict-json.ts";

/** Version of the manifest's own grammar this daemon reads. */
export const MANIFEST_SCHEMA = 1;

/** Name of the manifest in a plugin's folder. */
export const MANIFEST_FILE = "plugin.json";

/** A phase that takes longer than this is cut off whatever the manifest says, ms. */
const LONGEST_PHASE_MS = 300_000;

const NAME_RULE = "must be 1 to 39 lower-case letters, digits and dashes, starting with a letter";
const name = v.pipe(v.string("must be text"), v.regex(/^[a-z][a-z0-9-]{0,38}$/, NAME_RULE));

const text = v.string("must be text");
const texts = v.optional(v.array(text, "must be a list of texts"), []);

const overhead = v.pipe(
  v.number("must be a number of bytes"),
  v.integer("must be a whole number of bytes"),
  v.minValue(0, "must not be negative"),
  v.maxValue(1_000, "must be at most 1000 bytes"),
);

function phase(fallback: number) {
  const number = v.pipe(
    v.number("must be a number of milliseconds"),
    v.integer("must be a whole number of milliseconds"),
    v.minValue(1, "must be at least 1 ms"),
    v.maxValue(LONGEST_PHASE_MS, `must be at most ${LONGEST_PHASE_MS} ms`),
  );
  return v.optional(number, fallback);
}

const backend = v.strictObject({
  type: name,
  aliases: v.optional(v.array(name, "must be a list of names"), []),
  families: v.pipe(
    v.array(v.picklist(["ipv4", "ipv6"], 'must be "ipv4" or "ipv6"'), "must be a list of families"),
    v.minLength(1, "must name at least one family"),
  ),
  overhead: v.optional(
    v.union(
      [overhead, v.strictObject({ ipv4: v.optional(overhead, 0), ipv6: v.optional(overhead, 0) })],
      'must be a number of bytes from 0 to 1000, or {"ipv4": BYTES, "ipv6": BYTES}',
    ),
    0,
  ),
  stability: v.optional(
    v.picklist(["stable", "experimental", "deprecated"], 'must be "stable", "experimental" or "deprecated"'),
    "experimental",
  ),
});

const requires = v.strictObject({
  kernelModules: texts,
  commands: texts,
  capabilities: v.optional(
    v.array(v.pipe(text, v.regex(/^CAP_[A-Z0-9_]+$/, 'must look like "CAP_NET_ADMIN"'))),
    [],
  ),
  ports: v.optional(
    v.array(v.pipe(text, v.regex(/^(udp|tcp)\/[1-9][0-9]{0,4}$/, 'must look like "udp/8472"'))),
    [],
  ),
  env: texts,
});

const timeouts = v.strictObject({
  load: phase(10_000),
  prepare: phase(30_000),
  sync: phase(30_000),
  stop: phase(10_000),
});

const manifest = v.strictObject({
  schema: v.literal(MANIFEST_SCHEMA, `must be ${MANIFEST_SCHEMA}`),
  name,
  version: v.pipe(
    text,
    v.regex(
      /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$/,
      "must be a semantic version such as 1.0.0",
    ),
  ),
  api: v.pipe(
    v.array(
      v.pipe(
        v.number("must be a number"),
        v.integer("must be a whole number"),
        v.minValue(1, "must be at least 1"),
      ),
      "must be a list of contract generations such as [1]",
    ),
    v.minLength(1, "must list at least one contract generation, such as [1]"),
  ),
  description: v.optional(text, ""),
  backends: v.pipe(
    v.array(backend, "must be a list of backends"),
    v.minLength(1, "must hold at least one backend"),
  ),
  main: v.optional(
    v.pipe(
      text,
      v.regex(/\.m?[jt]s$/, "must be an ES module: .ts, .mts, .js or .mjs"),
      v.check(
        (path) => !path.startsWith("/") && !path.split("/").includes(".."),
        "must be a path inside the plugin's folder",
      ),
    ),
    "index.js",
  ),
  os: v.optional(v.array(text, "must be a list of texts"), ["linux"]),
  arch: v.optional(v.array(text, "must be a list of texts"), ["*"]),
  requires: v.optional(requires, {}),
  secrets: texts,
  timeouts: v.optional(timeouts, {}),
  overrides: v.optional(v.array(name, "must be a list of plugin names"), []),
  sha256: v.optional(v.pipe(text, v.regex(/^[0-9a-f]{64}$/, "must be 64 lower-case hex digits"))),
});

/** A plugin.json with its defaults filled in; docs/plugins.md explains the keys. */
export type Manifest = v.InferOutput<typeof manifest>;

/**
 * Reads the text of a plugin.json; `file` heads the messages.
 * @throws Fault `PLUGIN_MANIFEST` naming file, position, key and value; further ones in `others`.
 */
export function readManifest(source: string, file: string): Manifest {
  return readChecked(manifest, source, file, "PLUGIN_MANIFEST");
}

/** What a manifest claims, read as far as it can be: for plugins that cannot be used. */
export interface Claims {
  /** The `schema` number, when there is one. */
  readonly schema?: number;
  readonly types: readonly string[];
}

/** Reads the claims of a manifest that may be broken; never throws. */
export function readClaims(source: string): Claims {
  try {
    const parsed = v.safeParse(claims, JSON.parse(source));
    if (!parsed.success) return { types: [] };
    const { schema, backends } = parsed.output;
    const types = backends.flatMap(({ type, aliases }) => [type, ...aliases]).filter((word) => word !== "");
    return {
      types: [...new Set(types.map((word) => word.toLowerCase()))],
      ...(schema === undefined ? {} : { schema }),
    };
  } catch {
    return { types: [] };
  }
}

const claims = v.object({
  schema: v.fallback(v.optional(v.number()), undefined),
  backends: v.fallback(
    v.array(
      v.object({
        type: v.fallback(v.string(), ""),
        aliases: v.fallback(v.array(v.string()), []),
      }),
    ),
    [],
  ),
});

/** How many mistakes of one manifest are told at a time. */
const TOLD_AT_ONCE = 3;

/** A manifest fault and its companions as one line. */
export function manifestReason(fault: Fault): string {
  const messages = [fault, ...fault.others].map((each) => each.message);
  const hidden = messages.length - TOLD_AT_ONCE;
  return messages.slice(0, TOLD_AT_ONCE).join("; ") + (hidden > 0 ? `; and ${hidden} more` : "");
}
