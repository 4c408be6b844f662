/**
 * The daemon's life as its service manager sees it: start, readiness, stop, and the files it leaves.
 *
 *   h1 ── ext0 ─┬─ switch + etcd ─┬─ ext0 ── h2
 *               └─────── ext0 ────┘
 *                         h3
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { statSync, unlinkSync, writeFileSync } from "node:fs";
import { Cluster, networkConfig, PREFIX } from "../lab/cluster.ts";
import type { Daemon } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { inNamespace } from "../lab/in-namespace.ts";
import { NotifySocket } from "../lab/notify-socket.ts";
import { dumpKernel } from "../lab/oracle/actual.ts";
import { until } from "../lab/until.ts";
import { ownLease, putLeases, storedLeases } from "./leases.ts";

const TIMEOUT = 60_000;
/** The bound for a stop, ms. */
const STOP_MS = 2_000;

let cluster: Cluster;
let [h1, h2, h3]: Host[] = [];

beforeAll(async () => {
  cluster = await Cluster.create({ hosts: 3, family: "dual", config: null });
  [h1, h2, h3] = cluster.hosts;
}, TIMEOUT);
afterAll(() => cluster[Symbol.asyncDispose]());

/** Runs a daemon on `host` for the length of `body`, after the config was written and the old leases deleted. */
async function withDaemon(
  host: Host,
  body: (daemon: Daemon) => Promise<void>,
  options: Parameters<Cluster["startDaemon"]>[1] = {},
): Promise<void> {
  await using daemon = cluster.startDaemon(host, options);
  await daemon.ready;
  await body(daemon);
}

const vxlan = networkConfig("v4");

describe("waiting", () => {
  test(
    "without a network config it waits, says so once, and starts when the config is written",
    async () => {
      await using daemon = cluster.startDaemon(h1!);
      const line = await daemon.waitForLog(({ code }) => code === "CONFIG_MISSING");
      expect(line).toMatchObject({ level: "error", fix: expect.stringContaining("etcdctl put") });
      await cluster.configure(vxlan);
      await daemon.ready;
      expect(
        daemon.lines.filter(({ code, level }) => code === "CONFIG_MISSING" && level === "error"),
      ).toHaveLength(1);
      await daemon.stop();
    },
    TIMEOUT,
  );

  test(
    "an unreachable etcd is one line in the log, and SIGTERM ends the wait at once",
    async () => {
      await using daemon = cluster.startDaemon(h2!, {
        endpoints: "http://192.0.2.100:1,http://192.0.2.100:2",
        flags: ["--subnet-file", `${h2!.directory}/never.env`],
      });
      const line = await daemon.waitForLog(({ level }) => level === "error");
      expect(line).toMatchObject({ code: "ETCD_UNREACHABLE", fix: expect.stringMatching(/./) });
      // Several tries later it is still one line.
      await Bun.sleep(1_500);
      expect(daemon.lines.filter(({ level }) => level !== "info")).toHaveLength(1);
      expect(await daemon.stop("SIGTERM")).toMatchObject({ code: 0 });
      expect(daemon.lines.filter(({ level }) => level === "error")).toHaveLength(1);
    },
    TIMEOUT,
  );

  test(
    "SIGINT ends the wait for the network config",
    async () => {
      await using daemon = cluster.startDaemon(h2!, { flags: ["--etcd-prefix=/nothing"] });
      await daemon.waitForLog(({ code }) => code === "CONFIG_MISSING");
      const end = await daemon.stop("SIGINT");
      expect(end).toMatchObject({ code: 0 });
      expect(end.milliseconds).toBeLessThan(STOP_MS);
      expect(daemon.notifications).not.toContain("READY=1");
    },
    TIMEOUT,
  );
});

describe("readiness", () => {
  test(
    "READY=1 comes after the first complete synchronisation",
    async () => {
      const peers = 1_500;
      await putLeases(
        cluster,
        Array.from({ length: peers }, (_, n) => {
          const [a, b] = [n >> 8, n & 255];
          const mac = `02:00:00:00:${a.toString(16).padStart(2, "0")}:${b.toString(16).padStart(2, "0")}`;
          return {
            key: `10.61.${a}.${b * 1}-32`.replace(/^.*$/, `10.${96 + a}.${b}.0-24`),
            value: {
              PublicIP: `10.1.${a}.${b}`,
              PublicIPv6: null,
              BackendType: "vxlan",
              BackendData: { VNI: 7, VtepMAC: mac },
            },
          };
        }),
        "/large",
      );
      await cluster.etcd.ctl(
        "put",
        "/large/config",
        '{"Network":"10.96.0.0/11","SubnetMin":"10.120.0.0","Backend":{"Type":"vxlan","VNI":7}}',
      );
      await withDaemon(
        h2!,
        async (daemon) => {
          daemon.pause();
          const routes = await h2!.namespace.json("ip", "-j", "route", "show", "proto", "140");
          const neighbours = await h2!.namespace.json("ip", "-j", "neighbour", "show", "dev", "flannel.7");
          expect({ routes: routes.length, neighbours: neighbours.length }).toEqual({
            routes: peers,
            neighbours: peers,
          });
          daemon.resume();
          await daemon.stop();
        },
        { flags: ["--etcd-prefix=/large", "--subnet-file", `${h2!.directory}/large.env`] },
      );
      await h2!.namespace.ip("link del flannel.7");
    },
    TIMEOUT,
  );

  test.each(["SIGTERM", "SIGINT"] as const)(
    "%s: STOPPING=1, exit 0 within 2 s, and everything stays",
    async (signal) => {
      await withDaemon(h1!, async (daemon) => {
        expect(daemon.notifications).toEqual(["READY=1"]);
        const [kernel, lease, file] = [
          await dumpKernel(h1!),
          await ownLease(cluster, h1!),
          statSync(h1!.subnetFile),
        ];
        const end = await daemon.stop(signal);
        expect(end.code).toBe(0);
        expect(end.milliseconds).toBeLessThan(STOP_MS);
        expect(daemon.notifications).toEqual(["READY=1", "STOPPING=1"]);
        expect(await dumpKernel(h1!)).toEqual(kernel);
        expect(await ownLease(cluster, h1!)).toEqual(lease);
        expect(statSync(h1!.subnetFile)).toMatchObject({ ino: file.ino, mtimeMs: file.mtimeMs });
      });
    },
    TIMEOUT,
  );

  test(
    "an abstract notify socket is told as well",
    async () => {
      const name = `@flannel-${process.pid}`;
      using socket = inNamespace(h1!.namespace, () => new NotifySocket(name));
      await using daemon = cluster.startDaemon(h1!, { env: { NOTIFY_SOCKET: name } });
      await until(() => socket.has("READY=1"), { message: () => daemon.tail(), deadline: 20_000 });
      await daemon.stop();
      expect(socket.has("STOPPING=1")).toBe(true);
    },
    TIMEOUT,
  );

  test(
    "a second signal kills",
    async () => {
      // Giving the lease back to an etcd that does not answer is what the stop waits for.
      await withDaemon(
        h1!,
        async (daemon) => {
          await h1!.separateFromEtcd();
          daemon.signal("SIGTERM");
          await daemon.waitForLog(({ msg }) => msg.startsWith("SIGTERM received"));
          expect(await daemon.stop("SIGTERM")).toMatchObject({ code: null, signal: "SIGTERM" });
          await h1!.reuniteWithEtcd();
        },
        { flags: ["--subnet-lease-release-on-stop"] },
      );
    },
    TIMEOUT,
  );

  test(
    "with --subnet-lease-release-on-stop the key is gone after the stop; without an answer the stop is still quick",
    async () => {
      const flags = ["--subnet-lease-release-on-stop"];
      await withDaemon(
        h1!,
        async (daemon) => {
          expect(await ownLease(cluster, h1!)).toBeDefined();
          expect(await daemon.stop()).toMatchObject({ code: 0 });
          expect(await ownLease(cluster, h1!)).toBeUndefined();
        },
        { flags },
      );
      await withDaemon(
        h1!,
        async (daemon) => {
          await h1!.separateFromEtcd();
          const end = await daemon.stop();
          await h1!.reuniteWithEtcd();
          expect(end.code).toBe(0);
          expect(end.milliseconds).toBeLessThan(STOP_MS);
        },
        { flags },
      );
    },
    TIMEOUT,
  );
});

describe("the subnet file", () => {
  test(
    "has upstream's bytes, comes back when it is deleted or spoilt, and is not touched by a restart",
    async () => {
      const read = () => Bun.file(h1!.subnetFile).text();
      let text = "";
      await withDaemon(h1!, async (daemon) => {
        const subnet = /^FLANNEL_SUBNET=(10\.244\.\d+)\.1\/24$/m.exec(await read())?.[1];
        text = `FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=${subnet}.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=false\n`;
        expect(await read()).toBe(text);
        expect(statSync(h1!.subnetFile).mode & 0o7777).toBe(0o644);
        expect((await ownLease(cluster, h1!))?.key).toBe(`${subnet}.0-24`);

        unlinkSync(h1!.subnetFile);
        await until(async () => (await read()) === text, { message: "the deleted file is written again" });
        writeFileSync(h1!.subnetFile, "FLANNEL_MTU=9000\n");
        await until(async () => (await read()) === text, { message: "the spoilt file is written again" });
        await daemon.stop();
      });
      const before = statSync(h1!.subnetFile);
      await withDaemon(h1!, async (daemon) => {
        expect(statSync(h1!.subnetFile)).toMatchObject({ ino: before.ino, mtimeMs: before.mtimeMs });
        await daemon.stop();
      });
    },
    TIMEOUT,
  );

  test(
    "has both families in a dual-stack cluster, and FLANNEL_IPMASQ as the flag says",
    async () => {
      await cluster.etcd.ctl(
        "put",
        "/dual/config",
        JSON.stringify(networkConfig("dual", { Type: "vxlan", VNI: 9 })),
      );
      const file = `${h3!.directory}/dual.env`;
      await withDaemon(
        h3!,
        async (daemon) => {
          const [lease] = await storedLeases(cluster, "/dual");
          const [, v4, v6] =
            /^(10\.244\.\d+)\.0-24&(fd00:10:244:[0-9a-f]+)::-64$/.exec(lease?.key ?? "") ?? [];
          expect(await Bun.file(file).text()).toBe(
            `FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=${v4}.1/24\nFLANNEL_IPV6_NETWORK=fd00:10:244::/48\n` +
              `FLANNEL_IPV6_SUBNET=${v6}::1/64\nFLANNEL_MTU=1430\nFLANNEL_IPMASQ=true\n`,
          );
          await daemon.stop();
        },
        { flags: ["--etcd-prefix=/dual", "--subnet-file", file, "--ip-masq"] },
      );
    },
    TIMEOUT,
  );

  test.each([
    [
      "a file of the last run",
      "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.77.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=false\n",
    ],
    [
      "quotes, export, CRLF and junk lines",
      'junk\r\nexport FLANNEL_SUBNET="10.244.77.1/24"\r\n=\r\nFLANNEL_MTU=x\r\n',
    ],
    [
      "bad entries beside a good one",
      "FLANNEL_SUBNET=10.244.77.1/24,not-a-cidr\nFLANNEL_NETWORK=not-a-cidr\n",
    ],
  ])(
    "of the last run decides the subnet when its lease is gone: %s",
    async (_, previous) => {
      const file = `${h3!.directory}/previous.env`;
      writeFileSync(file, previous);
      await withDaemon(
        h3!,
        async (daemon) => {
          const lease = await ownLease(cluster, h3!);
          expect(lease?.key).toBe("10.244.77.0-24");
          expect(await Bun.file(file).text()).toContain("FLANNEL_SUBNET=10.244.77.1/24\nFLANNEL_MTU=1450\n");
          await daemon.stop();
        },
        { flags: ["--subnet-file", file, "--subnet-lease-release-on-stop"] },
      );
    },
    TIMEOUT,
  );

  test.each([
    ["binary noise", Uint8Array.from({ length: 4096 }, (_, n) => (n * 7) % 256)],
    ["an empty file", new Uint8Array()],
    ["two subnets", new TextEncoder().encode("FLANNEL_SUBNET=10.244.77.1/24,10.244.78.1/24\n")],
    ["a subnet outside the network", new TextEncoder().encode("FLANNEL_SUBNET=172.16.5.1/24\n")],
  ])(
    "of the last run that cannot be used is replaced: %s",
    async (_, previous) => {
      const file = `${h3!.directory}/previous.env`;
      writeFileSync(file, previous);
      await withDaemon(
        h3!,
        async (daemon) => {
          const lease = await ownLease(cluster, h3!);
          expect(lease?.key).toMatch(/^10\.244\.\d+\.0-24$/);
          expect(await Bun.file(file).text()).toContain(
            `FLANNEL_SUBNET=${lease?.key.replace("0-24", "1/24")}\n`,
          );
          await daemon.stop();
        },
        { flags: ["--subnet-file", file, "--subnet-lease-release-on-stop"] },
      );
    },
    TIMEOUT,
  );
});

test("the lab's prefix is the daemon's default", () => expect(PREFIX).toBe("/coreos.com/network"));
