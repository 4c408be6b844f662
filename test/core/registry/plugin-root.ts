import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type DiscoverOptions, discoverPlugins } from "../../../core/registry/discover.ts";
import type { Registry } from "../../../core/registry/registry.ts";

/** A backend that does nothing, as TypeScript source. */
export const WORKING = `
import { defineBackend } from "flannel/sdk";
import * as v from "valibot";
const TYPE: string = "mine";
export default defineBackend({
  optionNames: [],
  options: v.object({}),
  configure: () => ({
    mode: "declarative" as const,
    links: () => [],
    publish: () => ({ backendType: TYPE }),
    mtu: (facts) => facts.external.mtu,
    own: () => [],
    peer: () => ({ objects: [] }),
  }),
});
`;

/** A manifest that is right for a plugin of this name serving a type of the same name. */
export function manifestFor(name: string, changes: Readonly<Record<string, unknown>> = {}): object {
  return {
    schema: 1,
    name,
    version: "1.2.3",
    api: [1],
    backends: [{ type: name, families: ["ipv4"] }],
    main: "index.ts",
    timeouts: { load: 2_000 },
    ...changes,
  };
}

/** A plugin root in a temporary folder; gone with the scope. */
export class TemporaryRoot implements Disposable {
  readonly path: string;
  readonly #parent: string;

  constructor() {
    this.#parent = mkdtempSync(join(tmpdir(), "flannel-plugins-"));
    chmodSync(this.#parent, 0o755);
    this.path = join(this.#parent, "plugins");
    mkdirSync(this.path, { mode: 0o755 });
  }

  /** A path beside the root, outside of it. */
  outside(name: string): string {
    return join(this.#parent, name);
  }

  /** Writes a file below the root (or at an absolute path) with mode 0644 whatever the umask; returns its path. */
  write(file: string, content: string): string {
    const path = file.startsWith("/") ? file : join(this.path, file);
    mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
    writeFileSync(path, content);
    chmodSync(path, 0o644);
    return path;
  }

  /** Adds a plugin folder; `source` undefined leaves the main file out. */
  add(
    name: string,
    changes: Readonly<Record<string, unknown>> = {},
    source: string | undefined = WORKING,
  ): string {
    this.write(`${name}/plugin.json`, JSON.stringify(manifestFor(name, changes), undefined, 2));
    if (source !== undefined) this.write(`${name}/index.ts`, source);
    return join(this.path, name);
  }

  /** What the registry makes of this root, without built-ins. */
  discover(options: Partial<DiscoverOptions> = {}): Registry {
    const embeddedRoot = this.outside("built-in");
    mkdirSync(embeddedRoot, { recursive: true });
    return discoverPlugins({ embeddedRoot, roots: [{ path: this.path, required: true }], ...options });
  }

  [Symbol.dispose](): void {
    rmSync(this.#parent, { recursive: true, force: true });
  }
}
