import { chooseLease } from "../../lease/choose.ts";
import type { BadEntry, StoredLease } from "../../lease/entry.ts";
import type { LeaseManager } from "../../lease/etcd/manage.ts";
import type { LeaseAttrs, Subnets } from "../../lease/lease.ts";
import type { SubnetRanges } from "../../lease/store.ts";
import { describeError } from "../../observe/fault.ts";
import type { Log } from "../../observe/log.ts";
import { type ConfigState, readConfigState, withLeases } from "../lease-access.ts";
import type { Options } from "../options.ts";
import { type CheckItem, findingOf, item } from "./item.ts";

/** What etcd holds, as far as it could be read. */
export interface StoreLook {
  readonly items: readonly CheckItem[];
  readonly config?: ConfigState;
  readonly leases: readonly StoredLease[];
  readonly bad: readonly BadEntry[];
}

/** Connects to etcd as the daemon would, reads config and leases, and asks whether it might write. */
export async function lookAtStore(options: Options, log: Log): Promise<StoreLook> {
  const endpoints = options.etcdEndpoints.join(", ");
  try {
    return await withLeases(options, log, async (manager, signal) => {
      const [config, { leases, bad }] = await Promise.all([
        readConfigState(manager, signal),
        manager.list(signal),
      ]);
      const writable = await checkWrite(manager, signal);
      const detail = `${endpoints}, ${leases.length} leases`;
      return { items: [item("etcd", detail, writable), checkConfig(config)], config, leases, bad };
    });
  } catch (error) {
    const finding = findingOf(error, "ETCD_REQUEST", "etcd cannot be used");
    return { items: [item("etcd", endpoints, [finding])], leases: [], bad: [] };
  }
}

async function checkWrite(manager: LeaseManager, signal: AbortSignal) {
  try {
    await manager.rehearseWrite(signal);
    return [];
  } catch (error) {
    return [findingOf(error, "ETCD_PERMISSION", "leases could not be written")];
  }
}

function checkConfig(config: ConfigState): CheckItem {
  if (config.state === "valid") {
    const { source, revision } = config.document;
    return item("config", `${source}, revision ${revision}`, config.reading.warnings);
  }
  const isMissing = config.state === "missing";
  return item("config", config.state, [
    {
      code: isMissing ? "CONFIG_MISSING" : "CONFIG_INVALID",
      severity: "error",
      title: isMissing ? "there is no network config" : "the network config is not valid",
      text: isMissing ? "etcd has no key config below --etcd-prefix" : config.problem,
      fix: isMissing
        ? `etcdctl put PREFIX/config '{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan"}}'`
        : "Correct it: `flanneld config check FILE` says the same before it is stored.",
    },
  ]);
}

/** Which lease this node would take now; a clash or an exhausted network is an error before the start. */
export function checkLease(
  { leases, bad }: Pick<StoreLook, "leases" | "bad">,
  self: LeaseAttrs,
  ranges: SubnetRanges,
  previous: Subnets,
): CheckItem {
  try {
    const { plan, notes } = chooseLease({ leases, bad, self, ranges, previous });
    switch (plan.kind) {
      case "reuse":
        return item("lease", `would take ${plan.lease.key} (by ${plan.origin})`, notes);
      case "create":
        return item(
          "lease",
          plan.origin === "previous" ? `would take ${plan.key} again` : "would take a new subnet",
          notes,
        );
      default:
        return item("lease", plan.kind, [
          findingOf(plan.fault, plan.fault.code, "this node would get no lease"),
        ]);
    }
  } catch (error) {
    return item("lease", describeError(error), [
      findingOf(error, "LEASE_FAILED", "this node would get no lease"),
    ]);
  }
}
