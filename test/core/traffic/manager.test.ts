import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { closeSync, openSync } from "node:fs";
import type { Ran } from "../../../core/host/exec.ts";
import { Fault } from "../../../core/observe/fault.ts";
import { Health } from "../../../core/observe/health.ts";
import { type Log, silentLog } from "../../../core/observe/log.ts";
import type { TrafficHost } from "../../../core/traffic/host.ts";
import type { TrafficIntent } from "../../../core/traffic/intent.ts";
import { TrafficManager } from "../../../core/traffic/manager.ts";
import { until } from "../../lab/until.ts";
import { GOLDEN, INTENT, type Machine, openMachine, ours } from "./machine.ts";

setDefaultTimeout(60_000);

const RESYNC = 1_000;
const { ipv6: _, ...ONLY_4 } = INTENT;
const NFT: TrafficIntent = { ...INTENT, kind: "nftables" };
/** No iptables-legacy, so that the variant is clear. */
const NO_LEGACY = /legacy/;
const ONLY_LEGACY = /iptables-nft|ip6tables-nft|^ip6?tables(-save|-restore)?$/;

/** A running manager; `lines` is its log. */
function start(
  host: TrafficHost,
  options: { resync?: number; previous?: { ipv4: boolean; ipv6: boolean } } = {},
) {
  const lines: string[] = [];
  const note = (message: string) => void lines.push(message);
  const log: Log = { ...silentLog, info: note, warn: note, error: note, child: () => log };
  const health = new Health(log);
  const manager = new TrafficManager({ host, health, log, resync: RESYNC, ...options });
  const stop = new AbortController();
  let running: Promise<void> | undefined;
  return {
    manager,
    health,
    lines,
    run: () => {
      running = manager.run(stop.signal);
    },
    codes: () => health.list().map(({ code, severity }) => `${severity} ${code}`),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}

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

/** A host whose `nft` is a function; everything it is fed is kept. */
function fakeHost(nft: (args: readonly string[], input: string) => string) {
  const inputs: string[] = [];
  const host: TrafficHost = {
    has: (command) => command === "nft",
    legacyTables: () => [],
    // Nobody changes anything: that a look is due must come from what was not done yet.
    generation: { read: () => 1, close() {} },
    run: async (_, args, { input = "" } = {}): Promise<Ran> => {
      if (input) inputs.push(input);
      return { stdout: nft(args, input), stderr: "" };
    },
  };
  return { host, inputs };
}

/** What core/host/exec throws for a tool that says `stderr`. */
function refuse(stderr: string): never {
  throw new Fault("EXEC_FAILED", `"nft" ended with 1: ${stderr}`, { cause: { stderr } });
}

describe("what goes wrong", () => {
  const { ipv6: _, ...NFT_4 } = NFT;

  test("rules that others change each time are a contest, set ever more slowly", async () => {
    const { host, inputs } = fakeHost(() => "{}");
    await using daemon = start(host);
    await daemon.manager.apply(NFT_4);
    daemon.run();
    await until(() => daemon.codes().length > 0, { message: "contest" });
    expect(daemon.codes()).toEqual(["warning TRAFFIC_CONTESTED"]);
    expect(inputs).toHaveLength(4);
    expect(daemon.lines.filter((line) => line.startsWith("traffic rules, IPv4"))).toHaveLength(3);
  });

  test("a host without random ports gets plain ones, without asking again", async () => {
    const { host, inputs } = fakeHost((args, input) => {
      if (args.includes("list")) return refuse("Error: No such file or directory");
      return input.includes("fully-random") ? refuse("add rule ... masquerade fully-random\n^^^") : "";
    });
    await using daemon = start(host);
    await daemon.manager.apply(NFT_4);
    await daemon.manager.apply(NFT_4);
    expect(daemon.codes()).toEqual([]);
    expect(inputs.map((input) => input.includes("fully-random"))).toEqual([true, false, false]);
  });

  test("a refusal is an error with the tool's own words, until it is over", async () => {
    let reason = "Error: Could not process rule: Operation not permitted";
    const { host } = fakeHost((args) => {
      if (args.includes("list")) return refuse("Error: No such file or directory");
      return reason ? refuse(reason) : "";
    });
    await using daemon = start(host);
    await daemon.manager.apply(NFT_4);
    expect(daemon.codes()).toEqual(["error TRAFFIC_FAILED"]);
    expect(daemon.health.list()[0]?.text).toContain(reason);
    daemon.run();
    reason = "";
    await until(() => daemon.codes().length === 0, { message: "over" });
  });

  test("a tool that hangs, or is no tool, is an error, too, and `cleanup` tells it", async () => {
    for (const error of [new Fault("EXEC_TIMEOUT", "nft hung"), new Error("odd")]) {
      const { host } = fakeHost(() => {
        throw error;
      });
      await using daemon = start(host);
      await daemon.manager.apply(NFT_4);
      expect(daemon.codes()).toEqual(["error TRAFFIC_FAILED"]);
      await expect(daemon.manager.cleanup({ dryRun: true })).rejects.toMatchObject({
        code: "TRAFFIC_CLEANUP",
        message: `nftables: ${error.message}`,
      });
    }
  });

  test("a network that is none is an error, not a crash", async () => {
    const { host, inputs } = fakeHost(() => "");
    await using daemon = start(host);
    await daemon.manager.apply({ ...NFT_4, ipv4: { network: "x", subnet: "y", masqExclude: [] } });
    expect(daemon.codes()).toEqual(["error TRAFFIC_FAILED"]);
    expect(inputs).toEqual([]);
  });
});

/** A manager on the same machine that misses other tools. */
async function openOnSame(machine: Machine, missing: RegExp) {
  return start({
    ...machine.host,
    has: (command) => !missing.test(command) && machine.host.has(command),
  });
}
