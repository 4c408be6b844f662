import { attempt, type Run, refusedFault } from "../command.ts";
import type { Firewall } from "../firewall.ts";
import type { Family } from "../intent.ts";
import { equalRules, type FamilyRules, withoutRandomPorts } from "../rules.ts";
import { familyName, tableName } from "./chains.ts";
import { parseTable } from "./parse.ts";
import { renderTransaction } from "./render.ts";

/** strerror(ENOENT): the table to list is not there. */
const MISSING = /No such file or directory/;
/** A refusal that points at the words `masquerade fully-random`. */
const RANDOM = /fully-random/;

/** Our rules in tables of our own, through `nft`. */
export class NftablesFirewall implements Firewall {
  readonly name = "nftables";
  readonly hasGeneration = true;
  readonly #run: Run;
  #canChooseRandomly = true;

  constructor(run: Run) {
    this.#run = run;
  }

  /** `nft -j list table ip flannel-ipv4`; when it differs `nft -f -`. */
  async reconcile(rules: FamilyRules): Promise<readonly string[]> {
    const listing = await this.#list(rules.family);
    const wanted = this.#canChooseRandomly ? rules : withoutRandomPorts(rules);
    if (wanted.masquerade.length + wanted.forward.length === 0) {
      return listing === undefined ? [] : this.#delete(rules.family);
    }
    const present = listing === undefined ? undefined : parseTable(listing, rules.family);
    if (
      present &&
      equalRules(present.masquerade, wanted.masquerade) &&
      equalRules(present.forward, wanted.forward)
    ) {
      return [];
    }
    await this.#write(wanted);
    return [`${listing === undefined ? "created" : "replaced"} ${describeTable(rules.family)}`];
  }

  /** `nft delete table ip flannel-ipv4` */
  async remove(family: Family, dryRun: boolean): Promise<readonly string[]> {
    if ((await this.#list(family)) === undefined) return [];
    return dryRun ? [`removed ${describeTable(family)}`] : this.#delete(family);
  }

  async #list(family: Family): Promise<string | undefined> {
    const args = ["-j", "list", "table", familyName(family), tableName(family)];
    const { stdout, stderr, failed } = await attempt(this.#run, "nft", args);
    if (!failed) return stdout;
    if (MISSING.test(stderr)) return undefined;
    throw refusedFault(`list ${describeTable(family)}`, "nft", stderr);
  }

  async #write(rules: FamilyRules): Promise<void> {
    const { failed, stderr } = await attempt(this.#run, "nft", ["-f", "-"], renderTransaction(rules));
    if (!failed) return;
    if (!this.#canChooseRandomly || !RANDOM.test(stderr)) {
      throw refusedFault(`write ${describeTable(rules.family)}`, "nft", stderr);
    }
    this.#canChooseRandomly = false;
    try {
      await this.#write(withoutRandomPorts(rules));
    } catch (error) {
      // It was not the randomness, or not that alone.
      this.#canChooseRandomly = true;
      throw error;
    }
  }

  async #delete(family: Family): Promise<readonly string[]> {
    const text = renderTransaction({ family, masquerade: [], forward: [] });
    const { failed, stderr } = await attempt(this.#run, "nft", ["-f", "-"], text);
    if (failed) throw refusedFault(`delete ${describeTable(family)}`, "nft", stderr);
    return [`removed ${describeTable(family)}`];
  }
}

function describeTable(family: Family): string {
  return `nftables table ${familyName(family)} ${tableName(family)}`;
}
