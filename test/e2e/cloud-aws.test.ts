/**
 * aws-vpc in a namespace that looks like an EC2 instance: metadata on 169.254.169.254, the EC2 API on the switch.
 *
 *   h1 (flanneld, 169.254.169.254 on lo) ── ext0 ─── switch (etcd, EC2 API)
 */
import { describe, expect, test } from "bun:test";
import { AwsCounterpart } from "../lab/cloud/aws/counterpart.ts";
import { networkConfig } from "../lab/cluster.ts";
import type { Host } from "../lab/host.ts";
import { readSubnetFile } from "../lab/subnet-file.ts";
import { until } from "../lab/until.ts";
import { readStatus } from "./ask.ts";
import { finding, needed, openCloud, show, subnetOf, TIMEOUT, untilReady } from "./cloud-cluster.ts";
import { testCloudFaults } from "./cloud-faults.ts";
import { expectPolicy } from "./cloud-policy.ts";
import { testCloud } from "./cloud-scenarios.ts";
import { runCommand } from "./command.ts";

describe("aws-vpc", () => testCloud((on) => new AwsCounterpart(on)));
describe("aws-vpc when calls go wrong", () => testCloudFaults((on) => new AwsCounterpart(on)));

/** Waits until the host has no finding of that code. */
const untilOver = (host: Host, code: string) =>
  until(async () => (await readStatus(host)).findings.every((each) => each.code !== code), {
    message: async () => JSON.stringify((await readStatus(host)).findings),
    deadline: 40_000,
    interval: 100,
  });

test(
  "both families in the main table; what others forbid, leave behind, put in the way and change is coped with",
  async () => {
    await using lab = await openCloud((on) => new AwsCounterpart(on, { main: true }), {
      family: "dual",
      flags: ["--ip-blackhole-route"],
      backend: { RouteLimit: 2 },
    });
    const { cloud, cluster, hosts, targets } = lab;
    const [host, target] = [hosts[0]!, targets[0]!];
    const { namespace, subnetFile } = host;
    const untilRoutes = (wanted: readonly string[]) =>
      until(() => wanted.every((route) => show(cloud.routes()).includes(route)), {
        message: () => show(cloud.routes()).join("\n"),
        deadline: 30_000,
      });

    // Somebody has to allow it; the routes are made all the same, and the black hole of a node that is gone goes.
    cloud.addNodeRoute("10.244.77.0/24", true);
    cloud.api.forbidden.add("ModifyNetworkInterfaceAttribute");
    const daemon = lab.start();
    await daemon.ready;
    expect((await finding(host, "CLOUD_DENIED")).text).toContain("ec2:ModifyNetworkInterfaceAttribute");
    const subnet = await subnetOf(host);
    const { ipv6Subnet = "" } = await readSubnetFile(subnetFile);
    const own = [`${subnet} → ${target}`, `${ipv6Subnet.replace("::1/", "::/")} → ${target}`];
    await untilRoutes(own);
    await until(() => cloud.routes().every(({ dst }) => dst !== "10.244.77.0/24"), {
      message: "the black hole is still there",
      deadline: 30_000,
    });
    cloud.api.forbidden.clear();
    await untilReady(host);
    expect(cloud.api.vpc.interfaces.at(-1)?.sourceDestCheck).toBe(false);

    // The host's own side: the operator's blackhole route, and the MTU of pods.
    await namespace.ip(`route delete blackhole ${subnet}`);
    for (const mtu of [1400, 1500]) {
      await namespace.ip(`link set ext0 mtu ${mtu}`);
      await until(async () => (await readSubnetFile(subnetFile)).mtu === mtu, {
        message: () => daemon.tail(),
      });
    }
    await until(async () => (await namespace.ip("route show type blackhole")).includes(subnet), {
      message: () => daemon.tail(),
    });

    // A part of the subnet is somebody else's, and the table is nearly full.
    const part = subnet.replace("0/24", "128/25");
    const made = { State: "active", Origin: "CreateRoute" } as const;
    cloud.table.routes.push({ ...made, DestinationCidrBlock: part, VpcPeeringConnectionId: "pcx-0123" });
    expect((await finding(host, "CLOUD_ROUTE_OVERLAP")).text).toContain(`${part} → `);
    expect((await finding(host, "CLOUD_TABLE_NEARLY_FULL")).text).toContain("2 IPv4 routes");
    cloud.dropRoute(part);
    await untilOver(host, "CLOUD_ROUTE_OVERLAP");

    // EC2 gives the interface another address; the host learns of it later. What was found until then is over then.
    const { segment } = host.switch;
    const [eni, next] = [cloud.api.vpc.interfaces.at(-1)!, segment.ipv4(77)];
    const addresses6 = eni.addresses6;
    eni.addresses = [next];
    eni.addresses6 = [];
    cloud.dropRoute(subnet);
    await finding(host, "CLOUD_NOT_FOUND");
    eni.addresses6 = addresses6;
    await namespace.exec(
      "sh",
      "-ec",
      `ip address delete ${host.ipv4}/24 dev ext0; ip address add ${next}/24 dev ext0; ip route replace default via ${segment.ipv4(254)} dev ext0`,
    );
    await untilRoutes(own);
    await untilReady(host);
    await untilOver(host, "CLOUD_NOT_FOUND");

    // Another backend leaves the routes alone, and says that they are there.
    await daemon.stop();
    await cluster.configure(networkConfig("dual", { Type: "host-gw" }));
    const other = lab.start();
    await other.ready;
    expect((await finding(host, "CLOUD_ROUTES_LEFT")).text).toContain(own[0]!);
    await untilRoutes(own);
    await other.stop();
    const check = await runCommand(cluster, host, ["check"]);
    expect(check.stdout).toContain("routes of aws-vpc");
    const cleanup = await runCommand(cluster, host, ["cleanup"], { env: cloud.env() });
    expect(cleanup.exitCode).toBe(1);
    expect(cleanup.stdout).toContain(own[0]!);
  },
  TIMEOUT,
);

test("the documented policy permits what was called, and nothing else", () => {
  expectPolicy("aws-vpc", needed.get("aws-vpc") ?? new Set());
});
