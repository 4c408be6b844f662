import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { inNamespace, kernelIn } from "./in-namespace.ts";
import { connect, Namespace } from "./namespace.ts";
import { until } from "./until.ts";

setDefaultTimeout(30_000);

const listed = async () =>
  (await new Response(Bun.spawn(["ip", "netns", "list"]).stdout).text()).split(/\s+/);

describe("a namespace", () => {
  test("has loopback up, IPv6 on and usable at once, and is gone at the end", async () => {
    let name = "";
    {
      await using ns = await Namespace.create("life");
      name = ns.name;
      expect(name).toStartWith(`fl${process.pid}-`);
      expect(await listed()).toContain(name);
      const [loopback] = await ns.json("ip", "-j", "address", "show", "lo");
      expect(loopback.flags).toContain("UP");
      await ns.ip("link add d0 type veth peer name d1");
      await ns.ip("link set d0 up");
      await ns.ip("link set d1 up");
      await ns.ip("address add 2001:db8::1/64 dev d0");
      expect(await ns.ip("-6 address show dev d0")).not.toContain("tentative");
    }
    expect(await listed()).not.toContain(name);
  });

  test("ends the processes started inside, children too, also those that ignore a polite request", async () => {
    const pids: number[] = [];
    {
      await using ns = await Namespace.create("procs");
      ns.spawn("sh", "-c", "trap '' TERM; sleep 1000 & wait; sleep 1000");
      await until(
        async () => {
          pids.splice(0, pids.length, ...(await ns.pids()));
          return pids.length >= 2;
        },
        { message: "the shell and its child" },
      );
    }
    // A zombie that its new parent has yet to collect has no command line.
    for (const pid of pids)
      expect(
        await Bun.file(`/proc/${pid}/cmdline`)
          .text()
          .catch(() => ""),
      ).toBe("");
  });

  test("fails with what the command said", async () => {
    await using ns = await Namespace.create("fail");
    await expect(ns.ip("link set nosuch up")).rejects.toThrow(/Cannot find device "nosuch"/);
    await expect(ns.ipBatch("link set lo down", "link set nosuch up")).rejects.toThrow(/nosuch/);
  });

  test("carries packets to another one", async () => {
    await using a = await Namespace.create("a");
    await using b = await Namespace.create("b");
    await connect([a, "eth0"], [b, "eth0"]);
    await a.ip("address add 192.0.2.1/24 dev eth0");
    await b.ip("address add 192.0.2.2/24 dev eth0");
    expect(await a.exec("ping", "-c1", "-W2", "192.0.2.2")).toContain("1 received");
  });
});

describe("this thread", () => {
  test("enters a namespace and comes back, also after a throw", async () => {
    await using ns = await Namespace.create("enter");
    await ns.ip("link add only0 type veth peer name only1");
    using inside = kernelIn(ns);
    expect((await inside.links()).map((link) => link.name)).toContain("only0");
    const home = () => Bun.spawnSync(["readlink", "/proc/self/ns/net"]).stdout.toString();
    const before = home();
    expect(inNamespace(ns, () => 7)).toBe(7);
    expect(() =>
      inNamespace(ns, () => {
        throw new Error("inside");
      }),
    ).toThrow("inside");
    expect(home()).toBe(before);
  });
});
