import type { CloudChange, CloudReading, CloudRoute, CloudTable } from "../../../plugins/sdk/cloud.ts";
import { containsPrefix, formatPrefix, overlaps, type Prefix, parsePrefix } from "../../net/prefix.ts";
import type { Finding } from "../../observe/finding.ts";
import { judgeTable } from "./judge.ts";

/** What the tables are to look like, as far as it is this node's business. */
export interface CloudGoal {
  /** This node as a next hop. */
  readonly self: string;
  /** Subnets that lead to this node, CIDR text; empty when its routes are to go. */
  readonly own: readonly string[];
  /** Cluster networks with the prefix length of their leases. */
  readonly ranges: readonly LeaseRange[];
  /** Routes of nodes that are gone: removed as long as they still look like this. */
  readonly retired?: readonly Pick<CloudRoute, "dst" | "target">[];
}

/** A network out of which leases are given. */
export interface LeaseRange {
  readonly network: Prefix;
  readonly subnetLen: number;
}

/** What is to be done, and what stands in the way. */
export interface CloudPlan {
  /** In the order in which they are to be made: room first. */
  readonly changes: readonly CloudChange[];
  readonly findings: readonly Finding[];
  /** Whether everything that is right is in force, too (some clouds take a while). */
  readonly settled: boolean;
}

/**
 * The fewest changes that lead from what the cloud has to the goal; empty when it is reached. Touches only routes whose
 * next hop is a node: those of the own subnets, and such as have the form of a lease of our networks and lead to this
 * node, or to a node that is gone. Pure.
 */
export function planCloud(reading: CloudReading, goal: CloudGoal): CloudPlan {
  const plans = reading.tables.map((table) => planTable(table, goal));
  // Where no packet is to arrive, no switch has to let it through.
  const settings = (goal.own.length === 0 ? [] : (reading.settings ?? []))
    .filter(({ wanted, actual }) => wanted !== actual)
    .map((setting): CloudChange => ({ action: "set", setting }));
  return {
    changes: [...settings, ...plans.flatMap(({ changes }) => changes)],
    findings: [...(reading.findings ?? []), ...plans.flatMap(({ findings }) => findings)],
    settled: plans.every(({ settled }) => settled),
  };
}

function planTable(table: CloudTable, goal: CloudGoal): CloudPlan {
  const own = goal.own.map(canonical);
  const removed = table.routes.filter((route) => !own.includes(route.dst) && isLeftover(route, goal, own));
  const plans = own.map((dst) => planSubnet(table, dst, goal.self));
  const changes = [
    ...removed.map((former): CloudChange => deletion(table, former)),
    ...plans.flatMap(({ changes }) => changes),
  ];
  return {
    changes,
    findings: judgeTable(table, own, changes),
    settled: plans.every(({ settled }) => settled),
  };
}

/** One own subnet in one table: one route to this node that is in force, and none to another node. */
function planSubnet(table: CloudTable, dst: string, target: string): Pick<CloudPlan, "changes" | "settled"> {
  const there = table.routes.filter((route) => route.dst === dst);
  // Two routes for one subnet would share its packets; whose the other one is, judgeTable says.
  if (there.some(({ kind }) => kind === "foreign")) return { changes: [], settled: true };
  const right = there.find((route) => isRight(route, target));
  const others = there.filter((route) => route !== right);
  if (right) {
    const isNameless = right.marked === false && right.state === "active";
    return {
      changes: [
        ...others.map((former) => deletion(table, former)),
        ...(isNameless ? [{ action: "mark", table: table.id, dst, former: right } as const] : []),
      ],
      settled: right.state === "active",
    };
  }
  const [former, ...rest] = others;
  return {
    changes: [
      ...rest.map((route) => deletion(table, route)),
      former
        ? { action: "replace", table: table.id, dst, target, former }
        : { action: "create", table: table.id, dst, target },
    ],
    settled: false,
  };
}

function isRight({ target, state }: CloudRoute, self: string): boolean {
  return target === self && (state === "active" || state === "pending");
}

/** Whether a route to a node, of the form of a lease, is one that nobody needs. */
function isLeftover(route: CloudRoute, goal: CloudGoal, own: readonly string[]): boolean {
  const { self, retired = [] } = goal;
  const prefix = parsePrefix(route.dst);
  if (route.kind !== "node" || !prefix || !isLeaseShaped(prefix, goal.ranges)) return false;
  if (route.target === self) return !own.includes(route.dst);
  return retired.some(({ dst, target }) => dst === route.dst && target === route.target);
}

/** Whether a prefix is what a lease of one of the networks would be. */
export function isLeaseShaped(prefix: Prefix, ranges: readonly LeaseRange[]): boolean {
  return ranges.some(
    ({ network, subnetLen }) => prefix.length === subnetLen && containsPrefix(network, prefix),
  );
}

/** Whether a lease covers any address of a prefix. */
export function isLeased(prefix: Prefix, leased: readonly string[]): boolean {
  return leased.some((text) => {
    const lease = parsePrefix(text);
    return lease !== undefined && overlaps(lease, prefix);
  });
}

function deletion({ id }: CloudTable, former: CloudRoute): CloudChange {
  return { action: "delete", table: id, dst: former.dst, former };
}

function canonical(cidr: string): string {
  const prefix = parsePrefix(cidr);
  return prefix ? formatPrefix(prefix) : cidr;
}
