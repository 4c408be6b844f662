import type {
  CloudBackend,
  CloudChange,
  CloudHost,
  CloudPlace,
  CloudReading,
  CloudRoute,
} from "../../../plugins/sdk/cloud.ts";
import type { HostFacts } from "../../../plugins/sdk/facts.ts";
import type { Log } from "../../observe/log.ts";
import { sleep } from "../../retry/backoff.ts";
import { Phase } from "../phase.ts";
import { describeChange } from "./describe.ts";
import { type CloudFinding, findingOf, isHopeless } from "./finding.ts";
import { FullTables } from "./full-tables.ts";
import { type CloudGoal, type CloudPlan, planCloud } from "./plan.ts";

export interface CloudTablesInput {
  readonly backend: CloudBackend;
  readonly host: CloudHost;
  readonly log: Log;
  /** Longest time of one call of the plugin, ms. */
  readonly timeout: number;
}

/** A goal without the name of this node, which only the cloud knows. */
export interface Wishes extends Omit<CloudGoal, "self"> {
  /** Asked right before a retired route is removed: whether no lease has its subnet even now. */
  readonly isGone?: (route: Pick<CloudRoute, "dst" | "target">) => Promise<boolean>;
}

type Goal = Wishes & CloudGoal;

/** What came of a look at the tables. */
export interface Look {
  readonly place: CloudPlace;
  /** The tables as they stand at the end. */
  readonly reading: CloudReading;
  readonly applied: readonly CloudChange[];
  readonly findings: readonly CloudFinding[];
  /** Whether anything is left to be done. */
  readonly complete: boolean;
}

/** Pauses before the tables are read again after a change, ms: a cloud's answers lag behind its deeds. */
const SETTLE_MS = [500, 1_000, 2_000, 4_000] as const;

/** Discovers, reads, plans, applies and verifies; one look at a time. */
export class CloudTables {
  readonly #input: CloudTablesInput;
  readonly #calls: Phase;
  #place: CloudPlace | undefined;
  readonly #full = new FullTables();
  /** The place that was logged last. */
  #told = "";
  /** What failed at the last look. */
  #failing = new Set<string>();

  constructor(input: CloudTablesInput) {
    this.#input = input;
    this.#calls = new Phase("cloud", input.timeout);
  }

  /** What would be done now; changes nothing. Rejects with whatever a call fails with. */
  async preview(facts: HostFacts, wishes: Wishes): Promise<CloudPlan & { readonly place: CloudPlace }> {
    const place = await this.#discover(facts);
    return { ...planCloud(await this.#read(), { ...wishes, self: place.self }), place };
  }

  /**
   * Brings the tables to the goal as far as that can be done, and looks again. Rejects when they cannot be read; what
   * single changes fail with is in the findings.
   */
  async reach(facts: HostFacts, wishes: Wishes): Promise<Look> {
    try {
      const place = await this.#discover(facts);
      return await this.#reach(place, { ...wishes, self: place.self });
    } catch (error) {
      // Credentials, region or instance may be others by the next time.
      this.#place = undefined;
      throw error;
    }
  }

  async #reach(place: CloudPlace, wanted: Goal): Promise<Look> {
    const reading = await this.#read();
    let goal = wanted;
    const plan = planCloud(reading, goal);
    const applied: CloudChange[] = [];
    const failed: CloudFinding[] = [];
    const tried = this.#failing;
    this.#failing = new Set();
    for (const change of plan.changes) {
      if (this.#input.host.signal.aborted) break;
      const known = this.#full.refusalOf(change, reading);
      try {
        if (known) throw known;
        if (isOfOther(change, goal) && !(await this.#holds(change, goal))) {
          goal = without(goal, change);
          continue;
        }
        // A plan is told once, and not with every try.
        if (!tried.has(describeChange(change)))
          this.#input.log.info(describeChange(change), { place: place.summary });
        await this.#calls.call(() => this.#input.backend.apply(change));
        this.#full.note(change, reading, undefined);
        applied.push(change);
      } catch (error) {
        if (error !== known) this.#full.note(change, reading, error);
        this.#failing.add(describeChange(change));
        failed.push(weigh(findingOf(error), change, goal));
        if (!isHopeless(error)) continue;
        this.#place = undefined;
        break;
      }
    }
    const isWaiting = applied.length > 0 || !plan.settled;
    if (failed.length === 0 && isWaiting) return this.#verify(place, goal, applied);
    const findings = [...plan.findings.map(plain), ...failed];
    return { place, reading, applied, findings, complete: !failed.some(isError) };
  }

  /**
   * Whether somebody else's route is to be removed even now: its subnet may have a new owner since it was planned, and
   * some clouds remove whatever route a destination has.
   */
  async #holds(change: CloudChange, goal: Goal): Promise<boolean> {
    if (change.action !== "delete" || !(await goal.isGone?.(change.former))) return false;
    const planned = describeChange(change);
    return planCloud(await this.#read(), goal).changes.some((again) => describeChange(again) === planned);
  }

  /** Reads until what was applied shows; that it does not is a finding. */
  async #verify(place: CloudPlace, goal: CloudGoal, applied: readonly CloudChange[]): Promise<Look> {
    const { signal } = this.#input.host;
    const asked = new Set(applied.map(describeChange));
    const shows = ({ changes, settled }: CloudPlan) => changes.length === 0 && settled;
    // Somebody else was at it meanwhile: waiting does not help, another look does.
    const isOther = ({ changes }: CloudPlan) => changes.some((change) => !asked.has(describeChange(change)));
    let reading = await this.#read();
    let plan = planCloud(reading, goal);
    for (const pause of SETTLE_MS) {
      if (shows(plan) || isOther(plan) || signal.aborted) break;
      await sleep(pause, signal);
      reading = await this.#read();
      plan = planCloud(reading, goal);
    }
    const late = shows(plan) || isOther(plan) ? [] : [notSettled(plan)];
    return {
      place,
      reading,
      applied,
      findings: [...plan.findings.map(plain), ...late],
      complete: shows(plan),
    };
  }

  async #discover(facts: HostFacts): Promise<CloudPlace> {
    const { backend, host, log } = this.#input;
    if (this.#place) return this.#place;
    const place = await this.#calls.call(() => backend.discover(host, facts));
    if (place.summary !== this.#told) log.info("place in the cloud", { place: place.summary });
    this.#told = place.summary;
    this.#place = place;
    return place;
  }

  #read(): Promise<CloudReading> {
    return this.#calls.call(() => this.#input.backend.read());
  }
}

/** Whether a change removes the route of another node from a subnet that is not this node's. */
function isOfOther(change: CloudChange, goal: CloudGoal): boolean {
  return change.action === "delete" && change.former.target !== goal.self && !goal.own.includes(change.dst);
}

/** A goal that leaves the route of a change alone. */
function without(goal: Goal, change: CloudChange): Goal {
  const retired = (goal.retired ?? []).filter(({ dst }) => !("dst" in change) || dst !== change.dst);
  return { ...goal, retired };
}

/** That somebody else's route stays, or the own one without mark, does not keep this node's packets from arriving. */
function weigh({ finding, subject }: CloudFinding, change: CloudChange, goal: CloudGoal): CloudFinding {
  const isHarmless = change.action === "mark" || isOfOther(change, goal);
  return { finding: isHarmless ? { ...finding, severity: "warning" } : finding, subject };
}

function isError({ finding }: CloudFinding): boolean {
  return finding.severity === "error";
}

function plain(finding: CloudFinding["finding"]): CloudFinding {
  return { finding, subject: finding.text };
}

function notSettled({ changes: [first] }: CloudPlan): CloudFinding {
  return {
    subject: "",
    finding: {
      code: "CLOUD_NOT_SETTLED",
      severity: "error",
      title: "the cloud accepted a change that does not show",
      text: first ? `still to do: ${describeChange(first)}` : "a route is not in force yet",
      fix: "It is looked at again by itself; if it stays, see the route table in the cloud's console.",
    },
  };
}
