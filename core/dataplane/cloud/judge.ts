import type { CloudChange, CloudTable } from "../../../plugins/sdk/cloud.ts";
import { containsPrefix, parsePrefix } from "../../net/prefix.ts";
import type { Finding } from "../../observe/finding.ts";

/** Share of a table's limit at which it is told. */
const NEARLY_FULL = 0.9;

/** What is wrong with a table that is not ours to change: others' routes in our way, and little room left. Pure. */
export function judgeTable(
  table: CloudTable,
  own: readonly string[],
  changes: readonly CloudChange[],
): readonly Finding[] {
  return [...own.flatMap((dst) => judgeSubnet(table, dst)), ...judgeRoom(table, changes)];
}

function judgeSubnet({ id, routes }: CloudTable, own: string): readonly Finding[] {
  const subnet = parsePrefix(own);
  return routes.flatMap(({ kind, dst, target }): Finding[] => {
    if (kind !== "foreign") return [];
    if (dst === own) {
      return [
        {
          code: "CLOUD_ROUTE_CONFLICT",
          severity: "error",
          title: "somebody else's route has the subnet of this node",
          text: `${dst} → ${target} in ${id}`,
          fix: `Remove that route, or give this node another subnet: flanneld leases release ${own}`,
        },
      ];
    }
    const prefix = parsePrefix(dst);
    if (!subnet || !prefix || !containsPrefix(subnet, prefix)) return [];
    return [
      {
        code: "CLOUD_ROUTE_OVERLAP",
        severity: "warning",
        title: "somebody else's route takes a part of this node's subnet",
        text: `${dst} → ${target} in ${id} lies in ${own}`,
        fix: "Remove that route, or choose a Network that nobody else uses.",
      },
    ];
  });
}

function judgeRoom({ id, routes, limit }: CloudTable, changes: readonly CloudChange[]): readonly Finding[] {
  if (limit === undefined) return [];
  return ([4, 6] as const).flatMap((family): Finding[] => {
    const is = ({ dst }: { readonly dst: string }) => dst.includes(":") === (family === 6);
    const counted = routes.filter((route) => is(route) && !route.uncounted).length;
    const created = changes.filter((change) => change.action === "create" && is(change)).length;
    const deleted = changes.filter((change) => change.action === "delete" && is(change)).length;
    const used = counted + created - deleted;
    if (used < limit * NEARLY_FULL) return [];
    return [
      {
        code: "CLOUD_TABLE_NEARLY_FULL",
        severity: "warning",
        title: "a route table is nearly full",
        text: `${id} has ${used} IPv${family} routes with this node's, ${limit} fit`,
        fix: "Have the limit raised at the cloud, and RouteLimit in the Backend with it; nodes beyond it get no route.",
      },
    ];
  });
}
