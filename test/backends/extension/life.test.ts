import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { run } from "../../../core/host/exec.ts";
import { until } from "../../lab/until.ts";
import { FACTS } from "../facts.ts";
import { Machine, peer, RECORDING, refusalOf } from "./machine.ts";

describe("the start", () => {
  test("publishes what PreStartupCommand prints, and gives PostStartupCommand this node's variables", async () => {
    using machine = new Machine();
    const { published, mtu } = await machine.start();
    expect(published).toEqual({ backendType: "extension", ipv4: "the data" });
    expect(mtu).toBe(FACTS.external.mtu);
    expect(machine.lines()).toEqual([
      "pre on ext0 []",
      "post 10.5.0.0/16 ::/0 10.5.1.0/24 ::/0 192.0.2.1 <nil> []",
    ]);
    // Standard error is talk, not data.
    expect(machine.log.messages()).toEqual(["PreStartupCommand: careful"]);
  });

  test("knows IPv6, in the data and in the variables", async () => {
    using machine = new Machine();
    const only6 = { ipv4: false, ipv6: true };
    const { published } = await machine.start(RECORDING, only6, { subnets: { ipv6: "fd00:5:1::/64" } });
    expect(published).toEqual({ backendType: "extension", ipv6: "the data" });
    expect(machine.lines().at(-1)).toBe(
      "post 0.0.0.0/0 fd00:5::/48 0.0.0.0/0 fd00:5:1::/64 0.0.0.0 fd00:db8::1 []",
    );
  });

  test("without commands publishes the type alone", async () => {
    using machine = new Machine();
    const { published, mtu, sync } = await machine.start({ MTU: 1400 });
    expect([published, mtu]).toEqual([{ backendType: "extension" }, 1400]);
    expect(await sync(peer(2))).toMatchObject({ failed: [], unusable: [] });
  });

  test("tells the MTU of the interface as it is at each sync, unless one is set", async () => {
    using machine = new Machine();
    const { backend } = await machine.start({});
    const facts = { ...FACTS, external: { ...FACTS.external, mtu: 1400 } };
    const nothing = { added: [], changed: [], removed: [] };
    expect((await backend.sync([], nothing, facts)).mtu).toBe(1400);
    const fixed = await machine.start({ MTU: 1300 });
    expect((await fixed.backend.sync([], nothing, facts)).mtu).toBe(1300);
  });

  test("does not wait for what a command leaves running, with its outputs open", async () => {
    using machine = new Machine();
    const PostStartupCommand = 'sleep 300 & echo $! >>"$OUT"; echo started';
    await machine.start({ PostStartupCommand, Timeout: 120 });
    expect(machine.log.messages()).toEqual(["PostStartupCommand: started"]);
    const [pid] = machine.lines();
    expect(existsSync(`/proc/${pid}`)).toBe(true);
    process.kill(Number(pid));
  });

  test.each(["PreStartupCommand", "PostStartupCommand"])("fails when %s fails", async (name) => {
    using machine = new Machine();
    const refusal = await refusalOf(machine.start({ [name]: "echo early; echo no such thing >&2; exit 4" }));
    expect(refusal).toMatchObject({
      code: "EXTENSION_COMMAND",
      message: `${name} ended with 4: no such thing`,
      hint: expect.stringContaining(name),
    });
    expect(machine.log.messages("warn")).toEqual([`${name} failed: early\nno such thing`]);
  });

  test("is given up at once when the daemon is stopped meanwhile", async () => {
    using machine = new Machine();
    const { backend, host, stop } = machine.daemon({ PreStartupCommand: 'sleep 0.5; echo on >>"$OUT"' });
    const begun = performance.now();
    const refused = refusalOf(backend.prepare(host, FACTS));
    stop.abort();
    expect((await refused).message).toContain("the daemon stops");
    expect(performance.now() - begun).toBeLessThan(400);
    await until(() => machine.lines().includes("on"), { message: "the command went on to its own end" });
  });
});

describe("over a restart", () => {
  test("all are added again, who vanished is removed, who changed is replaced", async () => {
    using machine = new Machine();
    const before = await machine.start();
    await before.sync(peer(2), peer(3), peer(4));
    await before.backend.stop();
    const { sync } = await machine.start();
    machine.lines();
    await sync(peer(2), peer(3, { data: "new key" }));
    expect(machine.lines()).toEqual([
      "remove 10.5.4.0/24 192.0.2.4 [data 4]",
      "add 10.5.2.0/24 192.0.2.2 [data 2]",
      "remove 10.5.3.0/24 192.0.2.3 [data 3]",
      "add 10.5.3.0/24 192.0.2.3 [new key]",
    ]);
  });

  test("a file that cannot be read is said, and is no hindrance", async () => {
    using machine = new Machine();
    writeFileSync(machine.state, '{"peers": 7}');
    const { sync } = await machine.start();
    expect(machine.log.messages("warn")[0]).toContain(`${machine.state} is not what flanneld wrote`);
    expect(await sync(peer(2))).toMatchObject({ failed: [], unusable: [] });
    expect(JSON.parse(readFileSync(machine.state, "utf8"))).toHaveProperty("peers");
  });

  test("after ShutdownCommand nothing is remembered; when it fails everything still is", async () => {
    using machine = new Machine();
    const ShutdownCommand = 'echo "down $SUBNET" >>"$OUT"; test ! -e "$OUT.refuse"';
    const before = await machine.start({ ...RECORDING, ShutdownCommand });
    expect(before.backend.stopPatience).toBeGreaterThan(30_000);
    await before.sync(peer(2));
    machine.lines();
    writeFileSync(`${machine.out}.refuse`, "");
    before.stop.abort();
    expect((await refusalOf(before.backend.stop())).message).toBe("ShutdownCommand ended with 1");
    expect(existsSync(machine.state)).toBe(true);
    await run("rm", [`${machine.out}.refuse`]);
    await before.backend.stop();
    expect(machine.lines()).toEqual(["down 10.5.1.0/24", "down 10.5.1.0/24"]);
    const { sync } = await machine.start();
    machine.lines();
    await sync();
    expect(machine.lines()).toEqual([]);
  });
});

describe("cleaning up", () => {
  test("is done by another process too: who is remembered is removed, then all is shut down", async () => {
    using machine = new Machine();
    const options = { ...RECORDING, ShutdownCommand: 'echo "down $SUBNET" >>"$OUT"' };
    await (await machine.start(options)).sync(peer(2));
    machine.lines();
    const { backend, host } = machine.daemon(options);
    const plan = ["peer 10.5.2.0-24: SubnetRemoveCommand", "what ShutdownCommand removes"];
    expect(await backend.cleanup({ dryRun: true, host })).toEqual(plan);
    expect(machine.lines()).toEqual([]);
    expect(await backend.cleanup({ dryRun: false, host })).toEqual(plan);
    expect(machine.lines()).toEqual(["remove 10.5.2.0/24 192.0.2.2 [data 2]", "down 10.5.1.0/24"]);
    expect(existsSync(machine.state)).toBe(false);
    expect(await backend.cleanup({ dryRun: true, host })).toEqual([]);
  });

  test("says what failed, and does the rest", async () => {
    using machine = new Machine();
    const { sync, backend } = await machine.start();
    await sync(peer(66), peer(3));
    writeFileSync(`${machine.out}.refuse`, "");
    const refusal = await refusalOf(backend.cleanup({ dryRun: false }));
    expect(refusal.message).toBe("10.5.66.0-24: SubnetRemoveCommand ended with 1");
    expect(await backend.cleanup({ dryRun: true })).toEqual(["peer 10.5.66.0-24: SubnetRemoveCommand"]);
  });

  test("after a start that failed leaves what the last run made", async () => {
    using machine = new Machine();
    await (await machine.start()).sync(peer(2));
    const { backend, host } = machine.daemon({ ...RECORDING, PreStartupCommand: "exit 1" });
    await refusalOf(backend.prepare(host, FACTS));
    machine.lines();
    expect(await backend.cleanup({ dryRun: false })).toEqual([]);
    expect(machine.lines()).toEqual([]);
  });

  test("after a first start that failed undoes it", async () => {
    using machine = new Machine();
    const { backend, host } = machine.daemon({ ...RECORDING, ShutdownCommand: 'echo down >>"$OUT"' });
    await backend.prepare(host, FACTS);
    expect(await backend.cleanup({ dryRun: false })).toEqual(["what ShutdownCommand removes"]);
    expect(machine.lines().at(-1)).toBe("down");
  });
});
