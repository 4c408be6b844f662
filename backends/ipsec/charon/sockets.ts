import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Ports of DHCP (RFC 2131), in hexadecimal as /proc has them: charon's plugin of that name has sockets of its own. */
const DHCP: ReadonlySet<string | undefined> = new Set(["0043", "0044"]);

/**
 * Whether a charon has UDP sockets of IPv4 to speak IKE through: one that cannot have its ports runs all the same. True
 * where that cannot be seen.
 */
export function hasSockets(pid: number): boolean {
  try {
    const open = new Set(readdirSync(`/proc/${pid}/fd`).map((fd) => inodeOf(`/proc/${pid}/fd/${fd}`)));
    return readSockets(`/proc/${pid}/net/udp`).some((inode) => open.has(inode));
  } catch {
    return true;
  }
}

/** Inode of a socket that is open as a file. */
function inodeOf(link: string): string | undefined {
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(link))?.[1];
  } catch {
    // Closed meanwhile.
    return undefined;
  }
}

/** Inodes of the sockets in /proc/PID/net/udp (proc(5)): the second field is the local address, the tenth the inode. */
function readSockets(file: string): readonly string[] {
  const [, ...lines] = readFileSync(file, "utf8").trim().split("\n");
  return lines.flatMap((line) => {
    const fields = line.trim().split(/\s+/);
    return DHCP.has(fields[1]?.split(":")[1]) ? [] : (fields[9] ?? []);
  });
}
