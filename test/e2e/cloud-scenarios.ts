import { expect, test } from "bun:test";
import type { Counterpart } from "../lab/cloud/counterpart.ts";
import { PREFIX } from "../lab/cluster.ts";
import type { Switch } from "../lab/switch.ts";
import { until } from "../lab/until.ts";
import { openCloud, show, subnetOf, TIMEOUT, untilReady } from "./cloud-cluster.ts";
import { runCommand } from "./command.ts";

/** What every cloud has to pass. */
export function testCloud<C extends Counterpart>(open: (on: Switch) => C): void {
  test(
    "the first run creates the route, the second changes nothing, others' routes stay, cleanup removes ours",
    async () => {
      await using lab = await openCloud(open);
      const { cloud, cluster, hosts, targets } = lab;
      const host = hosts[0]!;
      cloud.addForeign(3);
      const foreign = show(cloud.routes());
      await lab.start().ready;
      const own = `${await subnetOf(host)} → ${targets[0]}`;
      expect(show(cloud.routes())).toEqual([...foreign, own].sort());
      await untilReady(host);
      await cluster.daemons[0]!.stop();
      const changes = cloud.changes.length;
      const again = lab.start();
      await again.ready;
      await untilReady(host);
      expect(cloud.changes.slice(changes)).toEqual([]);
      await again.stop();
      expect(show(cloud.routes())).toContain(own);
      const options = { env: cloud.env(host) };
      const dry = await runCommand(cluster, host, ["cleanup", "--dry-run"], options);
      expect(dry.stdout).toContain(`${await subnetOf(host)} → ${targets[0]}`);
      expect(show(cloud.routes())).toContain(own);
      const wet = await runCommand(cluster, host, ["cleanup"], options);
      expect({ ...wet, routes: show(cloud.routes()) }).toMatchObject({ exitCode: 0, routes: foreign });
    },
    TIMEOUT,
  );

  test(
    "check prints the plan, and changes nothing",
    async () => {
      await using lab = await openCloud(open);
      const { cloud, cluster, hosts, targets } = lab;
      const host = hosts[0]!;
      const daemon = lab.start();
      await daemon.ready;
      const subnet = await subnetOf(host);
      await daemon.stop();
      const changes = cloud.changes.length;
      const good = await runCommand(cluster, host, ["check"], { env: cloud.env(host) });
      expect(good.stdout).toMatch(/^cloud +ok +.*nothing to change/m);
      cloud.dropRoute(subnet);
      const bad = await runCommand(cluster, host, ["check"], { env: cloud.env(host) });
      expect(bad.stdout).toContain(`create ${subnet} → ${targets[0]}`);
      expect(cloud.changes.length).toBe(changes);
    },
    TIMEOUT,
  );

  test(
    "a route that is taken away, led astray, or upstream's, is set right again",
    async () => {
      await using lab = await openCloud(open);
      const { cloud, hosts, targets } = lab;
      await lab.start().ready;
      const subnet = await subnetOf(hosts[0]!);
      const isRight = () => show(cloud.routes()).includes(`${subnet} → ${targets[0]}`);
      expect(isRight()).toBe(true);
      cloud.dropRoute(subnet);
      await until(isRight, { message: () => show(cloud.routes()).join("\n"), deadline: 30_000 });
      cloud.dropRoute(subnet);
      cloud.addNodeRoute(subnet);
      await until(isRight, { message: () => show(cloud.routes()).join("\n"), deadline: 30_000 });
      expect(cloud.routes().filter(({ dst }) => dst === subnet)).toHaveLength(1);
      if (!cloud.unmark) return;
      // As upstream's daemon makes it: marked in place, so that it can be told when its node is gone.
      const created = cloud.changes.filter((call) => call === cloud.names.create).length;
      cloud.unmark(subnet);
      await until(() => cloud.isMarked?.(subnet), { message: "not marked", deadline: 30_000 });
      expect(cloud.changes.filter((call) => call === cloud.names.create)).toHaveLength(created);
    },
    TIMEOUT,
  );

  test(
    "one of two nodes removes the route of a node that is gone; the other's stays, and so do leased ones",
    async () => {
      await using lab = await openCloud(open, { hosts: 2 });
      const { cloud, cluster, hosts } = lab;
      cloud.addForeign();
      const foreign = show(cloud.routes());
      cloud.addNodeRoute("10.244.77.0/24");
      cloud.addNodeRoute("10.244.78.0/24");
      // Has a lease, although its value is of no use.
      await cluster.etcd.ctl("put", `${PREFIX}/subnets/10.244.78.0-24`, "garbage");
      await Promise.all(hosts.map((host) => lab.start(host).ready));
      await until(() => !cloud.routes().some(({ dst }) => dst === "10.244.77.0/24"), {
        message: "still there",
        deadline: 30_000,
      });
      await Promise.all(hosts.map((host) => untilReady(host)));
      const kept = cloud.routes().map(({ dst }) => dst);
      expect(kept).toContain("10.244.78.0/24");
      for (const host of hosts) expect(kept).toContain(await subnetOf(host));
      expect(show(cloud.routes()).filter((route) => foreign.includes(route))).toEqual(foreign);
      const removers = cluster.daemons.filter(({ lines }) =>
        lines.some(({ msg }) => msg.startsWith("delete 10.244.77.0/24")),
      );
      expect(removers).toHaveLength(1);
      expect(await cluster.etcd.ctl("get", `${PREFIX}/leaders/cloud-routes`)).toContain("10.244.");
    },
    TIMEOUT,
  );

  test(
    "RemoveStaleRoutes false leaves them",
    async () => {
      await using lab = await openCloud(open, { backend: { RemoveStaleRoutes: false, StaleRouteGrace: 1 } });
      const { cloud, hosts } = lab;
      cloud.addNodeRoute("10.244.77.0/24");
      await lab.start().ready;
      const reads = () => cloud.calls.filter((call) => call === cloud.names.read).length;
      const before = reads();
      await until(() => reads() > before + 3, { message: "looks", deadline: 30_000 });
      await untilReady(hosts[0]!);
      expect(cloud.routes().map(({ dst }) => dst)).toContain("10.244.77.0/24");
    },
    TIMEOUT,
  );
}
