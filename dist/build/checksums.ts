import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Writes `SHA256SUMS` into a folder, in the format of `sha256sum` (`sha256sum -c SHA256SUMS` checks it). */
export function writeChecksums(folder: string, files: readonly string[]): void {
  const lines = [...files].sort().map((file) => `${sha256(join(folder, file))}  ${file}\n`);
  writeFileSync(join(folder, "SHA256SUMS"), lines.join(""));
}

function sha256(file: string): string {
  return createHash("sha256").update(readFileSync(file)).digest("hex");
}
