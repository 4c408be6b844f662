import {
  closeSync,
  fchmodSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";

/**
 * Replaces a file so that readers see the old or the new text, never a part: temporary file in the same folder,
 * fsync, rename. The folder is made (0755). A new file gets the mode (0644) whatever the umask; an existing regular one
 * keeps its mode. Throws the system's error when that cannot be done; nothing is left behind then.
 */
export function writeFileAtomically(path: string, text: string, modeOfNew = 0o644): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
  const known = statSync(path, { throwIfNoEntry: false });
  const mode = known?.isFile() ? known.mode & 0o7777 : modeOfNew;
  const temporary = temporaryOf(path);
  const fd = openSync(temporary, "w", 0o600);
  try {
    // Unlike a single write(2) this does not take a full disk's short count for success.
    writeFileSync(fd, text);
    fchmodSync(fd, mode);
    fsyncSync(fd);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  } finally {
    closeSync(fd);
  }
  try {
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/**
 * Does what {@link writeFileAtomically} does, but for the rename: throws the system's error when the file could not
 * be written, and leaves nothing but the folder.
 */
export function rehearseWrite(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
  const temporary = temporaryOf(path);
  closeSync(openSync(temporary, "w", 0o600));
  rmSync(temporary, { force: true });
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) {
    throw Object.assign(new Error("it is a folder"), { code: "EISDIR" });
  }
}

function temporaryOf(path: string): string {
  return join(dirname(path), `.${basename(path)}.${process.pid}.tmp`);
}
