/**
 * aws-vpc against moto, an EC2 API that others wrote after AWS's: what the SDK sends, and what the daemon makes of the
 * answers, does not rest on this project's own idea of EC2. Metadata on 169.254.169.254, the EC2 API on the switch.
 *
 *   h1 (flanneld, 169.254.169.254 on lo) ── ext0 ─┬─ switch (etcd, EC2 API → moto)
 *   h2 (flanneld, 169.254.169.254 on lo) ── ext0 ─┘
 *
 * moto judges no signature and no permission, has no quotas and no black holes: see cloud-aws.test.ts for these.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { MotoCounterpart } from "../lab/cloud/aws/moto/counterpart.ts";
import { MotoServer } from "../lab/cloud/aws/moto/server.ts";
import type { Switch } from "../lab/switch.ts";
import { until } from "../lab/until.ts";
import { finding, openCloud, show, subnetOf, TIMEOUT, untilReady } from "./cloud-cluster.ts";
import { runCommand } from "./command.ts";

const prepared = await MotoServer.prepare();
const obstacle = "obstacle" in prepared ? prepared.obstacle : undefined;
let moto: MotoServer;
const open = (on: Switch) => MotoCounterpart.create(moto, on);

describe.skipIf(obstacle !== undefined)(
  `aws-vpc and moto${obstacle === undefined ? "" : ` (skipped: ${obstacle})`}`,
  () => {
    beforeAll(async () => {
      if ("folder" in prepared) moto = await MotoServer.start(prepared.folder);
    }, TIMEOUT);

    afterAll(() => moto?.[Symbol.asyncDispose]());

    test(
      "the first run creates the route, the second changes nothing, others' routes stay, cleanup removes ours",
      async () => {
        await using lab = await openCloud(open);
        const { cloud, cluster, hosts, targets } = lab;
        const [host, target] = [hosts[0]!, targets[0]!];
        await cloud.vpc.addForeign();
        const foreign = show(await cloud.vpc.routes());
        expect(await cloud.vpc.checks(target)).toBe(true);
        const first = lab.start();
        await first.ready;
        await untilReady(host);
        const whole = [...foreign, `${await subnetOf(host)} → ${target}`].sort();
        expect(show(await cloud.vpc.routes())).toEqual(whole);
        expect(await cloud.vpc.checks(target)).toBe(false);
        expect(cloud.changes.toSorted()).toEqual(["CreateRoute", "ModifyNetworkInterfaceAttribute"]);
        await first.stop();
        const again = lab.start();
        await again.ready;
        await untilReady(host);
        await again.stop();
        expect(cloud.changes).toHaveLength(2);
        expect(show(await cloud.vpc.routes())).toEqual(whole);
        const cleanup = await runCommand(cluster, host, ["cleanup"], { env: cloud.env() });
        expect({ ...cleanup, routes: show(await cloud.vpc.routes()) }).toMatchObject({
          exitCode: 0,
          routes: foreign,
        });
        expect(cloud.changes.slice(2)).toEqual(["DeleteRoute"]);
      },
      TIMEOUT,
    );

    test(
      "a route that leads to another interface is replaced, one that is taken away is created again",
      async () => {
        await using lab = await openCloud(open);
        const { cloud, hosts, targets } = lab;
        await lab.start().ready;
        await untilReady(hosts[0]!);
        const subnet = await subnetOf(hosts[0]!);
        const right = show(await cloud.vpc.routes());
        expect(right).toContain(`${subnet} → ${targets[0]}`);
        const untilRight = () =>
          until(async () => Bun.deepEquals(show(await cloud.vpc.routes()), right), {
            message: async () => show(await cloud.vpc.routes()).join("\n"),
            deadline: 30_000,
            interval: 200,
          });
        const changes = cloud.changes.length;
        await cloud.vpc.leadAstray(subnet);
        await untilRight();
        await cloud.vpc.dropRoute(subnet);
        await untilRight();
        expect(cloud.changes.slice(changes)).toEqual(["ReplaceRoute", "CreateRoute"]);
      },
      TIMEOUT,
    );

    test(
      "two nodes get their routes, one of them removes that of a node that is gone",
      async () => {
        await using lab = await openCloud(open, { hosts: 2 });
        const { cloud, cluster, hosts, targets } = lab;
        await cloud.vpc.addForeign();
        const foreign = show(await cloud.vpc.routes());
        await cloud.vpc.addNodeRoute("10.244.77.0/24");
        await Promise.all(hosts.map((host) => lab.start(host).ready));
        await Promise.all(hosts.map((host) => untilReady(host)));
        const own = await Promise.all(
          hosts.map(async (host, at) => `${await subnetOf(host)} → ${targets[at]}`),
        );
        const whole = [...foreign, ...own].sort();
        await until(async () => Bun.deepEquals(show(await cloud.vpc.routes()), whole), {
          message: async () => show(await cloud.vpc.routes()).join("\n"),
          deadline: 30_000,
          interval: 200,
        });
        expect(cloud.changes.filter((call) => call === "DeleteRoute")).toHaveLength(1);
        const [daemon] = cluster.daemons;
        await daemon!.stop();
        const cleanup = await runCommand(cluster, hosts[0]!, ["cleanup"], { env: cloud.env() });
        expect({ ...cleanup, routes: show(await cloud.vpc.routes()) }).toMatchObject({
          exitCode: 0,
          routes: [...foreign, own[1]!].sort(),
        });
      },
      TIMEOUT,
    );

    test(
      "all tables that have the tag get the route",
      async () => {
        await using lab = await openCloud(open, { backend: { RouteTableFilter: ["tag:flannel=true"] } });
        const { cloud, hosts, targets } = lab;
        const tables = [cloud.vpc.parts.table, cloud.vpc.parts.mainTable];
        for (const table of tables) await cloud.vpc.tag(table, "flannel", "true");
        await lab.start().ready;
        await untilReady(hosts[0]!);
        const own = `${await subnetOf(hosts[0]!)} → ${targets[0]}`;
        for (const table of tables) expect(show(await cloud.vpc.routes(table))).toContain(own);
      },
      TIMEOUT,
    );

    test(
      "a table that is not there is named",
      async () => {
        await using lab = await openCloud(open, { backend: { RouteTableID: "rtb-0fffffffffffffff0" } });
        lab.start();
        const { text } = await finding(lab.hosts[0]!, "CLOUD_NOT_FOUND");
        expect(text).toContain("InvalidRouteTableID.NotFound");
        expect(text).toContain("rtb-0fffffffffffffff0");
      },
      TIMEOUT,
    );
  },
);
