import { readFileSync, readlinkSync } from "node:fs";

/** Text of /proc/PID/FILE (proc(5)); empty when the process ended meanwhile, or belongs to somebody stronger. */
export function procText(pid: string | number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}

/** Where the link /proc/PID/FILE points; undefined as above. */
export function procLink(pid: string | number, file: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/${file}`);
  } catch {
    return undefined;
  }
}
