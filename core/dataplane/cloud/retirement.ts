import type { CloudReading } from "../../../plugins/sdk/cloud.ts";
import type { Subnets } from "../../lease/lease.ts";
import type { LeaseStore } from "../../lease/store.ts";
import { parsePrefix } from "../../net/prefix.ts";
import type { Log } from "../../observe/log.ts";
import { type Orphan, Orphans, type OrphansInput } from "./orphans.ts";
import { isLeased } from "./plan.ts";

export interface RetirementInput extends OrphansInput {
  /** The cluster, where the store can tell; without it nothing is ever retired. */
  readonly store: Pick<LeaseStore, "lead" | "takenSubnets">;
  readonly log: Log;
}

/** Name of the election among the nodes; the key is `<prefix>/leaders/cloud-routes`. */
const TASK = "cloud-routes";
/** How long a node that leads keeps the task without saying so again, ms. */
const TERM_MS = 120_000;

/**
 * Decides which routes of nodes that are gone this node may remove: those without lease for the grace time, if it leads,
 * and if the store says so once more at that moment.
 */
export class Retirement {
  readonly #input: RetirementInput;
  readonly #orphans: Orphans;

  constructor(input: RetirementInput) {
    this.#input = input;
    this.#orphans = new Orphans(input);
  }

  /** ms until a route may have to go, undefined when there is none. */
  get next(): number | undefined {
    return this.#orphans.next;
  }

  /**
   * The routes to remove now, empty when there is nothing to do or another node does it. Rejects with a Fault when the
   * store cannot be asked.
   */
  async choose(
    reading: CloudReading,
    self: string,
    leased: readonly string[],
    signal: AbortSignal,
  ): Promise<readonly Orphan[]> {
    const due = this.#orphans.observe(reading, self, leased);
    const { store, log } = this.#input;
    if (due.length === 0 || !store.lead || !store.takenSubnets) return [];
    if (!(await store.lead(TASK, TERM_MS, signal))) return [];
    const taken = textsOf(await store.takenSubnets(signal));
    const gone = due.filter(({ dst }) => isFree(dst, taken));
    if (gone.length > 0) log.info("removing routes of nodes that are gone", { routes: gone });
    return gone;
  }

  /**
   * Whether no lease has a subnet at this moment: the watch may lag behind, and skips leases that are of no use as peers.
   * Rejects with a Fault when the store cannot be asked.
   */
  async isGone({ dst }: Orphan, signal: AbortSignal): Promise<boolean> {
    const taken = await this.#input.store.takenSubnets?.(signal);
    return taken !== undefined && isFree(dst, textsOf(taken));
  }
}

function isFree(dst: string, taken: readonly string[]): boolean {
  const prefix = parsePrefix(dst);
  return prefix !== undefined && !isLeased(prefix, taken);
}

/** Subnets of both families as one list. */
export function textsOf(subnets: readonly Subnets[]): readonly string[] {
  return subnets.flatMap(({ ipv4, ipv6 }) => [ipv4, ipv6].filter((text) => text !== undefined));
}
