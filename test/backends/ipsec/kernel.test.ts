import { expect, test } from "bun:test";
import type { HostKernel, XfrmChange, XfrmState } from "flannel/sdk";
import { TunnelKernel } from "../../../backends/ipsec/kernel.ts";
import type { FarEnd, OwnEnd } from "../../../backends/ipsec/tunnel.ts";
import { Node } from "../../core/dataplane/node.ts";
import { inNamespace } from "../../lab/in-namespace.ts";

const OWN: OwnEnd = { address: "192.0.2.1", identity: "192.0.2.1", subnet: "10.5.1.0/24" };
const farEnd = (n: number): FarEnd => ({
  key: `10.5.${n}.0-24`,
  address: `192.0.2.${n}`,
  subnet: `10.5.${n}.0/24`,
});

async function openMachine() {
  await using stack = new AsyncDisposableStack();
  const node = stack.use(await Node.create("ipsec"));
  // The socket belongs to the namespace that the first call is made in.
  await inNamespace(node.ns, () => node.kernel.xfrmPolicies());
  const done = stack.move();
  const show = async () => {
    const commands = ["ip xfrm policy list", "ip -4 route show", "ip -4 -o address show dev lo"];
    const texts = await Promise.all(commands.map((command) => node.ns.exec(...command.split(" "))));
    // The order of policies is that of their making.
    return texts
      .flatMap((text) => text.split(/\n(?=\S)/))
      .map((text) => text.trim())
      .sort();
  };
  return { node, show, [Symbol.asyncDispose]: () => done.disposeAsync() };
}

test("policies, routes and address follow the peers; doing it twice changes nothing; others' stay", async () => {
  await using machine = await openMachine();
  const { node, show } = machine;
  await node.ns.exec(
    ..."ip xfrm policy add src 10.9.1.0/24 dst 10.9.2.0/24 dir out tmpl src 192.0.2.1 dst 192.0.2.9 proto esp reqid 11 mode tunnel".split(
      " ",
    ),
  );
  await node.ns.exec(..."ip route add 10.77.0.0/16 via 192.0.2.9".split(" "));
  const bare = await show();
  const kernel = new TunnelKernel(node.kernel, "10.5.0.0/16");
  expect(await kernel.program(OWN, "eth0", [farEnd(2), farEnd(3)], true)).toEqual(new Map());
  const both = await show();
  expect(both.filter((line) => line.includes("reqid 11")).length).toBe(7);
  expect(both).toContain("10.5.2.0/24 dev eth0 proto 140 scope link src 10.5.1.0");
  expect(both).toContain("blackhole 10.5.0.0/16 proto 140");
  const notices = await node.noticesDuring(async () => {
    await kernel.program(OWN, "eth0", [farEnd(2), farEnd(3)], true);
  });
  expect(notices).toEqual([]);
  expect(await show()).toEqual(both);

  // Another subnet, and one peer less: nothing of the old ones is left.
  const moved = { ...OWN, subnet: "10.5.99.0/24" };
  await kernel.program(moved, "eth0", [farEnd(2)], true);
  const after = (await show()).join("\n");
  expect(after).not.toMatch(/10\.5\.1\.0|10\.5\.3\.0/);
  expect(after).toContain("10.5.2.0/24 dev eth0 proto 140 scope link src 10.5.99.0");

  // Where charon moves the packets the kernel must have none of the policies.
  await kernel.program(moved, "eth0", [farEnd(2)], false);
  expect((await show()).filter((line) => line.includes("reqid 11")).length).toBe(1);

  await kernel.program(moved, "eth0", [farEnd(2)], true);
  const announced = await kernel.clean(true);
  expect(announced.length).toBe(3 + 2 + 1);
  expect(await kernel.clean(false)).toEqual(announced);
  expect(await show()).toEqual(bare);
  expect(await kernel.clean(false)).toEqual([]);
});

test("what lies outside of the network goes with its lease, and that of a former network with its end", async () => {
  await using machine = await openMachine();
  const { node, show } = machine;
  const bare = await show();
  const kernel = new TunnelKernel(node.kernel, "10.5.0.0/16");
  const outside = { ...farEnd(2), subnet: "10.99.5.0/24" };
  await kernel.program(OWN, "eth0", [outside, farEnd(3)], true);
  expect((await show()).join("\n")).toContain("10.99.5.0/24 dev eth0");
  await kernel.program(OWN, "eth0", [farEnd(3)], true);
  expect((await show()).join("\n")).not.toContain("10.99.5.0");

  await kernel.program(OWN, "eth0", [outside, farEnd(3)], true);
  const next = new TunnelKernel(node.kernel, "10.6.0.0/16", "10.5.0.0/16");
  const moved = { ...OWN, subnet: "10.6.1.0/24" };
  await next.program(moved, "eth0", [{ ...farEnd(3), subnet: "10.6.3.0/24" }], true);
  const after = (await show()).join("\n");
  expect(after).not.toMatch(/10\.5\.|10\.99\./);
  expect(after).toContain("10.6.3.0/24 dev eth0 proto 140 scope link src 10.6.1.0");
  await next.clean(false);
  expect(await show()).toEqual(bare);
});

test("a peer whose subnet is none is named, the others are programmed", async () => {
  await using machine = await openMachine();
  const kernel = new TunnelKernel(machine.node.kernel, "10.5.0.0/16");
  const bad = { ...farEnd(2), address: "not an address" };
  const refused = await kernel.program(OWN, "eth0", [bad, farEnd(3)], true);
  expect([...refused.keys()]).toEqual(["10.5.2.0/24"]);
  expect(refused.get("10.5.2.0/24")).toContain("10.5.2.0/24");
  expect((await machine.show()).filter((line) => line.includes("reqid 11")).length).toBe(3);
});

test("a state that another one took the place of lingers, one of a peer that is gone goes at once", async () => {
  const state = (spi: number, far: number): XfrmState => ({
    ...{ src: `192.0.2.${far}`, dst: OWN.address, spi, protocol: 50, reqid: 11, mode: "tunnel" },
  });
  let states = [state(1, 2), state(2, 3), state(3, 4)];
  const host = {
    xfrmStates: async () => states,
    applyXfrm: async (changes: readonly XfrmChange[]) => {
      const gone = changes.flatMap((change) => ("state" in change ? [change.state.spi] : []));
      states = states.filter(({ spi }) => !gone.includes(spi));
      return [];
    },
  } as unknown as HostKernel;
  const kernel = new TunnelKernel(host, "10.5.0.0/16");
  await kernel.inherit();
  const look = async (now: number, spis: readonly number[], isUp: boolean) => {
    states.push(...spis.map((spi) => state(spi, 2)).filter(({ spi }) => !states.some((s) => s.spi === spi)));
    const peers = new Map([
      ["192.0.2.2", isUp],
      ["192.0.2.3", false],
    ]);
    await kernel.removeStale({ own: OWN.address, spis: new Set(spis), peers }, now);
    return states.map(({ spi }) => spi);
  };
  expect(await look(0, [], false)).toEqual([1, 2]);
  expect(await look(10_000, [9], true)).toEqual([1, 2, 9]);
  expect(await look(12_000, [9], true)).toEqual([1, 2, 9]);
  // charon answers for it after all, then not any more.
  expect(await look(13_000, [9, 1], true)).toEqual([1, 2, 9]);
  expect(await look(15_000, [9], true)).toEqual([1, 2, 9]);
  expect(await look(20_000, [9], true)).toEqual([2, 9]);
});
