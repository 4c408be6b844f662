import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { closeSync, openSync } from "node:fs";
import { Fault } from "../../../../core/observe/fault.ts";
import { until } from "../../../lab/until.ts";
import { GOLDEN, INTENT, openMachine, ours } from "../machine.ts";
import { NFT, NO_LEGACY, ONLY_4, ONLY_LEGACY, start } from "./daemon.ts";

setDefaultTimeout(60_000);

test("a table of iptables that others filled with nft is not written to", async () => {
  await using machine = await openMachine("hidden", NO_LEGACY);
  const native =
    "table ip nat { set s { type ipv4_addr; }; chain POSTROUTING { type nat hook postrouting priority 100; ip saddr @s masquerade; }; }";
  await machine.ns.exec("nft", native);
  const before = await machine.ns.exec("nft", "list", "ruleset");
  await using daemon = start(machine.host);
  await daemon.manager.apply(ONLY_4);
  expect(daemon.codes()).toEqual(["error TRAFFIC_FAILED"]);
  expect(daemon.health.list()[0]?.fix).toContain("EnableNFTables");
  expect(await machine.ns.exec("nft", "list", "ruleset")).toBe(before);
  await daemon.manager.apply({ ...ONLY_4, kind: "nftables" });
  expect(daemon.codes()).toEqual([]);
});

test("a lock held by others is waited out, with a finding", async () => {
  await using machine = await openMachine("lock", ONLY_LEGACY);
  await using daemon = start(machine.host);
  closeSync(openSync(machine.lockFile, "w"));
  const holder = Bun.spawn(["flock", machine.lockFile, "sh", "-c", "echo held; read line"], {
    stdin: "pipe",
    stdout: "pipe",
  });
  try {
    await holder.stdout.getReader().read();
    await daemon.manager.apply(ONLY_4);
    expect(daemon.codes()).toEqual(["warning TRAFFIC_LOCKED"]);
    daemon.run();
  } finally {
    holder.stdin.end();
    await holder.exited;
  }
  await until(() => daemon.codes().length === 0, { message: "healed", deadline: 20_000 });
  expect(ours(await machine.ns.exec("iptables-legacy-save"))).toEqual([...GOLDEN[4]]);
});

describe("with tools missing", () => {
  test.each([
    [INTENT, /iptables|ip6tables/, "nftables", ["warning TRAFFIC_FALLBACK", "warning TRAFFIC_FALLBACK"]],
    [NFT, /^nft$/, "iptables-nft", ["warning TRAFFIC_FALLBACK", "warning TRAFFIC_FALLBACK"]],
    [INTENT, /^nft$|ip6tables/, "iptables-nft", ["error TRAFFIC_NO_TOOL"]],
    [INTENT, /ip6tables/, "iptables-nft", ["warning TRAFFIC_FALLBACK"]],
  ] as const)("%j without %p goes to %s", async (intent, missing, name, codes) => {
    await using machine = await openMachine("miss", missing);
    await using daemon = start(machine.host);
    await daemon.manager.apply(intent);
    expect(daemon.codes()).toEqual([...codes]);
    expect(daemon.lines).toContain(`IPv4 traffic rules go to ${name}`);
    expect(daemon.lines.some((line) => line.includes(`IPv4, ${name}: created`))).toBe(true);
  });

  test("iptables is uninstalled: nftables is used as soon as the rules are looked at", async () => {
    await using machine = await openMachine("gone", NO_LEGACY);
    let installed = true;
    const isGone = (command: string) => !installed && /^ip6?tables/.test(command);
    await using daemon = start({
      ...machine.host,
      has: (command) => !isGone(command) && machine.host.has(command),
      run: (file, ...rest) => {
        if (isGone(file)) throw new Fault("EXEC_MISSING", `${file} is not installed`);
        return machine.host.run(file, ...rest);
      },
    });
    await daemon.manager.apply(ONLY_4);
    daemon.run();
    installed = false;
    await machine.ns.exec("nft", "flush", "ruleset");
    await until(() => daemon.codes().join() === "warning TRAFFIC_FALLBACK", {
      message: () => daemon.codes().join(),
    });
    expect(daemon.lines).toContain("IPv4 traffic rules go to nftables");
  });

  test("nothing is installed: an error, until it is; with nothing wanted, none", async () => {
    await using machine = await openMachine("none", NO_LEGACY);
    let installed = false;
    const host = { ...machine.host, has: (command: string) => installed && machine.host.has(command) };
    await using daemon = start(host);
    await daemon.manager.apply({ ...ONLY_4, masquerade: false, forward: false });
    expect(daemon.codes()).toEqual([]);
    await daemon.manager.apply(ONLY_4);
    expect(daemon.codes()).toEqual(["error TRAFFIC_NO_TOOL"]);
    daemon.run();
    installed = true;
    await until(async () => ours(await machine.ns.exec("iptables-nft-save")).join() === GOLDEN[4].join(), {
      message: "set",
    });
    expect(daemon.codes()).toEqual([]);
  });
});
