import { expect, setDefaultTimeout, test } from "bun:test";
import { Health } from "../../../../core/observe/health.ts";
import { MemberKeeper, type MemberKeeperOptions } from "../../../../core/traffic/members/keeper.ts";
import { until } from "../../../lab/until.ts";
import { RecordingLog } from "../../observe/recording-log.ts";
import { type Machine, openMachine } from "../machine.ts";

setDefaultTimeout(60_000);

const set = (...members: string[]) => new Set(members);

/** A keeper that runs on a machine of its own until the end of the scope. */
async function keep(
  hint: string,
  { missing, ...change }: { missing?: RegExp } & Partial<MemberKeeperOptions> = {},
) {
  const machine = await openMachine(hint, missing);
  const log = new RecordingLog();
  const health = new Health(log);
  const keeper = new MemberKeeper({ host: machine.host, health, log, resync: 1_000, ...change });
  const end = new AbortController();
  const running = keeper.run(end.signal);
  return {
    ...{ machine, log, health, keeper },
    async [Symbol.asyncDispose]() {
      end.abort();
      await running;
      await machine[Symbol.asyncDispose]();
    },
  };
}

/** The whole rule set, without counters. */
const dump = ({ ns }: Machine) => ns.exec("nft", "-s", "list", "ruleset");
const contains = (machine: Machine, ...texts: string[]) =>
  until(
    async () => {
      const ruleset = await dump(machine);
      return texts.every((text) => ruleset.includes(text));
    },
    { message: async () => `${texts.join(", ")} in:\n${await dump(machine)}` },
  );
const isEmpty = (machine: Machine) =>
  until(async () => (await dump(machine)).trim() === "", { message: () => dump(machine) });
const writes = ({ commands }: Machine) => commands.filter((command) => command === "nft -f -").length;

test("nothing is filtered before the members are known; then they are let in and out, one command each", async () => {
  await using kept = await keep("members");
  const { machine, keeper, health } = kept;
  keeper.want([{ udpPort: 8472 }, { protocol: "ipip" }]);
  keeper.follow({ 4: set("192.0.2.2", "192.0.2.3"), 6: set("fd00::2") });
  await contains(machine, "192.0.2.2, 192.0.2.3", "fd00::2", "meta l4proto ipencap", "ip6 saddr != @members");
  expect(machine.commands.map((command) => command.replace(/ table .*/, ""))).toEqual([
    "nft -j list",
    "nft -f -",
    "nft -j list",
    "nft -f -",
  ]);
  keeper.follow({ 4: set("192.0.2.3", "192.0.2.4"), 6: set("fd00::2") });
  await contains(machine, "192.0.2.4");
  expect(await dump(machine)).not.toContain("192.0.2.2");
  expect(machine.commands.slice(4)).toEqual(["nft -f -"]);
  keeper.want([]);
  await isEmpty(machine);
  expect(health.list()).toEqual([]);
});

test("a family that is off is not filtered", async () => {
  await using kept = await keep("family");
  kept.keeper.want([{ udpPort: 8472 }]);
  await kept.keeper.follow({ 4: set("192.0.2.2") });
  expect(await dump(kept.machine)).toContain("table ip flannel-members");
  expect(await dump(kept.machine)).not.toContain("table ip6");
});

test("what others do to it is undone, and quiet costs no command", async () => {
  await using kept = await keep("repair");
  const { machine, keeper } = kept;
  const { ns } = machine;
  keeper.want([{ protocol: "ipip" }]);
  keeper.follow({ 4: set("192.0.2.2") });
  await contains(machine, "192.0.2.2");
  for (const command of [
    "flush ruleset",
    "add element ip flannel-members members { 203.0.113.9 }",
    "flush set ip flannel-members members",
    "insert rule ip flannel-members input accept",
  ]) {
    await ns.exec("nft", command);
    await until(
      async () => {
        const ruleset = await dump(machine);
        return (
          /members \{[^}]*elements = \{ 192.0.2.2 \}/.test(ruleset) && !/\d accept|^\t\taccept/m.test(ruleset)
        );
      },
      { message: async () => `after ${command}:\n${await dump(machine)}` },
    );
  }
  const looks = machine.looks();
  const commands = machine.commands.length;
  await until(() => machine.looks() > looks + 2, { message: "two more looks" });
  expect(machine.commands.length).toBe(commands);
});

test("a set that others change while it is written is read and set right in the same pass", async () => {
  await using machine = await openMachine("race");
  let meddle = false;
  const host = {
    ...machine.host,
    run: (async (file, args, options) => {
      if (meddle && args[0] === "-f") await machine.ns.exec("nft", "flush", "ruleset");
      meddle = false;
      return machine.host.run(file, args, options);
    }) as typeof machine.host.run,
  };
  await using kept = await keep("race2", { host, resync: 600_000 });
  const { keeper, health, log } = kept;
  keeper.want([{ protocol: "ipip" }]);
  await keeper.follow({ 4: set("192.0.2.2") });
  meddle = true;
  await keeper.follow({ 4: set("192.0.2.3") });
  expect(await dump(machine)).toContain("elements = { 192.0.2.3 }");
  expect(health.list()).toEqual([]);
  expect(log.messages("error")).toEqual([]);
});

test("a filter of the last run stays until the members are known, and is adopted", async () => {
  await using first = await keep("adopt");
  const { machine, health, log } = first;
  first.keeper.want([{ udpPort: 8472 }]);
  await first.keeper.follow({ 4: set("192.0.2.2") });
  const before = writes(machine);
  const end = new AbortController();
  const again = new MemberKeeper({ host: machine.host, health, log, resync: 1_000 });
  let turns = 0;
  const running = again.run(end.signal, () => turns++);
  again.want([{ udpPort: 8472 }]);
  await until(() => turns > 2, { message: "it had the time to look" });
  expect(await dump(machine)).toContain("192.0.2.2");
  await again.follow({ 4: set("192.0.2.2") });
  expect(await dump(machine)).toContain("192.0.2.2");
  expect(writes(machine)).toBe(before);
  end.abort();
  await running;
});

test("an earlier config's filter is removed, and cleanup tells and removes what is there", async () => {
  await using kept = await keep("off");
  const { machine, keeper } = kept;
  keeper.want([{ udpPort: 8472 }]);
  keeper.follow({ 4: set("192.0.2.2"), 6: set() });
  await contains(machine, "table ip6 flannel-members");
  const what = ["removed nftables table ip flannel-members", "removed nftables table ip6 flannel-members"];
  expect(await keeper.cleanup({ dryRun: true })).toEqual(what);
  expect(await keeper.cleanup({ dryRun: false })).toEqual(what);
  expect(await keeper.cleanup({ dryRun: false })).toEqual([]);
  expect(await dump(machine)).toBe("");
});

test("without nft a wanted filter is a finding, and an unwanted one is none", async () => {
  await using kept = await keep("none", { missing: /^nft$/ });
  kept.keeper.want([]);
  kept.keeper.follow({ 4: set() });
  expect(await kept.keeper.cleanup({ dryRun: true })).toEqual([]);
  expect(kept.health.list()).toEqual([]);
  kept.keeper.want([{ protocol: "ipip" }]);
  kept.keeper.follow({ 4: set() });
  await until(() => kept.health.has("MEMBERS_NO_TOOL"), { message: "the finding" });
  expect(kept.machine.commands).toEqual([]);
  expect(await kept.keeper.cleanup({ dryRun: false })).toEqual([]);
});

test("a refusal is a finding until it is over; somebody who undoes it each time is another", async () => {
  let refuse = true;
  const machine = await openMachine("refused");
  await using _ = machine;
  const host = {
    ...machine.host,
    run: ((file, args, options) =>
      machine.host.run(file, refuse ? ["--no-such-flag"] : args, options)) as typeof machine.host.run,
  };
  await using kept = await keep("refused2", { host });
  kept.keeper.want([{ protocol: "ipip" }]);
  kept.keeper.follow({ 4: set("192.0.2.2") });
  await until(() => kept.health.has("MEMBERS_FAILED"), { message: "the finding" });
  refuse = false;
  await until(() => !kept.health.has("MEMBERS_FAILED"), { message: "it is over" });
  await contains(machine, "192.0.2.2");
  await until(
    async () => {
      await machine.ns.exec("nft", "flush", "ruleset");
      return kept.health.has("MEMBERS_CONTESTED");
    },
    { message: "the contest is told", deadline: 20_000, interval: 200 },
  );
  expect(
    kept.log.lines.filter(({ message }) => message.startsWith("member filter: created")).length,
  ).toBeLessThan(6);
});
