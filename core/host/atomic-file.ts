import {
  closeSync,
  fchmodSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";

/**
 * Replaces a file so that readers see the old or the new text, never a part: temporary file in the same folder,
 * fsync, rename. The folder is made (0755). A new file gets mode 0644 whatever the umask; an existing regular one
 * keeps its mode. Throws the system's error when that cannot be done; nothing is left behind then.
 */
export function writeFileAtomically(path: string, text: string): void {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  const known = statSync(path, { throwIfNoEntry: false });
  const mode = known?.isFile() ? known.mode & 0o7777 : 0o644;
  const temporary = join(folder, `.${basename(path)}.${process.pid}.tmp`);
  const fd = openSync(temporary, "w", 0o600);
  try {
    writeSync(fd, text);
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
