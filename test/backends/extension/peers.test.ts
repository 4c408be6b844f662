import { describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { run } from "../../../core/host/exec.ts";
import { until } from "../../lab/until.ts";
import { Machine, OWN, peer } from "./machine.ts";

describe("peers", () => {
  test("are added once, changed by removing what was, and removed as they were added", async () => {
    using machine = new Machine();
    const { sync } = await machine.start();
    machine.lines();
    await sync(peer(2), peer(3));
    expect(machine.lines()).toEqual([
      "add 10.5.2.0/24 192.0.2.2 [data 2]",
      "add 10.5.3.0/24 192.0.2.3 [data 3]",
    ]);
    await sync(peer(2), peer(3));
    expect(machine.lines()).toEqual([]);
    await sync(peer(2, { publicIP: "192.0.2.77", data: "new" }), peer(3));
    expect(machine.lines()).toEqual([
      "remove 10.5.2.0/24 192.0.2.2 [data 2]",
      "add 10.5.2.0/24 192.0.2.77 [new]",
    ]);
    await sync(peer(3));
    expect(machine.lines()).toEqual(["remove 10.5.2.0/24 192.0.2.77 [new]"]);
    await sync();
    expect(machine.lines()).toEqual(["remove 10.5.3.0/24 192.0.2.3 [data 3]"]);
  });

  test("have IPv6 variables", async () => {
    using machine = new Machine();
    const both = { ipv4: true, ipv6: true };
    const SubnetAddCommand =
      'echo "$SUBNET $IPV6SUBNET $PUBLIC_IP $PUBLIC_IPV6 $INTERFACE [$(cat)]" >>"$OUT"';
    const { sync } = await machine.start({ SubnetAddCommand }, both, OWN);
    const ipv6 = { subnet: "fd00:5:2::/64", publicIP: "2001:db8::2", data: "six" };
    await sync({ ...peer(2), ipv6 }, { key: "fd00:5:3::-64", backendType: "extension", ipv6 });
    expect(machine.lines()).toEqual([
      "10.5.2.0/24 fd00:5:2::/64 192.0.2.2 2001:db8::2 ext0 [data 2]",
      "0.0.0.0/0 fd00:5:2::/64 0.0.0.0 2001:db8::2 ext0 [six]",
    ]);
  });

  test("that fail are named with the command's words, tried again, and keep nobody else out", async () => {
    using machine = new Machine();
    const { sync } = await machine.start();
    machine.lines();
    writeFileSync(`${machine.out}.refuse`, "");
    const { failed } = await sync(peer(66), peer(3));
    expect(failed).toEqual([{ key: "10.5.66.0-24", reason: "SubnetAddCommand ended with 1" }]);
    expect(machine.lines().length).toBe(2);
    await sync(peer(66), peer(3));
    expect(machine.lines()).toEqual(["add 10.5.66.0/24 192.0.2.66 [data 66]"]);
    // Half of it may have worked, so it is removed too; and that is tried again as well.
    expect((await sync(peer(3))).failed).toEqual([
      { key: "10.5.66.0-24", reason: "SubnetRemoveCommand ended with 1" },
    ]);
    await run("rm", [`${machine.out}.refuse`]);
    expect((await sync(peer(3))).failed).toEqual([]);
    expect(machine.lines()).toEqual([
      "remove 10.5.66.0/24 192.0.2.66 [data 66]",
      "remove 10.5.66.0/24 192.0.2.66 [data 66]",
    ]);
    await sync(peer(3));
    expect(machine.lines()).toEqual([]);
  });

  test("of another backend, or with data that is no text, get no command and are named", async () => {
    using machine = new Machine();
    const { sync } = await machine.start();
    machine.lines();
    const { ipv4: _, ...bare } = peer(5);
    const without = { ...bare, ipv4: { subnet: "10.5.5.0/24", publicIP: "192.0.2.5" } };
    expect(await sync(peer(2, { backendType: "vxlan" }), peer(3, { data: { a: 1 } }), without)).toMatchObject(
      {
        failed: [],
        unusable: [
          { key: "10.5.2.0-24", reason: 'uses backend "vxlan", this node uses "extension"' },
          { key: "10.5.3.0-24", reason: "has data that is no text" },
        ],
      },
    );
    expect(machine.lines()).toEqual(["add 10.5.5.0/24 192.0.2.5 []"]);
  });

  test("a command that hangs is ended with its children, and said to be too slow", async () => {
    using machine = new Machine();
    const SubnetAddCommand = '(sleep 300 & echo $! >>"$OUT"; wait); echo never';
    const { sync } = await machine.start({ SubnetAddCommand, Timeout: 1 });
    const { failed } = await sync(peer(2));
    expect(failed).toEqual([
      { key: "10.5.2.0-24", reason: "SubnetAddCommand took longer than 1 s and was ended" },
    ]);
    const [child] = machine.lines().map(Number);
    await until(() => !existsSync(`/proc/${child}`), { message: `child ${child} is gone` });
  }, 20_000);

  test("what commands print is in the log, under the peer's name", async () => {
    using machine = new Machine();
    const { sync } = await machine.start({ SubnetAddCommand: "echo one; echo two >&2" });
    await sync(peer(2));
    expect(machine.log.lines).toEqual([
      { level: "info", message: "SubnetAddCommand: one\ntwo", fields: { peer: "10.5.2.0-24" } },
    ]);
  });
});
