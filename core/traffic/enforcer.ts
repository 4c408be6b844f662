import type { Families } from "../lease/lease.ts";
import { toFault } from "../observe/fault.ts";
import type { Health } from "../observe/health.ts";
import type { Log } from "../observe/log.ts";
import { failedFinding, leftoversFinding, lockedFinding, TRAFFIC } from "./findings.ts";
import type { Firewall } from "./firewall.ts";
import type { TrafficHost } from "./host.ts";
import { ALL_FAMILIES, type Family, familiesOf, type TrafficIntent } from "./intent.ts";
import { planRules } from "./rules.ts";
import { FirewallSelector, type Selection } from "./select.ts";

export interface EnforcerOptions {
  readonly host: TrafficHost;
  readonly health: Health;
  readonly log: Log;
  /** Families of the last run: the rules of one that is off now are removed. */
  readonly previous?: Families;
}

/** What came of one pass. */
export interface Pass {
  /** Whether everything is as wanted now; if not, a finding says why. */
  readonly sound: boolean;
  /** What was written, in words. */
  readonly written: readonly string[];
}

const NOTHING: Selection = { targets: new Map(), findings: [] };

/** Makes the rules what an intent wants, one pass at a time: choose where, compare, write, remove from elsewhere. */
export class Enforcer {
  readonly #health: Health;
  readonly #log: Log;
  readonly #selector: FirewallSelector;
  #selection = NOTHING;
  /** Families whose rules may also be where they no longer belong. */
  readonly #uncleaned = new Set<Family>();
  /** Families that this host has, or may have, rules of. */
  readonly #touched: Set<Family>;
  /** A command of the front end in use was not there any more: another one may be. */
  #toolGone = false;

  constructor({ host, health, log, previous }: EnforcerOptions) {
    this.#health = health;
    this.#log = log;
    this.#selector = new FirewallSelector(host);
    this.#touched = new Set(ALL_FAMILIES.filter((family) => previous?.[family === 4 ? "ipv4" : "ipv6"]));
  }

  /** Where the rules are. */
  get targets(): readonly Firewall[] {
    return [...this.#selection.targets.values()];
  }

  /** One pass. `choose`: decide anew where the rules go. Never throws. */
  async enforce(intent: TrafficIntent, choose: boolean): Promise<Pass> {
    const families = familiesOf(intent);
    const isNew = families.some(([family]) => !this.#selection.targets.has(family));
    let sound = true;
    if (choose || isNew || this.#toolGone) sound = await this.#select(intent);
    const written: string[] = [];
    for (const [family, wanted] of families) {
      this.#touched.add(family);
      const firewall = this.#selection.targets.get(family);
      if (!firewall) {
        this.#clearFamily(family);
        continue;
      }
      const done = await this.#attempt(family, async () => {
        const actions = await firewall.reconcile(planRules(family, wanted, intent));
        written.push(...actions.map((action) => `IPv${family}, ${firewall.name}: ${action}`));
      });
      sound &&= done;
    }
    // The new rules are in force before the old ones go.
    if (sound) sound = await this.#removeLeftovers(intent);
    return { sound, written };
  }

  /** Everything that could hold rules, installed now, per family: for removing them. */
  async discover(): Promise<readonly (readonly [Family, Firewall])[]> {
    await this.#selector.discover();
    return ALL_FAMILIES.flatMap((family) =>
      this.#selector.installed(family).map((firewall) => [family, firewall] as const),
    );
  }

  /** False when there is nowhere to put the rules of a family that has some. */
  async #select(intent: TrafficIntent): Promise<boolean> {
    const families = familiesOf(intent).map(([family]) => family);
    try {
      const selection = await this.#selector.select(intent.kind, families);
      for (const [family, { name }] of selection.targets) {
        if (name === this.#selection.targets.get(family)?.name) continue;
        this.#log.info(`IPv${family} traffic rules go to ${name}`);
      }
      this.#selection = selection;
      this.#toolGone = false;
      for (const family of ALL_FAMILIES) this.#uncleaned.add(family);
      this.#health.clear(TRAFFIC.failed, "choice");
    } catch (error) {
      const fault = toFault(error, "TRAFFIC_REFUSED");
      this.#health.raise(failedFinding(fault.message, fault.hint), "choice");
      return false;
    }
    const { targets, findings } = this.#selection;
    const hasRules = intent.masquerade || intent.forward;
    for (const family of ALL_FAMILIES) {
      for (const code of [TRAFFIC.noTool, TRAFFIC.fallback]) {
        const found = findings.find(([of, finding]) => of === family && finding.code === code);
        if (found && hasRules) this.#health.raise(found[1], `IPv${family}`);
        else this.#health.clear(code, `IPv${family}`);
      }
    }
    return !hasRules || families.every((family) => targets.has(family));
  }

  /** Removes our rules from wherever they do not belong; not a command is run for a family that never had any. */
  async #removeLeftovers(intent: TrafficIntent): Promise<boolean> {
    const on = new Set(familiesOf(intent).map(([family]) => family));
    for (const family of [...this.#uncleaned]) {
      if (this.#touched.has(family)) {
        const target = on.has(family) ? this.#selection.targets.get(family) : undefined;
        try {
          for (const firewall of this.#selector.installed(family)) {
            if (firewall === target) continue;
            for (const action of await firewall.remove(family, false)) {
              this.#log.info(`IPv${family} traffic rules: ${action}`);
            }
          }
        } catch (error) {
          const fault = toFault(error, "TRAFFIC_REFUSED");
          this.#health.raise(leftoversFinding(fault.message, fault.hint), `IPv${family}`);
          return false;
        }
      }
      this.#uncleaned.delete(family);
      this.#health.clear(TRAFFIC.leftovers, `IPv${family}`);
      if (!on.has(family)) this.#clearFamily(family);
    }
    return true;
  }

  /** Whether `work` succeeded; if not, a finding holds until it does. */
  async #attempt(family: Family, work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
    } catch (error) {
      const fault = toFault(error, "TRAFFIC_REFUSED");
      const locked = fault.code === TRAFFIC.locked;
      this.#toolGone ||= fault.code === "EXEC_MISSING";
      const finding = locked ? lockedFinding : failedFinding;
      this.#health.raise(finding(fault.message, fault.hint), `IPv${family}`);
      this.#health.clear(locked ? TRAFFIC.failed : TRAFFIC.locked, `IPv${family}`);
      return false;
    }
    this.#clearFamily(family);
    return true;
  }

  #clearFamily(family: Family): void {
    for (const code of [TRAFFIC.failed, TRAFFIC.locked]) this.#health.clear(code, `IPv${family}`);
  }
}
