/**
 * `flanneld leases`.
 *
 *   h1, h2 (vxlan, dual stack, running) ── switch + etcd ── h3 (comes and goes), h4 (bare)
 */
import { describe, expect, test } from "bun:test";
import { daemonSubnet, PREFIX } from "../../lab/cluster.ts";
import { Daemon } from "../../lab/daemon.ts";
import { endpointFor } from "../../lab/switch-etcd.ts";
import { until } from "../../lab/until.ts";
import { ownLease } from "../leases.ts";
import { CommandCluster } from "./cluster.ts";

interface Listed {
  readonly config: string;
  readonly leases: readonly {
    readonly key: string;
    readonly kind: string;
    readonly ageSeconds: number;
    readonly ttlSeconds: number;
    readonly attrs: { readonly publicIP: string };
  }[];
}

const lab = new CommandCluster({ hosts: 4, running: 2 });

describe("leases", () => {
  test("ls shows every node, and by its exit code whether all is in order", async () => {
    const { code, json } = await lab.ask<Listed>(lab.host(1), ["leases", "ls"]);
    expect({ code, config: json.config }).toEqual({ code: 0, config: "valid" });
    expect(json.leases.map((lease) => lease.attrs.publicIP).toSorted()).toEqual([
      lab.host(1).ipv4,
      lab.host(2).ipv4,
    ]);
    for (const { kind, ageSeconds, ttlSeconds } of json.leases) {
      expect({ kind, sum: ageSeconds + ttlSeconds }).toEqual({ kind: "lease", sum: 86_400 });
    }
    await lab.cluster.etcd.ctl("put", `${PREFIX}/subnets/.lock`, "x");
    const { stdout, exitCode } = await lab.run(lab.host(1), ["leases", "ls"]);
    await lab.cluster.etcd.ctl("del", `${PREFIX}/subnets/.lock`);
    expect(exitCode).toBe(1);
    expect(stdout.split("\n")[0]).toMatch(/^SUBNET +OWNER +NODE +BACKEND +AGE +TTL +NOTE$/);
    expect(stdout).toContain("junk: the key is not a subnet");
  });

  test("reserve and release", async () => {
    const keys = await Promise.all(
      lab.hosts.slice(0, 2).map(async (host) => (await ownLease(lab.cluster, host))?.key),
    );
    const free = [7, 8, 9].map(daemonSubnet).find((base) => !keys.some((key) => key?.startsWith(`${base}-`)));
    const subnet = `${free}/24`;
    const subnets = `${subnet},fd00:10:244:8077::/64`;
    const reserve = (...more: string[]) => lab.run(lab.host(1), ["leases", "reserve", subnets, ...more]);
    const release = (...more: string[]) => lab.run(lab.host(1), ["leases", "release", subnet, ...more]);
    expect(await reserve("--for", lab.host(3).ipv4)).toMatchObject({ exitCode: 0, stderr: "" });
    expect((await reserve("--for", lab.host(3).ipv4)).stdout).toContain("was reserved already");
    const other = await reserve("--for", lab.host(4).ipv4, "--force");
    expect(other.exitCode).toBe(2);
    expect(other.stderr).toContain("error LEASE_TAKEN");
    await using daemon = Daemon.start(lab.host(3), {
      endpoints: endpointFor(lab.host(3), lab.cluster.switch),
    });
    await daemon.ready;
    const taken = await release();
    expect(taken.stderr).toContain("error LEASE_IN_USE");
    await daemon.stop();
    // On its own host, where no daemon runs, it needs no force.
    expect(await lab.run(lab.host(3), ["leases", "release", subnet])).toMatchObject({ exitCode: 0 });
    expect((await release()).stderr).toContain("error LEASE_UNKNOWN");
    expect(await lab.run(lab.host(3), ["cleanup"])).toMatchObject({ exitCode: 0 });
  });

  test("a living node's lease is released by force only, and that node takes it back", async () => {
    const { json } = await lab.ask<Listed>(lab.host(1), ["leases", "ls"]);
    const { key } = json.leases.find((lease) => lease.attrs.publicIP === lab.host(2).ipv4)!;
    const refused = await lab.run(lab.host(1), ["leases", "release", key]);
    expect(refused).toMatchObject({ exitCode: 2, stdout: "" });
    expect(refused.stderr).toContain("error LEASE_IN_USE");
    expect(await lab.run(lab.host(1), ["leases", "release", key, "--force"])).toMatchObject({ exitCode: 0 });
    await until(async () => (await lab.cluster.etcd.get(`${PREFIX}/subnets/${key}`)) !== undefined, {
      message: "the node does not take its lease back",
    });
  });

  test("without etcd the fault says so", async () => {
    const { exitCode, stderr } = await lab.run(lab.host(1), [
      "leases",
      "ls",
      "--etcd-endpoints=http://127.0.0.1:1",
    ]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("error ETCD_UNREACHABLE");
  });
});
