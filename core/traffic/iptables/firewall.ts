import { Fault } from "../../observe/fault.ts";
import { attempt, type Run, refusedFault } from "../command.ts";
import type { Firewall } from "../firewall.ts";
import type { Family } from "../intent.ts";
import { familyName } from "../nftables/chains.ts";
import { type FamilyRules, withoutRandomPorts } from "../rules.ts";
import { OWN_CHAINS } from "./chains.ts";
import { planRemoval, planRestore, type RestorePlan } from "./plan.ts";
import { parseSave, type SavedState } from "./save.ts";
import { commandOf, type Toolset } from "./toolset.ts";

/** Time `iptables-restore` waits for the lock that others hold, seconds; then we let go and come again. */
const LOCK_SECONDS = 5;
/** In any wording of any version. */
const LOCKED = /xtables lock/i;
const RANDOM = /random-fully/;

/** Our rules in chains of our own, through one variant of iptables. */
export class IptablesFirewall implements Firewall {
  readonly name: string;
  readonly hasGeneration: boolean;
  readonly #run: Run;
  readonly #tools: Toolset;
  readonly #legacyTables: (family: Family) => readonly string[] | undefined;
  #canChooseRandomly: boolean;

  /** `legacyTables`: the tables of iptables-legacy that exist in the kernel; undefined when it cannot be told. */
  constructor(
    run: Run,
    tools: Toolset,
    legacyTables: (family: Family) => readonly string[] | undefined = () => undefined,
  ) {
    this.name = `iptables-${tools.variant}`;
    this.hasGeneration = tools.variant === "nft";
    this.#run = run;
    this.#tools = tools;
    this.#legacyTables = legacyTables;
    this.#canChooseRandomly = tools.recent;
  }

  /** `iptables-save`; when it differs `iptables-restore --noflush --wait=5`. */
  async reconcile(rules: FamilyRules): Promise<readonly string[]> {
    const state = await this.read(rules.family);
    this.#requireVisible(state, rules);
    const wanted = this.#canChooseRandomly ? rules : withoutRandomPorts(rules);
    const plan = planRestore(state, wanted);
    const refusal = await this.#restore(plan, rules.family);
    if (refusal === undefined) return plan.actions;
    if (!this.#canChooseRandomly || !RANDOM.test(refusal))
      throw this.#refused("write", rules.family, refusal);
    const second = await this.#restore(planRestore(state, withoutRandomPorts(rules)), rules.family);
    if (second !== undefined) throw this.#refused("write", rules.family, second);
    this.#canChooseRandomly = false;
    return plan.actions;
  }

  /** `iptables-restore --noflush` with jumps deleted, then chains. */
  async remove(family: Family, dryRun: boolean): Promise<readonly string[]> {
    const plan = planRemoval(await this.read(family));
    const refusal = dryRun ? undefined : await this.#restore(plan, family);
    if (refusal !== undefined) throw this.#refused("remove", family, refusal);
    return plan.actions.map((action) => `${action} (${commandOf(this.#tools, family)})`);
  }

  /** `iptables-save` of all tables, read; no process where iptables-legacy has no table of concern. */
  async read(family: Family): Promise<SavedState> {
    const tables = this.#tools.variant === "legacy" ? this.#legacyTables(family) : undefined;
    if (tables && !tables.includes("nat") && !tables.includes("filter")) return parseSave("");
    const command = `${commandOf(this.#tools, family)}-save`;
    const { stdout, stderr, failed } = await attempt(this.#run, command, []);
    if (failed) throw refusedFault(`read the IPv${family} rules`, command, stderr);
    return parseSave(stdout);
  }

  /** Writing where nothing can be read back would add one more jump each time. */
  #requireVisible({ hidden }: SavedState, rules: FamilyRules): void {
    const chain = OWN_CHAINS.find(({ table, rules: of }) => hidden.has(table) && rules[of].length > 0);
    if (!chain) return;
    const table = `${familyName(rules.family)} ${chain.table}`;
    throw new Fault(
      "TRAFFIC_REFUSED",
      `the nftables table "${table}" holds rules that ${commandOf(this.#tools, rules.family)} cannot show: ours cannot be kept in it`,
      {
        hint: `Set "EnableNFTables" to true in the network config, or move the rules that were made with nft to a table of another name (see \`nft list table ${table}\`).`,
      },
    );
  }

  /** What the tool said when it refused. Throws Fault `TRAFFIC_LOCKED`. */
  async #restore({ payload }: RestorePlan, family: Family): Promise<string | undefined> {
    if (payload === "") return undefined;
    const command = `${commandOf(this.#tools, family)}-restore`;
    const args = ["--noflush", ...(this.#tools.recent ? [`--wait=${LOCK_SECONDS}`] : [])];
    const { stderr, failed } = await attempt(this.#run, command, args, payload);
    if (!failed) return undefined;
    if (!LOCKED.test(stderr)) return stderr;
    throw new Fault(
      "TRAFFIC_LOCKED",
      `another program holds the lock of iptables; ${command} gave up waiting`,
      {
        hint: "It is tried again and again; if it stays, find the holder with `fuser -v /run/xtables.lock`.",
      },
    );
  }

  #refused(what: string, family: Family, stderr: string): Fault {
    return refusedFault(
      `${what} the IPv${family} rules`,
      `${commandOf(this.#tools, family)}-restore`,
      stderr,
    );
  }
}
