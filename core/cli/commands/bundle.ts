import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { run } from "../../host/exec.ts";
import { identityFile } from "../../host/node-id.ts";
import { Fault } from "../../observe/fault.ts";
import { askDaemon } from "../../observe/status-client.ts";
import type { Registry } from "../../registry/registry.ts";
import { openTrafficHost } from "../../traffic/host.ts";
import { collect, hostSources, type Source } from "../bundle/collect.ts";
import { cleanDocument, Redactor } from "../bundle/redact.ts";
import { announce, commandLog } from "../command-log.ts";
import { type CommandLine, describeOptions } from "../flags.ts";
import { withLeases } from "../lease-access.ts";
import { requireRoot } from "./ask.ts";
import { listBackends } from "./backends.ts";
import { preflight } from "./check.ts";
import { listLeases } from "./leases-ls.ts";
import type { Answered } from "./status.ts";
import { commitText, versionText } from "./version.ts";

/**
 * `flanneld bundle [FILE]`: an archive (tar.gz, readable by its owner only) of all that helps to help: status, journal,
 * config, leases, kernel, firewall, versions, log. No secret is in it.
 * @throws Fault `PRIVILEGE_MISSING`, `BUNDLE_FILE`.
 */
export async function writeBundle(line: CommandLine, discover: () => Registry): Promise<Answered> {
  requireRoot("bundle");
  announce(line);
  const folder = `flannel-bundle-${hostname()}-${new Date().toISOString().replace(/[-:]|\..*/g, "")}`;
  const path = line.operand || `${folder}.tar.gz`;
  const registry = discover();
  const config = await readConfigText(line);
  const { text: cleanConfig, secrets } = cleanConfigText(config, secretNames(registry));
  const redactor = new Redactor([line.options.etcdPassword ?? "", ...secrets]);
  const sources = [
    ...ownSources(line, registry, cleanConfig),
    ...hostSources(openTrafficHost(run).legacyTables(4) ?? []),
  ];
  const { files, missing } = await collect(sources, (text) => redactor.clean(text));
  const named = Object.entries({ ...files, "missing.txt": missing.map((text) => `${text}\n`).join("") });
  const contents = Object.fromEntries(named.map(([name, text]) => [`${folder}/${name}`, text]));
  save(path, await new Bun.Archive(contents, { compress: "gzip" }).bytes());
  const told = missing.map((text) => `  ${text}\n`).join("");
  const gaps = missing.length === 0 ? "" : `Not available:\n${told}`;
  return { text: `${path}: ${Object.keys(files).length} files, secrets redacted\n${gaps}`, code: 0 };
}

/** What the daemon, the store and our own commands tell. */
function ownSources(line: CommandLine, registry: Registry, config: string | Fault): readonly Source[] {
  const { options } = line;
  const asked = { ...line, output: "json" as const, operand: "", warnings: [] };
  const daemon = async (path: string) =>
    `${JSON.stringify(await askDaemon(options.subnetFile, path), null, 2)}\n`;
  return [
    ["version.txt", () => `flanneld ${versionText()} ${commitText()}\nbun ${Bun.version}\n`],
    ["options.json", () => `${JSON.stringify(describeOptions(options), null, 2)}\n`],
    ["status.json", () => daemon("/status")],
    ["journal.json", () => daemon("/journal")],
    [
      "config.json",
      () => {
        if (config instanceof Fault) throw config;
        return config;
      },
    ],
    ["leases.json", async () => (await listLeases(asked)).text],
    ["check.json", async () => (await preflight(asked, () => registry)).text],
    ["backends.txt", () => listBackends(registry, "text")],
    ["subnet.env", () => readFileSync(options.subnetFile, "utf8")],
    ["node-id", () => readFileSync(identityFile(options.subnetFile), "utf8")],
  ];
}

async function readConfigText(line: CommandLine): Promise<string | Fault> {
  try {
    const document = await withLeases(line.options, commandLog(line), (manager, signal) =>
      manager.config(signal),
    );
    return document?.text ?? new Fault("CONFIG_MISSING", "etcd has no network config");
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
}

/** The config without secrets, and what they were. One that is no JSON is left to the redactor. */
function cleanConfigText(
  config: string | Fault,
  names: readonly string[],
): { text: string | Fault; secrets: readonly string[] } {
  if (config instanceof Fault) return { text: config, secrets: [] };
  try {
    const { document, secrets } = cleanDocument(JSON.parse(config), names);
    return { text: `${JSON.stringify(document, null, 2)}\n`, secrets };
  } catch {
    return { text: config, secrets: [] };
  }
}

/** Option paths that the manifests of this host call secret. */
function secretNames(registry: Registry): readonly string[] {
  return registry.entries.flatMap(({ manifest }) => manifest?.secrets ?? []);
}

/** A new file that only its owner may read. */
function save(path: string, bytes: Uint8Array): void {
  let fd: number;
  try {
    fd = openSync(path, "wx", 0o600);
  } catch (error) {
    const { code = "it cannot be made" } = error as NodeJS.ErrnoException;
    throw new Fault("BUNDLE_FILE", `cannot make ${path}: ${code}`, {
      hint:
        code === "EEXIST"
          ? "Name another FILE, or remove that one."
          : "Name a FILE in a folder that can be written.",
      cause: error,
    });
  }
  try {
    writeFileSync(fd, bytes);
  } catch (error) {
    rmSync(path, { force: true });
    throw new Fault("BUNDLE_FILE", `cannot write ${path}: ${(error as NodeJS.ErrnoException).code}`, {
      hint: "Look whether the disk is full.",
      cause: error,
    });
  } finally {
    closeSync(fd);
  }
}
