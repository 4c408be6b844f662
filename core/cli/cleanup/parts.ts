import { existsSync, rmSync } from "node:fs";
import type { ActiveBackend, Host } from "../../../plugins/sdk/backend.ts";
import { findLeftovers, type LeftoverScope, removeLeftovers } from "../../dataplane/leftovers.ts";
import { describeObject } from "../../dataplane/peer-state.ts";
import { charonNote, hadCharon, removeCharonRemains } from "../../dataplane/stale-charon.ts";
import { lastBackendFile } from "../../host/last-backend.ts";
import { lockFileOf } from "../../host/lock.ts";
import { identityFile } from "../../host/node-id.ts";
import { findNoted } from "../../host/process-note.ts";
import type { Kernel } from "../../netlink/kernel.ts";
import { silentLog } from "../../observe/log.ts";
import { statusSocketOf } from "../../observe/status-socket.ts";
import type { TrafficHost } from "../../traffic/host.ts";
import type { TrafficManager } from "../../traffic/manager.ts";
import type { MemberKeeper } from "../../traffic/members/keeper.ts";
import { removeEmptyTables } from "../../traffic/nftables/empty-tables.ts";

/** One kind of thing that flanneld leaves on a host. */
export interface CleanupPart {
  readonly kind: "device" | "rule" | "backend" | "file";
  /** What is there, one line each. */
  look(): Promise<readonly string[]>;
  /** Removes it; what is gone already is fine. */
  remove(): Promise<void>;
}

/** Devices, routes and nexthops. */
export function kernelPart(kernel: Kernel, scope: LeftoverScope): CleanupPart {
  return {
    kind: "device",
    async look() {
      const { devices, objects } = await findLeftovers(kernel, scope);
      return [
        ...devices.map((name) => `device ${name}, with the addresses, routes and entries on it`),
        // `ip route replace …` without what makes it a command.
        ...objects.map((object) => describeObject(object).replace(/^ip (\S+) (?:replace|add) /, "$1 ")),
      ];
    },
    remove: async () => removeLeftovers(kernel, await findLeftovers(kernel, scope)),
  };
}

/**
 * Masquerade and forward rules, in nftables and in both variants of iptables. Where iptables-nft held some, the tables
 * that it made for them go too, if nothing else is in them.
 */
export function trafficPart(manager: Pick<TrafficManager, "cleanup">, host: TrafficHost): CleanupPart {
  return {
    kind: "rule",
    async look() {
      const found = await manager.cleanup({ dryRun: true });
      return found.map((text) => `rules: ${text.replace(/^removed /, "")}`);
    },
    async remove() {
      const removed = await manager.cleanup({ dryRun: false });
      if (host.has("nft") && removed.some((text) => text.includes("tables")))
        await removeEmptyTables(host.run);
    },
  };
}

/** The filter that lets only members send to the tunnel. */
export function membersPart(keeper: Pick<MemberKeeper, "cleanup">): CleanupPart {
  return {
    kind: "rule",
    async look() {
      const found = await keeper.cleanup({ dryRun: true });
      return found.map((text) => `member filter: ${text.replace(/^removed /, "")}`);
    },
    async remove() {
      await keeper.cleanup({ dryRun: false });
    },
  };
}

/** What a backend that acts itself made. */
export function backendPart(backend: Pick<ActiveBackend, "cleanup">, host: Host): CleanupPart {
  return {
    kind: "backend",
    look: () => backend.cleanup({ dryRun: true, host }),
    async remove() {
      await backend.cleanup({ dryRun: false, host });
    },
  };
}

/** What the charon that the ipsec backend has started left. */
export function charonPart(kernel: Kernel, subnetFile: string): CleanupPart {
  const note = charonNote(subnetFile);
  return {
    kind: "backend",
    look: async () =>
      hadCharon(note)
        ? [
            ...findNoted(note).map((pid) => `charon, pid ${pid}`),
            `file ${note}, and the routing rule of charon if it is there`,
          ]
        : [],
    remove: () => removeCharonRemains(kernel, note, silentLog),
  };
}

/**
 * The subnet file and what lies beside it, apart from `kept`. The lock file goes last: whoever cleans up holds it until
 * then.
 */
export function filePart(subnetFile: string, kept: readonly string[] = []): CleanupPart {
  const files = [
    subnetFile,
    identityFile(subnetFile),
    lastBackendFile(subnetFile),
    statusSocketOf(subnetFile),
    lockFileOf(subnetFile),
  ].filter((file) => !kept.includes(file));
  return {
    kind: "file",
    look: async () => files.filter((file) => existsSync(file)).map((file) => `file ${file}`),
    async remove() {
      for (const file of files) rmSync(file, { force: true });
    },
  };
}
