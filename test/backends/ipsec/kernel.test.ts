import { expect, test } from "bun:test";
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

test("a peer whose subnet is none is named, the others are programmed", async () => {
  await using machine = await openMachine();
  const kernel = new TunnelKernel(machine.node.kernel, "10.5.0.0/16");
  const bad = { ...farEnd(2), address: "not an address" };
  const refused = await kernel.program(OWN, "eth0", [bad, farEnd(3)], true);
  expect([...refused.keys()]).toEqual(["10.5.2.0/24"]);
  expect(refused.get("10.5.2.0/24")).toContain("10.5.2.0/24");
  expect((await machine.show()).filter((line) => line.includes("reqid 11")).length).toBe(3);
});
