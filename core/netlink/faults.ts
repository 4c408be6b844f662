import { Fault } from "../observe/fault.ts";
import { describeErrno, EPERM } from "./errno.ts";

/** What the kernel said no with: a positive errno, and its own words when it gave any (extended ack). */
export interface Refusal {
  readonly errno: number;
  readonly text: string;
}

/** The kernel refuses us as a whole. */
export function permissionFault(what: string): Fault {
  return new Fault("NETLINK_PERMISSION", `the kernel does not permit to ${what}: ${describeErrno(EPERM)}`, {
    hint: "Run as root, or give the process CAP_NET_ADMIN (in a container: securityContext.capabilities.add NET_ADMIN).",
  });
}

/** A refused request as a fault: `NETLINK_PERMISSION` for EPERM, else `NETLINK_REFUSED`. `what` is a verb phrase. */
export function refusalFault(what: string, { errno, text }: Refusal, hint = ""): Fault {
  if (errno === EPERM) return permissionFault(what);
  return new Fault("NETLINK_REFUSED", `cannot ${what}: ${describeErrno(errno, text)}`, { hint });
}

/** Bytes from the kernel that are no netlink. */
export function malformedFault(what: string): Fault {
  return new Fault("NETLINK_MALFORMED", `malformed netlink message: ${what}`, {
    hint: "The kernel sent something unknown. Report it together with the kernel version.",
  });
}

/** An object that cannot be written down for the kernel: its address, prefix, MAC or name is not one. */
export function badObjectFault(what: string, value: string): Fault {
  return new Fault("NETLINK_BAD_OBJECT", `not ${what}: "${value}"`);
}

/** Notices were lost: whoever listens must dump and subscribe anew. */
export function overrunFault(why: string, cause?: unknown): Fault {
  return new Fault("NETLINK_OVERRUN", `netlink notices were lost: ${why}`, {
    hint: "Nothing to do: the kernel's state is read again from scratch.",
    ...(cause === undefined ? {} : { cause }),
  });
}

/** The device asked for does not exist. */
export function linkMissingFault(name: string): Fault {
  return new Fault("LINK_MISSING", `there is no device "${name}"`, { hint: "Look at `ip link show`." });
}

/** A device of that name exists already. */
export function linkExistsFault(name: string): Fault {
  return new Fault("LINK_EXISTS", `a device "${name}" exists already`, {
    hint: `Look at \`ip -d link show dev ${name}\`.`,
  });
}

/** What no two devices of a kind may share, and how the operator gets out of it. */
const SHARED = {
  vxlan: { claim: "VNI and port", way: ", or choose another VNI or Port in the network config" },
  ipip: { claim: "local and remote address", way: "" },
} as const;

/** Another device of another name holds what the new one needs. */
export function linkConflictFault(
  name: string,
  kind: keyof typeof SHARED,
  text: string,
  holder: string | undefined,
): Fault {
  const { claim, way } = SHARED[kind];
  const by = holder === undefined ? "another device" : `device "${holder}"`;
  return new Fault("LINK_CONFLICT", `cannot create "${name}": ${by} holds the same ${claim} (${text})`, {
    hint:
      holder === undefined
        ? `Look for it with \`ip -d link show type ${kind}\`${way}.`
        : `Delete it with \`ip link delete ${holder}\`${way}.`,
  });
}

/** The device a new one is to be laid on does not exist. */
export function underlayMissingFault(name: string, underlay: string): Fault {
  return new Fault(
    "LINK_UNDERLAY_MISSING",
    `cannot create "${name}": its underlay device "${underlay}" is missing`,
    {
      hint: "Look at `ip link show`; choose the interface with --iface.",
    },
  );
}

/** The kernel does not know the kind of device. */
export function kindUnsupportedFault(name: string, kind: string): Fault {
  return new Fault("LINK_KIND_UNSUPPORTED", `cannot create "${name}": the kernel has no ${kind} devices`, {
    hint: `Load the module with \`modprobe ${kind}\` (on some systems it is in a package such as linux-modules-extra).`,
  });
}
