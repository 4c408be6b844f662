import type { Repaired } from "../dataplane/repaired.ts";
import type { Journal } from "./journal.ts";

/** Writes down what was set right in the kernel, or where the backend keeps its routes. */
export function noteRepair(journal: Journal, { objects, owners, where = "kernel" }: Repaired): void {
  const counts = Object.entries(objects).map(([kind, number]) => `${number} ${kind}`);
  journal.note("repair", `repaired in the ${where}: ${counts.join(", ")}`, owners);
}
