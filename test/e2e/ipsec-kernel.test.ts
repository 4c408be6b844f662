/**
 * ipsec with ESP in a kernel that has it, one story on two hosts. What it does as other backends do is in three-hosts/.
 *
 *   pod ── h1 ── ext0 ─┬─ switch + etcd
 *   pod ── h2 ── ext0 ─┘
 */
import { afterAll, beforeAll, expect } from "bun:test";
import type { Host } from "../lab/host.ts";
import { ping } from "../lab/ping.ts";
import { PingFlow } from "../lab/ping-flow.ts";
import { readSubnetFile } from "../lab/subnet-file.ts";
import { tcpTransfer } from "../lab/transfer.ts";
import { until } from "../lab/until.ts";
import { IN_VM, vmTests } from "../lab/vm/vm.ts";
import { countWire, IpsecCluster, ipsecConfig, PSK, runFolder, type Wire } from "./ipsec-lab.ts";
import { ownLease } from "./leases.ts";

const vm = vmTests(import.meta.path, { timeout: 900 });

let lab: IpsecCluster;
let wire: () => Promise<Wire>;
const h1 = () => lab.hosts[0] as Host;
const h2 = () => lab.hosts[1] as Host;

if (IN_VM) {
  beforeAll(async () => {
    lab = await IpsecCluster.create("kernel", 2);
    wire = await countWire(lab);
    // Of an earlier run, and of somebody else.
    const stale =
      "src 10.244.250.0/24 dst 10.244.251.0/24 dir out tmpl src 192.0.2.1 dst 192.0.2.9 proto esp";
    await h1().namespace.exec(
      ..."ip xfrm policy add".split(" "),
      ...`${stale} reqid 11 mode tunnel`.split(" "),
    );
    await h1().namespace.exec(
      ..."ip xfrm policy add src 10.9.1.0/24 dst 10.9.2.0/24 dir out tmpl src 192.0.2.1 dst 192.0.2.9 proto esp reqid 11 mode tunnel".split(
        " ",
      ),
    );
    await lab.bringUp();
  });
  afterAll(() => lab[Symbol.asyncDispose]());
}

const policies = (host: Host) => host.namespace.exec("ip", "xfrm", "policy", "list");
const states = async (host: Host) =>
  [
    ...(await host.namespace.exec("ip", "xfrm", "state", "list")).matchAll(/proto esp spi (0x[0-9a-f]+)/g),
  ].map(([, spi = ""]) => spi);
const subnetOf = async (host: Host) =>
  (await readSubnetFile(host.subnetFile)).subnet?.replace(/\.1\/24$/, ".0/24") ?? "";

vm.test("pods talk through ESP tunnels, and nothing of theirs passes in clear", async () => {
  await lab.untilPing(0, 1);
  const [p1, p2] = [lab.pods[0]!, lab.pods[1]!];
  expect((await ping(p2, p1.ipv4)).received).toBe(3);
  expect((await tcpTransfer(p1, p2, p2.ipv4, { bytes: 4 * 1024 * 1024 })).bytes).toBeGreaterThan(1024 * 1024);
  const { clear, encrypted } = await wire();
  expect(clear).toBe(0);
  expect(encrypted).toBeGreaterThan(1_000);
  // The host itself reaches pods, by an address of its own subnet.
  expect((await ping(h1(), p2.ipv4, { count: 2 })).received).toBe(2);
  expect((await wire()).clear).toBe(0);
  const counters = await h1().namespace.exec("ip", "-s", "xfrm", "state", "list");
  expect(counters).toMatch(/reqid 11\(?.*mode tunnel/);
  expect(counters).toMatch(/\d{4,}\(bytes\), \d{3,}\(packets\)/);
});

vm.test("stale policies of ours are gone, those of others stay", async () => {
  const text = await policies(h1());
  expect(text).not.toContain("10.244.250.0/24");
  expect(text).toContain("src 10.9.1.0/24 dst 10.9.2.0/24");
  const [own, far] = [await subnetOf(h1()), await subnetOf(h2())];
  expect(text).toContain(`src ${own} dst ${far}`);
  expect(
    [...text.matchAll(new RegExp(`src ${far} dst ${own}\\s+dir (\\w+)`, "g"))].map(([, dir]) => dir).sort(),
  ).toEqual(["fwd", "in"]);
});

vm.test(
  "policies, routes and states that somebody deletes come back, with nothing in clear meanwhile",
  async () => {
    const before = await wire();
    await h1().namespace.exec("ip", "xfrm", "policy", "flush");
    await h1().namespace.exec("ip", "route", "flush", "proto", "140");
    await lab.untilPing(0, 1);
    await h2().namespace.exec("ip", "xfrm", "state", "flush");
    await lab.untilPing(1, 0, 60_000);
    expect((await wire()).clear).toBe(before.clear);
  },
);

vm.test("charon dies: traffic goes on, it is said, and the tunnels are taken over", async () => {
  await using flow = await PingFlow.start(lab.pods[0]!, lab.pods[1]!.ipv4, { rate: 20 });
  const old = await states(h1());
  const lines = lab.daemons[0]!.lines.length;
  process.kill((await lab.charonPid(h1()))!, "SIGKILL");
  const raised = await lab.daemons[0]!.waitForLog(({ code }) => code === "IPSEC_CHARON_DOWN", {
    after: lines,
    deadline: 20_000,
  });
  expect(raised.level).toBe("error");
  await lab.daemons[0]!.waitForLog(
    ({ code, msg }) => code === "IPSEC_CHARON_DOWN" && /^over/.test(String(msg)),
    {
      after: lines,
      deadline: 60_000,
    },
  );
  await until(async () => (await states(h1())).every((spi) => !old.includes(spi)), {
    message: async () => `old states are gone: ${old}; ${await states(h1())}`,
    deadline: 30_000,
  });
  await lab.untilPing(0, 1);
  const { lost, sent } = await flow.stop();
  console.log(`charon killed: ${lost} of ${sent} lost`);
  expect(lost).toBeLessThan(10);
});

vm.test(
  "the daemon is stopped or killed, and started: charon and its tunnels stay, nothing is lost",
  async () => {
    const [p1, p2] = [lab.pods[0]!, lab.pods[1]!];
    const [charon, tunnels] = [await lab.charonPid(h1()), await lab.ikeNumbers(h1())];
    const old = await states(h1());
    expect(tunnels).not.toBeEmpty();
    await using there = await PingFlow.start(p1, p2.ipv4, { rate: 50 });
    await using back = await PingFlow.start(p2, p1.ipv4, { rate: 50 });
    for (const end of ["stop", "kill"] as const) {
      await lab.daemons[0]![end]();
      lab.daemons[0] = lab.start(h1());
      await lab.daemons[0].ready;
      await lab.daemons[0].waitForLog(({ msg }) => String(msg).startsWith("going on with the charon"));
    }
    await Promise.all([there.expectAnswers(50), back.expectAnswers(50)]);
    for (const flow of [there, back]) expect((await flow.stop()).lost).toBe(0);
    expect([await lab.charonPid(h1()), await lab.ikeNumbers(h1())]).toEqual([charon, tunnels]);
    expect(await states(h1())).toEqual(old);
    expect((await wire()).clear).toBe(0);
  },
);

vm.test("with UDPEncap ESP goes in UDP, and pods have 8 bytes less", async () => {
  await lab.cluster.configure(ipsecConfig({ UDPEncap: true }));
  await Promise.all(
    lab.hosts.map(async (host, at) => {
      await lab.daemons[at]!.stop();
      lab.daemons[at] = lab.start(host);
      await lab.daemons[at]!.ready;
    }),
  );
  await lab.untilPing(0, 1);
  await until(async () => /TUNNEL-in-UDP/.test(await lab.associations(h1())), {
    message: "UDP",
    deadline: 30_000,
  });
  expect((await readSubnetFile(h1().subnetFile)).mtu).toBe(1500 - 85);
  expect(await h1().namespace.exec("ip", "xfrm", "state", "list")).toContain("espinudp");
});

vm.test("a host that leaves takes its policies and states along; cleanup leaves nothing", async () => {
  const { key } = (await ownLease(lab.cluster, h2()))!;
  await lab.daemons[1]!.stop();
  await lab.cluster.etcd.ctl("del", `/coreos.com/network/subnets/${key}`);
  await until(async () => !(await policies(h1())).includes(key.replace("-", "/")), {
    message: "h1 forgets h2",
  });
  await until(async () => (await states(h1())).length === 0, {
    message: "no state is left",
    deadline: 30_000,
  });
  await lab.daemons[0]!.stop();
  const { stdout, exitCode } = await h1().namespace.run([
    "sh",
    "-c",
    `mount --bind ${runFolder(h1())} /run; exec ${process.env.FLANNELD} cleanup --subnet-file=${h1().subnetFile} --etcd-endpoints=${lab.cluster.etcd.endpoint}`,
  ]);
  expect({ stdout, exitCode }).toMatchObject({ exitCode: 0 });
  expect(await policies(h1())).not.toContain("10.244.");
  expect(await h1().namespace.exec("ip", "route", "show", "proto", "140")).toBe("");
  expect(await lab.charonPid(h1())).toBeUndefined();
});

vm.test("the key is in no log", async () => {
  for (const daemon of lab.daemons)
    expect(await Bun.file(daemon.logPath).text()).not.toContain(PSK.slice(0, 24));
});
