import { describeChange } from "../dataplane/cloud/describe.ts";
import { findingOf as cloudFindingOf } from "../dataplane/cloud/finding.ts";
import { type CloudSubject, openTables } from "../dataplane/cloud/inspect.ts";
import type { Subnets } from "../lease/lease.ts";
import { Fault } from "../observe/fault.ts";
import type { Finding } from "../observe/finding.ts";
import { type CheckItem, item } from "./check/item.ts";
import type { CleanupPart } from "./cleanup/parts.ts";

/** What the daemon would change in the cloud, one finding per change; nothing is changed. Never rejects. */
export async function checkCloud(subject: CloudSubject, own: Subnets): Promise<CheckItem> {
  const { facts, ranges } = subject;
  const tables = openTables(subject);
  const subnets = [own.ipv4, own.ipv6].filter((subnet) => subnet !== undefined);
  try {
    const { place, changes, findings } = await tables.preview(facts, { own: subnets, ranges });
    const planned = changes.map(
      (change): Finding => ({
        code: "CLOUD_PLAN",
        severity: "info",
        title: "flanneld would change this",
        text: describeChange(change),
        fix: "Nothing: flanneld does it when it runs.",
      }),
    );
    const what = changes.length === 0 ? "nothing to change" : `changes to make: ${changes.length}`;
    const whose = subnets.length === 0 ? "; this node has no subnet yet" : "";
    return item("cloud", `${place.summary}: ${what}${whose}`, [...findings, ...planned]);
  } catch (error) {
    return item("cloud", "could not be looked at", [cloudFindingOf(error).finding]);
  }
}

/** Routes to this node, of the form of a lease of the config's networks, in the tables of the cloud. */
export function cloudPart(subject: CloudSubject): CleanupPart {
  const { facts, ranges } = subject;
  const tables = openTables(subject);
  const goal = { own: [], ranges };
  return {
    kind: "backend",
    async look() {
      const { changes } = await tables.preview(facts, goal);
      return changes.map((change) => describeChange(change).replace(/^delete /, "route "));
    },
    async remove() {
      const { complete, findings } = await tables.reach(facts, goal);
      const [first] = findings;
      if (complete || !first) return;
      const { finding } = first;
      throw new Fault("CLEANUP_REFUSED", finding.text, { hint: finding.fix });
    },
  };
}
