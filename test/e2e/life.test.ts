/**
 * The daemon's life as its service manager sees it: waiting, readiness, stop.
 *
 *   h1 ── ext0 ── switch + etcd ── ext0 ── h2
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { statSync } from "node:fs";
import { Cluster, networkConfig } from "../lab/cluster.ts";
import { Daemon } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { inNamespace } from "../lab/in-namespace.ts";
import { NotifySocket } from "../lab/notify-socket.ts";
import { dumpKernel } from "../lab/oracle/actual.ts";
import { endpointFor } from "../lab/switch-etcd.ts";
import { until } from "../lab/until.ts";
import { ownLease, putLeases } from "./leases.ts";

const TIMEOUT = 60_000;
/** The bound for a stop, ms. */
const STOP_MS = 2_000;

let cluster: Cluster;
let [h1, h2]: Host[] = [];

beforeAll(async () => {
  cluster = await Cluster.create({ hosts: 2, family: "dual", config: null });
  [h1, h2] = cluster.hosts;
}, TIMEOUT);
afterAll(() => cluster[Symbol.asyncDispose]());

function start(
  host: Host,
  flags: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Daemon {
  return Daemon.start(host, { endpoints: endpointFor(host), flags, env });
}

describe("waiting", () => {
  test(
    "without a network config it waits, says so once, and starts when the config is written",
    async () => {
      await using daemon = start(h1!);
      const line = await daemon.waitForLog(({ code }) => code === "CONFIG_MISSING");
      expect(line).toMatchObject({ level: "error", fix: expect.stringContaining("etcdctl put") });
      await cluster.configure(networkConfig("v4"));
      await daemon.ready;
      expect(daemon.lines.filter(({ level }) => level === "error")).toHaveLength(1);
      await daemon.stop();
    },
    TIMEOUT,
  );

  test(
    "an unreachable etcd is one line in the log, and SIGTERM ends the wait at once",
    async () => {
      await using daemon = start(h2!, ["--etcd-endpoints=http://192.0.2.100:1,http://192.0.2.100:2"]);
      const line = await daemon.waitForLog(({ level }) => level === "error");
      expect(line).toMatchObject({
        code: "ETCD_UNREACHABLE",
        fix: expect.stringMatching(/check that etcd runs/),
      });
      // Several tries later it is still one line.
      await Bun.sleep(1_500);
      expect(daemon.lines.filter(({ level }) => level !== "info")).toHaveLength(1);
      const end = await daemon.stop("SIGTERM");
      expect(end.code).toBe(0);
      expect(end.milliseconds).toBeLessThan(STOP_MS);
      expect(daemon.lines.filter(({ level }) => level === "error")).toHaveLength(1);
    },
    TIMEOUT,
  );

  test(
    "SIGINT ends the wait for the network config",
    async () => {
      await using daemon = start(h2!, ["--etcd-prefix=/nothing"]);
      await daemon.waitForLog(({ code }) => code === "CONFIG_MISSING");
      const end = await daemon.stop("SIGINT");
      expect(end.code).toBe(0);
      expect(end.milliseconds).toBeLessThan(STOP_MS);
      expect(daemon.notifications).not.toContain("READY=1");
    },
    TIMEOUT,
  );

  test(
    "SIGTERM ends the wait for an interface",
    async () => {
      await using waiting = Daemon.start(h2!, { endpoints: endpointFor(h2!), iface: "eth7" });
      await waiting.waitForLog(({ code }) => code === "INTERFACE_NONE");
      const end = await waiting.stop();
      expect(end.code).toBe(0);
      expect(end.milliseconds).toBeLessThan(STOP_MS);
    },
    TIMEOUT,
  );
});

describe("readiness", () => {
  test(
    "READY=1 comes after the first complete synchronisation",
    async () => {
      const peers = Array.from({ length: 1_500 }, (_, n) => peerOf(n >> 8, n & 255));
      await putLeases(cluster, peers, "/large");
      const config = { Network: "10.96.0.0/11", SubnetMin: "10.120.0.0", Backend: { Type: "vxlan", VNI: 7 } };
      await cluster.etcd.ctl("put", "/large/config", JSON.stringify(config));
      await using daemon = start(h2!, ["--etcd-prefix=/large", `--subnet-file=${h2!.directory}/large.env`]);
      await daemon.ready;
      // What is missing now would have been missing at READY=1.
      daemon.pause();
      const routes = await h2!.namespace.json("ip", "-j", "route", "show", "proto", "140");
      const neighbours = await h2!.namespace.json("ip", "-j", "neighbour", "show", "dev", "flannel.7");
      expect([routes.length, neighbours.length]).toEqual([peers.length, peers.length]);
      daemon.resume();
      await daemon.stop();
      await h2!.namespace.ip("link del flannel.7");
    },
    TIMEOUT,
  );

  test(
    "an abstract notify socket is told as well",
    async () => {
      const name = `@flannel-${process.pid}`;
      using socket = inNamespace(h1!.namespace, () => new NotifySocket(name));
      await using daemon = start(h1!, [], { NOTIFY_SOCKET: name });
      await until(() => socket.has("READY=1"), { message: () => daemon.tail(), deadline: 20_000 });
      await daemon.stop();
      expect(socket.has("STOPPING=1")).toBe(true);
    },
    TIMEOUT,
  );
});

describe("stopping", () => {
  test.each(["SIGTERM", "SIGINT"] as const)(
    "%s: STOPPING=1, exit 0 within 2 s, and everything stays",
    async (signal) => {
      await using daemon = start(h1!);
      await daemon.ready;
      expect(daemon.notifications).toEqual(["READY=1"]);
      const remember = async () => {
        const { ino, mtimeMs } = statSync(h1!.subnetFile);
        return { kernel: await dumpKernel(h1!), lease: await ownLease(cluster, h1!), file: { ino, mtimeMs } };
      };
      const before = await remember();
      const end = await daemon.stop(signal);
      expect(end.code).toBe(0);
      expect(end.milliseconds).toBeLessThan(STOP_MS);
      expect(daemon.notifications).toEqual(["READY=1", "STOPPING=1"]);
      expect(await remember()).toEqual(before);
    },
    TIMEOUT,
  );

  test(
    "a second signal kills",
    async () => {
      // Giving the lease back to an etcd that does not answer is what the stop waits for.
      await using daemon = start(h1!, ["--subnet-lease-release-on-stop"]);
      await daemon.ready;
      await h1!.separateFromEtcd();
      daemon.signal("SIGTERM");
      await daemon.waitForLog(({ msg }) => msg.startsWith("SIGTERM received"));
      expect(await daemon.stop("SIGTERM")).toMatchObject({ code: null, signal: "SIGTERM" });
      await h1!.reuniteWithEtcd();
    },
    TIMEOUT,
  );

  test(
    "with --subnet-lease-release-on-stop the key is gone afterwards; an etcd that does not answer is not waited for",
    async () => {
      {
        await using daemon = start(h1!, ["--subnet-lease-release-on-stop"]);
        await daemon.ready;
        expect(await ownLease(cluster, h1!)).toBeDefined();
        expect(await daemon.stop()).toMatchObject({ code: 0 });
        expect(await ownLease(cluster, h1!)).toBeUndefined();
      }
      await using daemon = start(h1!, ["--subnet-lease-release-on-stop"]);
      await daemon.ready;
      await h1!.separateFromEtcd();
      const end = await daemon.stop();
      await h1!.reuniteWithEtcd();
      expect(end.code).toBe(0);
      expect(end.milliseconds).toBeLessThan(STOP_MS);
    },
    TIMEOUT,
  );
});

/** A node that is not there, in the lower half of 10.96.0.0/11. */
function peerOf(a: number, b: number) {
  const hex = (byte: number) => byte.toString(16).padStart(2, "0");
  return {
    key: `10.${96 + a}.${b}.0-24`,
    value: {
      PublicIP: `10.1.${a}.${b}`,
      PublicIPv6: null,
      BackendType: "vxlan",
      BackendData: { VNI: 7, VtepMAC: `02:00:00:00:${hex(a)}:${hex(b)}` },
    },
  };
}
