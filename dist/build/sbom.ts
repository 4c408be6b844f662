import { readFileSync } from "node:fs";
import { join } from "node:path";
import { BuildError } from "./error.ts";
import type { BuildIdentity } from "./version.ts";

/** One `packages` entry of bun.lock: `name@version`, registry, dependency info, integrity. */
type LockEntry = readonly [string, ...unknown[]];

/** What is used of a package.json. */
interface PackageFile {
  readonly name: string;
  readonly version: string;
  readonly license?: unknown;
}

/**
 * The bill of materials of the executables as CycloneDX 1.6 JSON (cyclonedx.org): the packages in the given folders,
 * with the hash from bun.lock, and Bun itself. Carries no time stamp, so that equal sources give equal bytes.
 * @throws BuildError when a bundled package is not in bun.lock.
 */
export function renderSbom(repository: string, folders: readonly string[], identity: BuildIdentity): string {
  const lock = Bun.JSONC.parse(readFileSync(join(repository, "bun.lock"), "utf8")) as {
    readonly packages: Readonly<Record<string, LockEntry>>;
  };
  const locked = new Map(Object.values(lock.packages).map((entry) => [entry[0], entry]));
  const components = folders.map((folder) => describePackage(readPackage(folder), locked));
  const bun = { type: "platform", name: "bun", version: Bun.version, purl: `pkg:npm/bun@${Bun.version}` };
  const document = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: { type: "application", name: "flanneld", version: identity.version } },
    components: [bun, ...components],
  };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

function readPackage(folder: string): PackageFile {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as PackageFile;
}

function describePackage(
  { name, version, license }: PackageFile,
  locked: ReadonlyMap<string, LockEntry>,
): object {
  const entry = locked.get(`${name}@${version}`);
  const integrity = entry?.findLast((part) => typeof part === "string" && part.startsWith("sha512-"));
  if (typeof integrity !== "string")
    throw new BuildError(`bun.lock: no integrity for bundled "${name}@${version}"`);
  return {
    type: "library",
    name,
    version,
    // Package URL specification: the @ of a scope is percent-encoded.
    purl: `pkg:npm/${name.replace("@", "%40")}@${version}`,
    ...(typeof license === "string" ? { licenses: [{ expression: license }] } : {}),
    hashes: [
      { alg: "SHA-512", content: Buffer.from(integrity.slice("sha512-".length), "base64").toString("hex") },
    ],
  };
}
