import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { writeFileAtomically } from "./atomic-file.ts";

/** Who this node is, and which boot of it this is. */
export interface NodeIdentity {
  /** `<machine>-<interface>`, both hexadecimal; stable across restarts, reboots and address changes. */
  readonly nodeId: string;
  /** Changes with every boot of the kernel. */
  readonly bootId: string;
}

export interface IdentityInput {
  /** `--node-id`; wins when given. */
  readonly wanted: string;
  /** The identity is remembered beside this file. */
  readonly subnetFile: string;
  /** MAC of the external interface: tells cloned disks and namespaces on one machine apart. */
  readonly mac?: string;
}

/** File beside the subnet file that remembers the identity while the host is up. */
export function identityFile(subnetFile: string): string {
  return `${subnetFile}.node-id`;
}

const SHAPE = /^[0-9a-z][0-9a-z.-]{0,62}$/;

/**
 * The identity of this node: the flag, else the remembered one, else derived from /etc/machine-id and the external
 * interface's MAC (and remembered). Never fails: where nothing stable exists the MAC alone is used.
 */
export function identifyNode(input: IdentityInput): NodeIdentity {
  const bootId = shorten(readText("/proc/sys/kernel/random/boot_id"));
  if (input.wanted) return { nodeId: input.wanted, bootId };
  const remembered = readText(identityFile(input.subnetFile));
  if (SHAPE.test(remembered)) return { nodeId: remembered, bootId };
  const machine = readText("/etc/machine-id") || readText("/var/lib/dbus/machine-id") || "none";
  const nodeId = `${shorten(machine)}-${shorten(input.mac ?? "none")}`;
  return { nodeId, bootId };
}

/** Remembers the identity, so that it survives a changed interface until the next reboot. Failure is ignored. */
export function rememberIdentity(subnetFile: string, identity: NodeIdentity): void {
  const file = identityFile(subnetFile);
  if (readText(file) === identity.nodeId) return;
  try {
    writeFileAtomically(file, `${identity.nodeId}\n`);
  } catch {
    // Deriving it again gives the same id unless the interface changed meanwhile.
  }
}

/** Hash, so that the machine id itself, which machine-id(5) calls confidential, is not published. */
function shorten(text: string): string {
  return createHash("sha256").update(`flannel ${text}`).digest("hex").slice(0, 12);
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return "";
  }
}
