import type { Registry } from "../../registry/registry.ts";
import { renderTable } from "../table.ts";

/** `flanneld backends [-o json]`: every backend type, the plugin behind it, and why one cannot be used. */
export function listBackends(registry: Registry, output: "text" | "json"): string {
  const rows = registry.rows;
  if (output === "json")
    return `${JSON.stringify({ backends: rows, findings: registry.findings }, null, 2)}\n`;
  return renderTable(
    ["TYPE", "PLUGIN", "VERSION", "FROM", "STATUS", "REASON"],
    rows.map((row) => [
      [row.type, ...row.aliases].join(","),
      row.plugin,
      row.version || "-",
      row.from,
      row.status,
      row.reason || "-",
    ]),
  );
}
