import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { GOLDEN, INTENT, type Machine, openMachine, ours } from "../machine.ts";
import { NFT, ONLY_4, ONLY_LEGACY, openOnSame, start } from "./daemon.ts";

setDefaultTimeout(60_000);

describe("switching", () => {
  const everything = async ({ ns }: Machine) => {
    const texts = [await ns.exec("nft", "list", "ruleset")];
    for (const save of ["iptables-legacy-save", "ip6tables-legacy-save"]) texts.push(await ns.exec(save));
    return texts.join("").replace(/^#.*$/gm, "");
  };
  const OURS = /FLANNEL-|flannel-ipv/;

  test("moves the rules, and leaves none behind", async () => {
    await using machine = await openMachine("sw");
    await using daemon = start(machine.host);
    // As an earlier run with iptables-legacy left it, jumps and all.
    await using legacy = await openOnSame(machine, ONLY_LEGACY);
    await legacy.manager.apply(INTENT);
    expect(ours(await machine.ns.exec("iptables-legacy-save"))).toEqual([...GOLDEN[4]]);

    await daemon.manager.apply(NFT);
    expect(ours(await everything(machine))).toEqual([]);
    expect(await machine.ns.exec("nft", "list", "tables")).toContain("table ip6 flannel-ipv6");
    await daemon.manager.apply(INTENT);
    expect(await machine.ns.exec("nft", "list", "tables")).not.toContain("flannel-ipv");
    expect(ours(await machine.ns.exec("iptables-nft-save"))).toEqual([...GOLDEN[4]]);
    expect(ours(await machine.ns.exec("ip6tables-nft-save"))).toEqual([...GOLDEN[6]]);

    await daemon.manager.apply({ ...NFT, masquerade: false, forward: false });
    expect(await everything(machine)).not.toMatch(OURS);
  });

  test("follows the variant that kube-proxy uses, also when that comes later", async () => {
    await using machine = await openMachine("kube");
    await using daemon = start(machine.host);
    await daemon.manager.apply(ONLY_4);
    expect(ours(await machine.ns.exec("iptables-nft-save"))).toEqual([...GOLDEN[4]]);
    await machine.ns.exec("iptables-legacy", "-t", "nat", "-N", "KUBE-SERVICES");
    await daemon.manager.apply(ONLY_4);
    expect(ours(await machine.ns.exec("iptables-nft-save"))).toEqual([]);
    expect(ours(await machine.ns.exec("iptables-legacy-save"))).toEqual([...GOLDEN[4]]);
    expect(daemon.lines).toContain("IPv4 traffic rules go to iptables-legacy");
  });

  test("a family that is off costs no command, unless it was on before", async () => {
    await using machine = await openMachine("off");
    await using first = start(machine.host);
    await first.manager.apply(INTENT);
    await using second = start(machine.host);
    machine.commands.length = 0;
    await second.manager.apply(ONLY_4);
    expect(machine.commands.filter((command) => command.startsWith("ip6"))).toEqual([]);
    await using third = start(machine.host, { previous: { ipv4: true, ipv6: true } });
    await third.manager.apply(ONLY_4);
    expect(ours(await machine.ns.exec("ip6tables-nft-save"))).toEqual([]);
    expect(ours(await machine.ns.exec("iptables-nft-save"))).toEqual([...GOLDEN[4]]);
  });

  test("cleanup removes all of ours everywhere, and nothing else, twice without error", async () => {
    await using machine = await openMachine("clean");
    await machine.ns.exec("iptables-legacy", "-A", "FORWARD", "-i", "nosuch", "-j", "DROP");
    await using legacy = await openOnSame(machine, ONLY_LEGACY);
    await legacy.manager.apply(INTENT);
    await using nft = await openOnSame(machine, /iptables|ip6tables/);
    await nft.manager.apply(NFT);
    await using daemon = start(machine.host);
    daemon.run();
    const before = await everything(machine);
    const planned = await daemon.manager.cleanup({ dryRun: true });
    expect(await everything(machine)).toBe(before);
    expect(planned).toContain("removed nftables table ip flannel-ipv4");
    expect(planned).toContain("removed chain FLANNEL-FWD in table filter (ip6tables-legacy)");
    expect(await daemon.manager.cleanup({ dryRun: false })).toEqual(planned);
    expect(await everything(machine)).not.toMatch(OURS);
    expect(await everything(machine)).toContain("-A FORWARD -i nosuch -j DROP");
    expect(await daemon.manager.cleanup({ dryRun: false })).toEqual([]);
  });
});

test("a restart changes nothing", async () => {
  await using machine = await openMachine("again");
  for (const intent of [INTENT, NFT]) {
    await using first = start(machine.host);
    await first.manager.apply(intent);
    machine.commands.length = 0;
    await using second = start(machine.host);
    await second.manager.apply({ ...intent });
    expect(machine.commands.filter((command) => /restore|-f -/.test(command))).toEqual([]);
  }
});
