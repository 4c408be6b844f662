import type { Repaired } from "../dataplane/repaired.ts";
import type { Journal } from "./journal.ts";

/** Writes down what was set right in the kernel. */
export function noteRepair(journal: Journal, { objects, owners }: Repaired): void {
  const counts = Object.entries(objects).map(([kind, number]) => `${number} ${kind}`);
  journal.note("repair", `repaired in the kernel: ${counts.join(", ")}`, owners);
}
