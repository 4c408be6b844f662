import { expect, test } from "bun:test";
import type { Counterpart } from "../lab/cloud/counterpart.ts";
import type { Switch } from "../lab/switch.ts";
import { until } from "../lab/until.ts";
import { readStatus } from "./ask.ts";
import {
  type CloudCluster,
  finding,
  openCloud,
  reasonsOf,
  show,
  subnetOf,
  TIMEOUT,
  untilReady,
} from "./cloud-cluster.ts";

/** The ways calls go wrong, and what has to come of each: the right table in the end. */
export function testCloudFaults<C extends Counterpart>(open: (on: Switch) => C): void {
  const finish = async (lab: CloudCluster<C>) => {
    const { cloud, hosts, targets } = lab;
    await untilReady(hosts[0]!, 60_000);
    const subnet = await subnetOf(hosts[0]!);
    expect(cloud.routes().filter(({ dst }) => dst === subnet)).toEqual([
      { dst: subnet, target: targets[0]! },
    ]);
  };

  test(
    "throttled calls are tried again, slower",
    async () => {
      await using lab = await openCloud(open);
      const { cloud } = lab;
      cloud.faults.next("*", ...Array.from({ length: 4 }, () => cloud.errors.throttled));
      await lab.start().ready;
      await finish(lab);
      expect(cloud.faults.spent).toBe(true);
    },
    TIMEOUT,
  );

  test(
    "server errors, lost answers and half-done calls end in one route",
    async () => {
      await using lab = await openCloud(open);
      const { cloud } = lab;
      cloud.faults.next(
        cloud.names.read,
        { status: 500, code: "InternalError" },
        { status: 503, code: "Unavailable" },
      );
      cloud.faults.next(cloud.names.create, { status: 500, code: "InternalError" }, { doneBut: 500 });
      await lab.start().ready;
      await finish(lab);
      expect(cloud.faults.spent).toBe(true);
    },
    TIMEOUT,
  );

  test(
    "a call that is never answered is given up and repeated",
    async () => {
      await using lab = await openCloud(open);
      const { cloud } = lab;
      cloud.faults.next(cloud.names.create, { hang: 60_000 });
      await lab.start().ready;
      await finish(lab);
    },
    TIMEOUT,
  );

  test(
    "credentials that expire are fetched anew",
    async () => {
      await using lab = await openCloud(open);
      const { cloud, hosts } = lab;
      await lab.start().ready;
      await finish(lab);
      cloud.rotate();
      const subnet = await subnetOf(hosts[0]!);
      cloud.dropRoute(subnet);
      await until(() => cloud.routes().some(({ dst }) => dst === subnet), {
        message: "the route",
        deadline: 60_000,
      });
      await finish(lab);
    },
    TIMEOUT,
  );

  test(
    "600 routes are read to the last one",
    async () => {
      await using lab = await openCloud(open, { backend: { RouteLimit: 1_000 } });
      const { cloud } = lab;
      cloud.addForeign(600);
      const foreign = show(cloud.routes());
      await lab.start().ready;
      await finish(lab);
      expect(show(cloud.routes()).filter((route) => foreign.includes(route))).toEqual(foreign);
      expect(cloud.changes.filter((call) => call === cloud.names.create)).toHaveLength(1);
    },
    TIMEOUT,
  );

  test(
    "a full table is a finding, and asked again at once when it has changed",
    async () => {
      await using lab = await openCloud(open);
      const { cloud, hosts } = lab;
      cloud.faults.always(cloud.names.create, cloud.errors.full);
      await lab.start().ready;
      await finding(hosts[0]!, "CLOUD_TABLE_FULL");
      const reads = () => cloud.calls.filter((call) => call === cloud.names.read).length;
      const tried = () => cloud.changes.filter((call) => call === cloud.names.create).length;
      const [before, once] = [reads(), tried()];
      await until(() => reads() > before + 2, { message: "looks", deadline: 30_000 });
      expect(tried()).toBe(once);
      expect((await subnetOf(hosts[0]!)).length).toBeGreaterThan(0);
      cloud.faults.lift(cloud.names.create);
      cloud.addNodeRoute("10.244.254.0/24");
      await finish(lab);
    },
    TIMEOUT,
  );

  test(
    "a permission that is missing is named; the lease is kept, the node unready",
    async () => {
      await using lab = await openCloud(open);
      const { cloud, hosts } = lab;
      cloud.faults.always(cloud.names.create, cloud.errors.denied);
      await lab.start().ready;
      const { text, fix } = await finding(hosts[0]!, "CLOUD_DENIED");
      expect(`${text} ${fix}`).toContain(cloud.names.permission);
      expect(await reasonsOf(hosts[0]!)).toContain("CLOUD_DENIED");
      expect((await readStatus(hosts[0]!)).lease?.state).toBe("held");
      cloud.faults.lift(cloud.names.create);
      await finish(lab);
    },
    TIMEOUT,
  );

  test(
    "without metadata the node waits for them, with its lease",
    async () => {
      await using lab = await openCloud(open);
      const { cloud, hosts } = lab;
      cloud.breakMetadata(true);
      await lab.start().ready;
      await finding(hosts[0]!, "CLOUD_METADATA");
      expect(cloud.calls).toEqual([]);
      cloud.breakMetadata(false);
      await finish(lab);
    },
    TIMEOUT,
  );

  test(
    "a clock that is off by an hour is coped with, or told",
    async () => {
      await using lab = await openCloud(open);
      const { cloud, hosts } = lab;
      cloud.ahead = 3_600_000;
      await lab.start().ready;
      const settled = () =>
        until(
          async () =>
            cloud.changes.includes(cloud.names.create) ||
            (await reasonsOf(hosts[0]!)).includes("CLOUD_CLOCK"),
          { message: "neither", deadline: 40_000, interval: 100 },
        );
      await settled();
      cloud.ahead = 0;
      await finish(lab);
    },
    TIMEOUT,
  );
}
