/**
 * ipsec with charon moving the packets itself (its plugin kernel-libipsec), so that no kernel needs ESP: the life of
 * charon and its tunnels, and bad input. What the kernel's part does is in ipsec-kernel.test.ts, what all backends do in
 * three-hosts/.
 *
 *   pod ── h1 ── ext0 ─┬─ switch + etcd
 *   pod ── h2 ── ext0 ─┤
 *   pod ── h3 ── ext0 ─┘
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { findCharon } from "../../backends/ipsec/charon/find.ts";
import { Cluster, PREFIX } from "../lab/cluster.ts";
import type { Daemon, DaemonOptions } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { ping } from "../lab/ping.ts";
import { PingFlow } from "../lab/ping-flow.ts";
import type { Pod } from "../lab/pod.ts";
import { tcpTransfer } from "../lab/transfer.ts";
import { until } from "../lab/until.ts";
import { readStatus } from "./ask.ts";
import { untilNoReason, untilReason } from "./health/readiness.ts";
import {
  countWire,
  daemonOptions,
  expectMtuFollows,
  IpsecCluster,
  ipsecConfig,
  PSK,
  runFolder,
  type Wire,
} from "./ipsec-lab.ts";
import { ownLease } from "./leases.ts";
import { expectRefusal } from "./refusal.ts";

const TIMEOUT = 120_000;

describe("three hosts", () => {
  let lab: IpsecCluster;
  let wire: () => Promise<Wire>;
  let [h1, h2, h3] = [] as unknown as [Host, Host, Host];

  beforeAll(async () => {
    lab = await IpsecCluster.create("charon", 3);
    [h1, h2, h3] = lab.hosts as [Host, Host, Host];
    wire = await countWire(lab);
    await lab.bringUp();
  }, TIMEOUT);
  afterAll(() => lab[Symbol.asyncDispose]());

  const untilAllPing = async () => {
    for (const [from, to] of [
      [0, 1],
      [1, 2],
      [2, 0],
    ] as const) {
      await lab.untilPing(from, to);
    }
  };

  const untilTunnels = (host: Host) =>
    until(async () => JSON.stringify(await readStatus(host)).includes('"tunnels":"2 of 2 up"'), {
      message: "both tunnels are known to be up",
    });

  test(
    "pods talk through the tunnels alone",
    async () => {
      await untilAllPing();
      const [p1, , p3] = lab.pods as [Pod, Pod, Pod];
      expect((await tcpTransfer(p1, p3, p3.ipv4, { bytes: 4 * 1024 * 1024 })).bytes).toBeGreaterThan(
        1024 * 1024,
      );
      // The host itself reaches pods, by an address of its own subnet.
      expect((await ping(h1, p3.ipv4)).received).toBe(3);
      const counted = await wire();
      expect(counted.clear).toBe(0);
      expect(counted.encrypted).toBeGreaterThan(1_000);
      expect(await lab.associations(h1)).toMatch(/out [0-9a-f]{8}, +\d{5,} bytes, +\d{3,} packets/);
      await lab.daemons[0]?.waitForLog(({ code }) => code === "IPSEC_USERSPACE");
      await expectMtuFollows(h1);
      await untilTunnels(h1);
    },
    TIMEOUT,
  );

  test(
    "charon dies: it is said, it is started again, and the tunnels come back",
    async () => {
      const [d1] = lab.daemons as [Daemon];
      const after = d1.lines.length;
      const former = await lab.charonPid(h1);
      process.kill(former ?? 0, "SIGKILL");
      const down = await d1.waitForLog(({ code }) => code === "IPSEC_CHARON_DOWN", { after });
      expect(down.level).toBe("error");
      expect(String(down.msg)).toContain("SIGKILL");
      await d1.waitForLog(({ code, msg }) => code === "IPSEC_CHARON_DOWN" && String(msg).startsWith("over"), {
        after,
        deadline: 20_000,
      });
      expect(await lab.charonPid(h1)).not.toBe(former);
      await untilAllPing();
      expect((await wire()).clear).toBe(0);
    },
    TIMEOUT,
  );

  test(
    "charon and its tunnels outlive the daemon, however that ends, and the next one goes on with them",
    async () => {
      const [p1, p2] = lab.pods as [Pod, Pod];
      const [charon, tunnels] = [await lab.charonPid(h1), await lab.ikeNumbers(h1)];
      expect(tunnels.length).toBeGreaterThanOrEqual(2);
      await using there = await PingFlow.start(p1, p2.ipv4, { rate: 50 });
      await using back = await PingFlow.start(p2, p1.ipv4, { rate: 50 });
      for (const end of ["stop", "kill"] as const) {
        await lab.daemons[0]?.[end]();
        lab.daemons[0] = lab.start(h1);
        await lab.daemons[0].ready;
        await lab.daemons[0].waitForLog(({ msg }) => String(msg).startsWith("going on with the charon"));
        expect([await lab.charonPid(h1), await lab.ikeNumbers(h1)]).toEqual([charon, tunnels]);
        await untilTunnels(h1);
      }
      for (const flow of [there, back]) {
        await flow.expectAnswers(10);
        expect(await flow.stop()).toMatchObject({ lost: 0, duplicates: 0 });
      }
      expect([await lab.charonPid(h1), await lab.ikeNumbers(h1)]).toEqual([charon, tunnels]);
      expect((await wire()).clear).toBe(0);
    },
    TIMEOUT,
  );

  test(
    "a charon that hangs, has another configuration or cannot be told from others' is replaced",
    async () => {
      const { STRONGSWAN_CONF = "" } = daemonOptions(h1, "charon").env ?? {};
      const other = `${STRONGSWAN_CONF}.other`;
      writeFileSync(other, readFileSync(STRONGSWAN_CONF, "utf8").replace("}", "  retransmit_tries = 4\n}"));
      const cases: readonly (readonly [string, (charon: number) => void, DaemonOptions])[] = [
        ["it does not answer", (charon) => process.kill(charon, "SIGSTOP"), {}],
        ["another configuration", () => writeFileSync(`${h1.subnetFile}.charon`, '{"pid":'), {}],
        ["another configuration", () => {}, { env: { STRONGSWAN_CONF: other } }],
      ];
      for (const [why, spoil, options] of cases) {
        const charon = (await lab.charonPid(h1)) ?? 0;
        await lab.daemons[0]?.kill();
        spoil(charon);
        const daemon = lab.start(h1, options);
        lab.daemons[0] = daemon;
        await daemon.ready;
        const replaced = await daemon.waitForLog(({ msg }) => String(msg).startsWith("killed the charon"));
        expect(replaced).toMatchObject({ pid: charon, msg: expect.stringContaining(why) });
        await until(() => !existsSync(`/proc/${charon}`), { message: `charon ${charon} is gone` });
        await untilAllPing();
        // What it prints is heard.
        await daemon.waitForLog(({ msg }) => /^charon: .*established with/i.test(String(msg)));
      }
      expect((await wire()).clear).toBe(0);
    },
    TIMEOUT,
  );

  test(
    "a host leaves, also while no daemon runs, and comes back; a peer of another backend is named",
    async () => {
      const { key } = (await ownLease(lab.cluster, h3))!;
      const [charon, tunnels] = [await lab.charonPid(h2), await lab.ikeNumbers(h2)];
      await Promise.all([lab.daemons[2]?.stop(), lab.daemons[1]?.kill()]);
      await lab.cluster.etcd.ctl("del", `${PREFIX}/subnets/${key}`);
      await until(async () => !(await lab.associations(h1)).includes(key.replace("-", "/")), {
        message: "h1 has no tunnel to h3",
      });
      lab.daemons[1] = lab.start(h2);
      await lab.daemons[1].ready;
      await until(async () => !(await lab.connections(h2)).includes(key.replace("-", "/")), {
        message: "h2 has no connection to h3",
      });
      expect(await lab.charonPid(h2)).toBe(charon);
      const left = await lab.ikeNumbers(h2);
      expect([left.length > 0, left.every((number) => tunnels.includes(number))]).toEqual([true, true]);
      const stranger = { PublicIP: "192.0.2.55", BackendType: "vxlan", BackendData: { VNI: 1 } };
      await lab.cluster.etcd.ctl("put", `${PREFIX}/subnets/10.244.254.0-24`, JSON.stringify(stranger));
      const named = await lab.daemons[0]?.waitForLog(({ code }) => code === "PEER_UNUSABLE");
      expect(String(named?.msg)).toContain('uses backend "vxlan", this node uses "ipsec"');
      await lab.cluster.etcd.ctl("del", `${PREFIX}/subnets/10.244.254.0-24`);
      lab.daemons[2] = lab.start(h3);
      await lab.daemons[2].ready;
      await untilAllPing();
      expect(await h2.namespace.exec("ip", "xfrm", "policy", "list")).not.toContain("reqid 11");
    },
    TIMEOUT,
  );

  test("the key is in no log and in no file that is left", () => {
    for (const daemon of lab.daemons)
      expect(readFileSync(daemon.logPath, "utf8")).not.toContain(PSK.slice(0, 24));
    for (const host of lab.hosts) {
      const left = [...new Bun.Glob("**/*").scanSync({ cwd: host.directory, onlyFiles: true })];
      // What charon prints goes through a FIFO, which is none.
      for (const file of left.filter((name) => statSync(`${host.directory}/${name}`).isFile()))
        expect(readFileSync(`${host.directory}/${file}`, "utf8")).not.toContain(PSK.slice(0, 24));
    }
  });
});

describe("bad input", () => {
  test(
    "charon is missing",
    async () => {
      await using cluster = await Cluster.create({ hosts: 1, config: ipsecConfig() });
      const refusal = await expectRefusal(cluster, cluster.hosts[0]!, {
        flags: ["--charon-executable=/nonexistent/charon"],
      });
      expect(refusal.code).toBe("IPSEC_CHARON_MISSING");
      expect(refusal.message).toContain("/nonexistent/charon");
      expect(refusal.hint).toContain("strongswan");
      expect(refusal.output).not.toContain(PSK.slice(0, 24));
    },
    TIMEOUT,
  );

  test(
    "a PSK that is too short, an IPv6 network",
    async () => {
      const short = PSK.slice(0, 40);
      await using cluster = await Cluster.create({ hosts: 1, config: { ...ipsecConfig({ PSK: short }) } });
      const [host] = cluster.hosts as [Host];
      const refusal = await expectRefusal(cluster, host);
      expect(refusal.code).toBe("CONFIG_INVALID");
      expect(refusal.message).toContain("96");
      expect(refusal.output).not.toContain(short.slice(0, 24));
      await cluster.configure({ ...ipsecConfig(), EnableIPv6: true, IPv6Network: "fd00:10:244::/48" });
      expect((await expectRefusal(cluster, host)).code).toBe("BACKEND_FAMILY");
    },
    TIMEOUT,
  );

  test(
    "a charon that cannot have its ports is said, one that ends at once too and with its own words; the daemon recovers",
    async () => {
      await using lab = await IpsecCluster.create("charon", 1);
      const [host] = lab.hosts as [Host];
      const options = daemonOptions(host, "charon");
      const { STRONGSWAN_CONF = "" } = options.env ?? {};
      const taken = [500, 4500].map((port) => host.namespace.spawn("socat", "-u", `UDP4-RECV:${port}`, "-"));
      // It starts without sockets, and listens to us all the same.
      const daemon = lab.cluster.startDaemon(host, options);
      await daemon.ready;
      expect((await untilReason(host, "IPSEC_CHARON_DOWN")).text).toContain("no sockets for IKE");
      for (const each of taken) each.kill();
      writeFileSync(STRONGSWAN_CONF, "charon {\n  load = no-such-plugin\n}\n");
      await until(async () => /exit code/.test((await untilReason(host, "IPSEC_CHARON_DOWN")).text), {
        message: "it has ended",
      });
      expect((await untilReason(host, "IPSEC_CHARON_DOWN")).text).toMatch(/exit code/);
      daemonOptions(host, "charon");
      await daemon.waitForLog(
        ({ code, msg }) => code === "IPSEC_CHARON_DOWN" && String(msg).startsWith("over"),
        {
          deadline: 60_000,
        },
      );
      await untilNoReason(host);
    },
    TIMEOUT,
  );

  test(
    "a charon that the operator runs is used, and neither a daemon nor its cleanup ends it",
    async () => {
      await using lab = await IpsecCluster.create("charon", 1);
      const [host] = lab.hosts as [Host];
      const { file = "", env = {} } = daemonOptions(host, "charon");
      const charon = host.namespace.spawn(
        "sh",
        "-ec",
        `mount --bind ${runFolder(host)} /run; STRONGSWAN_CONF=${env.STRONGSWAN_CONF} exec ${findCharon().found}`,
      );
      await until(() => existsSync(`${runFolder(host)}/charon.vici`), { message: "it listens" });
      const daemon = lab.start(host);
      await daemon.waitForLog(({ code }) => code === "IPSEC_CHARON_FOREIGN");
      await daemon.kill();
      const { exitCode, stdout } = await host.namespace.run(
        [
          file,
          "cleanup",
          `--subnet-file=${host.subnetFile}`,
          `--etcd-endpoints=${lab.cluster.etcd.endpoint}`,
        ],
        { env: { PATH: process.env.PATH ?? "", ...env } },
      );
      expect({ exitCode, stdout }).toMatchObject({ exitCode: 0 });
      expect(await lab.charonPid(host)).toBe(charon.pid);
      expect(charon.exitCode).toBeNull();
      expect(await host.namespace.ip("rule show")).toContain("lookup 220");
    },
    TIMEOUT,
  );
});
