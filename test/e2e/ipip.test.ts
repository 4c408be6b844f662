/**
 * The ipip backend, on a kernel that has it. What it does as other backends do is in three-hosts/.
 *
 *   pod ── cni0 ── h1 ── ext0 ─┬─ switch + etcd
 *   pod ── cni0 ── h2 ── ext0 ─┤
 *           a stranger ── ext0 ─┘  h3, which joins later
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Cluster, networkConfig, PREFIX } from "../lab/cluster.ts";
import type { Daemon } from "../lab/daemon.ts";
import type { Host } from "../lab/host.ts";
import { ping } from "../lab/ping.ts";
import { PingFlow } from "../lab/ping-flow.ts";
import type { Pod } from "../lab/pod.ts";
import { readSubnetFile } from "../lab/subnet-file.ts";
import { until } from "../lab/until.ts";
import { IN_VM, vmTests } from "../lab/vm/vm.ts";
import { runCommand } from "./command.ts";
import { expectRefusal, expectWords } from "./refusal.ts";

const vm = vmTests(import.meta.path, { timeout: 900 });
const config = (options: object = {}) => networkConfig("v4", { Type: "ipip", ...options });

const stack = new AsyncDisposableStack();
let cluster: Cluster;
let [h1, h2, stranger] = [] as unknown as Host[];
let [d1, d2] = [] as unknown as Daemon[];
let [p1, p2] = [] as unknown as Pod[];

if (IN_VM) {
  beforeAll(async () => {
    cluster = stack.use(await Cluster.create({ hosts: 3, config: config({ MembersOnly: true }) }));
    [h1, h2, stranger] = cluster.hosts;
    d1 = cluster.startDaemon(h1!);
    d2 = cluster.startDaemon(h2!);
    await Promise.all([d1.ready, d2.ready]);
    p1 = await cluster.addPod(h1!);
    p2 = await cluster.addPod(h2!);
  });
  afterAll(() => stack.disposeAsync());
} else {
  test("where the kernel has no ipip, the start ends with what to do about it", async () => {
    await using small = await Cluster.create({ hosts: 1, config: config() });
    const [host] = small.hosts as [Host];
    const has = await host.namespace.run(["ip", "link", "add", "probe0", "type", "ipip", "local", host.ipv4]);
    if (has.exitCode === 0) return console.info("  skipped: this kernel has ipip");
    const refusal = await expectRefusal(small, host);
    expectWords(refusal, "LINK_KIND_UNSUPPORTED", "the kernel has no ipip devices");
    expectWords(refusal, "LINK_KIND_UNSUPPORTED", "modprobe ipip");
  });
}

vm.test(
  "one named device, routes through the peer's address, and the kernel's tunl0 is left alone",
  async () => {
    const [device] = await h1!.namespace.json("ip", "-j", "-d", "link", "show", "flannel.ipip");
    expect(device).toMatchObject({ mtu: 1480, linkinfo: { info_data: { local: h1!.ipv4, remote: "any" } } });
    expect(device.linkinfo.info_data.pmtudisc ?? false).toBe(false);
    const { subnet = "" } = await readSubnetFile(h1!.subnetFile);
    expect(await addressesOf(h1!, "flannel.ipip")).toEqual([subnet.replace(/1\/24$/, "0/32")]);
    expect(await routesOf(h1!)).toEqual([`${await subnetOf(h2!)} via ${h2!.ipv4} dev flannel.ipip onlink`]);
    const [untouched] = await h1!.namespace.json("ip", "-j", "link", "show", "tunl0");
    expect(untouched.flags).not.toContain("UP");
    expect(await addressesOf(h1!, "tunl0")).toEqual([]);
  },
);

vm.test("what a stranger sends by protocol 4 never reaches a pod, until it is a member", async () => {
  const { namespace } = stranger!;
  await namespace.ip(`link add forged type ipip local ${stranger!.ipv4} remote ${h1!.ipv4}`);
  await namespace.ip("link set forged up");
  await namespace.ip("address add 10.244.250.1/32 dev forged");
  await namespace.ip(`route add ${p1!.ipv4}/32 dev forged`);
  const before = await echoesOf(p1!);
  await ping(stranger!, p1!.ipv4, { source: "10.244.250.1" });
  expect(await droppedBy(h1!)).toBe(3);
  expect(await echoesOf(p1!)).toBe(before);

  // Seen by its lease it is let in, at once, and its forged packets arrive as any member's do.
  const d3 = cluster.startDaemon(stranger!);
  await d3.ready;
  await until(async () => (await membersOf(h1!)).includes(stranger!.ipv4), {
    message: async () => `members ${await membersOf(h1!)}`,
    deadline: 3_000,
  });
  await ping(stranger!, p1!.ipv4, { source: "10.244.250.1" });
  expect(await droppedBy(h1!)).toBe(3);
  expect(await echoesOf(p1!)).toBe(before + 3);
  await namespace.ip("link delete forged");
  const p3 = await cluster.addPod(stranger!);
  expect((await ping(p1!, p3.ipv4)).received).toBe(3);

  // And out again when its lease is gone.
  await d3.stop();
  const key = (await subnetOf(stranger!)).replace("/", "-");
  await cluster.etcd.ctl("del", `${PREFIX}/subnets/${key}`);
  await until(async () => !(await membersOf(h1!)).includes(stranger!.ipv4), {
    message: async () => `members ${await membersOf(h1!)}`,
    deadline: 3_000,
  });
  expect((await ping(p1!, p2!.ipv4)).received).toBe(3);
});

vm.test(
  "a restart costs no packet, adopts device and filter, and keeps the operator's lower MTU",
  async () => {
    const subnetMtu = async () => (await readSubnetFile(h1!.subnetFile)).mtu;
    const device = async () => (await h1!.namespace.json("ip", "-j", "link", "show", "flannel.ipip"))[0];
    await h1!.namespace.ip("link set flannel.ipip mtu 1400");
    await until(async () => (await subnetMtu()) === 1400, {
      message: async () => `FLANNEL_MTU=1400, not ${await subnetMtu()}`,
      deadline: 3_000,
    });
    await using flow = await PingFlow.start(p1!, p2!.ipv4, { rate: 20 });
    const { ifindex } = await device();
    const handle = await tableHandle(h1!);
    expect(await d1!.stop()).toMatchObject({ code: 0 });
    await flow.expectAnswers(10);
    d1 = cluster.startDaemon(h1!);
    await d1.ready;
    await flow.expectAnswers(10);
    expect((await flow.stop()).lost).toBe(0);
    expect(await device()).toMatchObject({ ifindex, mtu: 1400 });
    expect(await subnetMtu()).toBe(1400);
    expect(await tableHandle(h1!)).toBe(handle);
    expect(d1.lines.filter(({ level }) => level === "warn" || level === "error")).toEqual([]);

    await h1!.namespace.ip("link set flannel.ipip mtu 1500");
    const untilMtu = (mtu: number) =>
      until(async () => (await device()).mtu === mtu && (await subnetMtu()) === mtu, {
        message: async () => `MTU ${mtu}, not ${(await device()).mtu}`,
        deadline: 3_000,
      });
    await untilMtu(1480);
    // The interface's MTU is followed, down and up again.
    for (const mtu of [1300, 1500]) {
      await h1!.namespace.ip(`link set ext0 mtu ${mtu}`);
      await untilMtu(mtu - 20);
    }
  },
);

vm.test("a deleted device, a deleted route and a flushed filter come back", async () => {
  await h1!.namespace.ip("link delete flannel.ipip");
  await until(async () => (await ping(p1!, p2!.ipv4, { count: 1 })).received === 1, {
    message: async () => `no way to ${p2!.ipv4}: ${await h1!.namespace.ip("route")}`,
    deadline: 3_000,
  });
  await h1!.namespace.ip(`route delete ${await subnetOf(h2!)}`);
  await until(async () => (await routesOf(h1!)).length === 1, { message: "the route", deadline: 3_000 });
  await h1!.namespace.exec("nft", "flush", "ruleset");
  await until(async () => (await membersOf(h1!)).includes(h2!.ipv4), {
    message: "the filter",
    deadline: 6_000,
  });
});

vm.test("DirectRouting: plain routes on the link; without MembersOnly the filter goes", async () => {
  await cluster.configure(config({ DirectRouting: true }));
  await Promise.all([d1!.stop(), d2!.stop()]);
  d1 = cluster.startDaemon(h1!);
  d2 = cluster.startDaemon(h2!);
  await Promise.all([d1.ready, d2.ready]);
  expect(await routesOf(h1!)).toEqual([`${await subnetOf(h2!)} via ${h2!.ipv4} dev ext0`]);
  expect((await ping(p1!, p2!.ipv4)).received).toBe(3);
  expect((await readSubnetFile(h1!.subnetFile)).mtu).toBe(1480);
  for (const host of [h1!, h2!]) {
    await until(async () => !(await rulesetOf(host)).includes("flannel-members"), {
      message: () => rulesetOf(host),
      deadline: 6_000,
    });
  }
  // Off the link it is the tunnel again.
  await h1!.namespace.ip(`route add ${h2!.ipv4}/32 via ${cluster.switch.ipv4} dev ext0`);
  await until(async () => (await routesOf(h1!))[0]?.endsWith("dev flannel.ipip onlink"), {
    message: async () => `the tunnel, not ${await routesOf(h1!)}`,
    deadline: 3_000,
  });
  await h1!.namespace.ip(`route delete ${h2!.ipv4}/32`);
});

vm.test(
  "a device of another kind with the name is named, and not touched; cleanup leaves nothing",
  async () => {
    await d2!.stop();
    const cleanup = await runCommand(cluster, h2!, ["cleanup"]);
    expect(cleanup).toMatchObject({ exitCode: 0 });
    expect(cleanup.stdout).toContain("device flannel.ipip");
    expect(await routesOf(h2!)).toEqual([]);
    await h2!.namespace.ip("link add flannel.ipip type dummy");
    const daemon = cluster.startDaemon(h2!);
    expect(await daemon.ended(30_000)).toMatchObject({ code: 1 });
    expect(daemon.tail()).toContain("LINK_FOREIGN");
    expect(daemon.tail()).toContain('device \\"flannel.ipip\\" is there, but of kind dummy, not ipip');
    const [device] = await h2!.namespace.json("ip", "-j", "-d", "link", "show", "flannel.ipip");
    expect(device.linkinfo.info_kind).toBe("dummy");
  },
);

async function addressesOf(host: Host, dev: string): Promise<string[]> {
  const [{ addr_info = [] } = {}] = await host.namespace.json("ip", "-j", "-4", "address", "show", dev);
  return addr_info.map(
    ({ local, prefixlen }: { local: string; prefixlen: number }) => `${local}/${prefixlen}`,
  );
}

/** Our routes, as `ip` prints them, without what the kernel adds. */
async function routesOf(host: Host): Promise<string[]> {
  const text = await host.namespace.ip("route show proto 140");
  return text
    .split("\n")
    .map((line) => line.replace(/nhid \d+ | metric \d+/g, "").trim())
    .filter(Boolean);
}

async function subnetOf(host: Host): Promise<string> {
  const { subnet = "" } = await readSubnetFile(host.subnetFile);
  return subnet.replace(/1\/24$/, "0/24");
}

const rulesetOf = (host: Host) => host.namespace.exec("nft", "list", "ruleset");

/** Echo requests that a pod got. */
async function echoesOf(pod: Pod): Promise<number> {
  const text = await pod.namespace.exec("nstat", "-asz", "IcmpInEchos");
  return Number(/IcmpInEchos\s+(\d+)/.exec(text)?.[1]);
}

/** Packets of protocol 4 that the filter dropped. */
async function droppedBy(host: Host): Promise<number> {
  const text = await host.namespace.exec("nft", "list", "table", "ip", "flannel-members");
  return Number(/ipencap .* counter packets (\d+)/.exec(text)?.[1]);
}

async function membersOf(host: Host): Promise<string> {
  const { stdout } = await host.namespace.run(["nft", "list", "set", "ip", "flannel-members", "members"]);
  return stdout;
}

async function tableHandle(host: Host): Promise<number> {
  const { nftables } = await host.namespace.json("nft", "-j", "list", "tables");
  return nftables.find(({ table }) => table?.name === "flannel-members")!.table!.handle;
}
