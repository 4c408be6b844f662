import { readFileSync, rmSync } from "node:fs";
import { writeFileAtomically } from "../../host/atomic-file.ts";
import type { Finding } from "../../observe/finding.ts";

/** Routes of this node in a cloud's tables, as its daemon left them. */
export interface LeftRoutes {
  /** The `Type` of the backend that made them. */
  readonly backend: string;
  /** Where, for people: region, instance. */
  readonly place: string;
  /** `10.244.7.0/24 → eni-1 in rtb-1` */
  readonly routes: readonly string[];
}

/** The file that says so. It stays until `cleanup` has removed the routes: they outlive daemon and backend. */
export function leftRoutesFile(subnetFile: string): string {
  return `${subnetFile}.cloud`;
}

/** Writes the file, unless it says that already. Throws the system's error. */
export function noteLeftRoutes(file: string, left: LeftRoutes): void {
  const known = readLeftRoutes(file);
  if (known !== undefined && Bun.deepEquals(known, left)) return;
  writeFileAtomically(file, `${JSON.stringify(left)}\n`);
}

/** What the file says; undefined when there is none, or it cannot be understood. */
export function readLeftRoutes(file: string): LeftRoutes | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8"));
    if (typeof value !== "object" || value === null) return undefined;
    const { backend, place, routes } = value as Readonly<Record<string, unknown>>;
    if (typeof backend !== "string" || typeof place !== "string" || !Array.isArray(routes)) return undefined;
    return { backend, place, routes: routes.map(String) };
  } catch {
    return undefined;
  }
}

/** The routes are gone. */
export function forgetLeftRoutes(file: string): void {
  rmSync(file, { force: true });
}

/**
 * What the daemon of another backend has to say about such routes. They are not removed by it: as long as other nodes
 * still use the cloud's tables, they are how those reach this node. Pure.
 */
export function leftRoutesFinding(file: string, { backend, place, routes }: LeftRoutes): Finding {
  return {
    code: "CLOUD_ROUTES_LEFT",
    severity: "warning",
    title: "routes that an earlier backend made are still in the cloud",
    text: `${backend} at ${place}: ${routes.join(", ")}`,
    fix:
      `Remove them in the cloud's console when no node uses ${backend} any more, and then ${file}; the next start does ` +
      "not mention them. Before the next such change: `flanneld cleanup` on the stopped node, while the config still " +
      `names ${backend}.`,
  };
}
