import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { until } from "../../../lab/until.ts";
import { GOLDEN, INTENT, type Machine, openMachine, ours } from "../machine.ts";
import { NO_LEGACY, ONLY_4, ONLY_LEGACY, start } from "./daemon.ts";

setDefaultTimeout(60_000);

/** Awaits that nothing is left to find out: `looks` more looks at the generation pass without a command. */
async function isQuiet({ commands, looks }: Machine, passes: number): Promise<boolean> {
  const [count, first] = [commands.length, looks()];
  await until(() => looks() >= first + passes || commands.length > count, { message: "looks" });
  return commands.length === count;
}

describe("idle", () => {
  test.each([
    ["nftables", "nftables", /^$/],
    ["iptables-nft", "iptables", NO_LEGACY],
  ] as const)("no process is started with %s, and a flush is healed", async (_, kind, missing) => {
    await using machine = await openMachine("idle", missing);
    await using daemon = start(machine.host);
    await daemon.manager.apply({ ...INTENT, kind });
    // Tables come in the order in which they were made; of those of iptables `nft` does not show everything.
    const list = async () => {
      if (kind === "nftables") {
        const tables = await machine.ns.exec("nft", "list", "ruleset");
        return tables
          .split(/^(?=table)/m)
          .toSorted()
          .join("");
      }
      const saves = [await machine.ns.exec("iptables-nft-save"), await machine.ns.exec("ip6tables-nft-save")];
      return saves.flatMap(ours).join("\n");
    };
    const written = await list();
    daemon.run();
    // One look at the rules themselves after the write, then none any more.
    await until(() => isQuiet(machine, 8), { message: () => machine.commands.join("\n") });
    for (const flush of [
      "flush ruleset",
      kind === "nftables" ? "delete table ip6 flannel-ipv6" : "delete table ip nat",
    ]) {
      const flushed = performance.now();
      await machine.ns.exec("nft", flush);
      await until(async () => (await list()) === written, { message: "healed" });
      expect(performance.now() - flushed).toBeLessThan(5_000);
    }
    await until(() => isQuiet(machine, 8), { message: () => machine.commands.join("\n") });
    expect(daemon.codes()).toEqual([]);
    // The changes of others are looked into, and nothing is written.
    await machine.ns.exec("nft", "add", "table", "ip", "other");
    const before = machine.commands.length;
    await until(() => machine.commands.length > before, { message: "looked" });
    await until(() => isQuiet(machine, 8), { message: "quiet" });
    expect(machine.commands.slice(before).filter((command) => /restore|-f -/.test(command))).toEqual([]);
  });

  test("iptables-legacy costs one process per family and look, and nothing is written", async () => {
    await using machine = await openMachine("idlel", ONLY_LEGACY);
    await using daemon = start(machine.host);
    await daemon.manager.apply(ONLY_4);
    daemon.run();
    const before = machine.commands.length;
    await until(() => machine.commands.length >= before + 3, { message: "looks" });
    expect(new Set(machine.commands.slice(before))).toEqual(new Set(["iptables-legacy-save"]));
    await machine.ns.exec("iptables-legacy", "-t", "nat", "-F");
    await until(async () => ours(await machine.ns.exec("iptables-legacy-save")).join() === GOLDEN[4].join(), {
      message: "healed",
    });
  });
});
