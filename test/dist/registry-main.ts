/**
 * A program that does nothing but find and load plugins, so that the loader can be tried inside an executable:
 * `registry-main [--root DIR]… [--allow-override NAME]… [TYPE]…` prints one JSON object and stays alive meanwhile.
 */
import { parseArgs } from "node:util";
import { Fault } from "../../core/observe/fault.ts";
import { discoverPlugins } from "../../core/registry/discover.ts";
import { embeddedRoot } from "../../core/registry/embedded.ts";
import { optionSamples } from "../contract/samples.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    root: { type: "string", multiple: true, default: [] },
    "allow-override": { type: "string", multiple: true, default: [] },
  },
});

const started = performance.now();
const registry = discoverPlugins({
  embeddedRoot: embeddedRoot(),
  roots: values.root.map((path) => ({ path, required: true })),
  allowOverride: values["allow-override"],
});
const milliseconds = performance.now() - started;

const loads: Record<string, unknown> = {};
for (const type of positionals) {
  try {
    const { plugin } = await registry.load(type);
    const families = { ipv4: true, ipv6: false };
    const result = await plugin.options["~standard"].validate(optionSamples(type)[0]);
    if (result.issues) throw new Error(`${type}: ${result.issues[0]?.message}`);
    const backend = plugin.configure({
      options: result.value,
      families,
      networks: { ipv4: "10.5.0.0/16" },
      nodeId: "node",
    });
    loads[type] = { mode: backend.mode };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    loads[type] = { code: error.code, message: error.message, hint: error.hint };
  }
}
console.log(JSON.stringify({ milliseconds, rows: registry.rows, findings: registry.findings, loads }));
process.exit(0);
