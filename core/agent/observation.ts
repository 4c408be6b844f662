import type { DataPathCounts } from "../dataplane/peer-state.ts";
import { type DataplaneStats, newDataplaneStats } from "../dataplane/stats.ts";
import { decodeKey } from "../lease/key.ts";
import type { LeaseStore } from "../lease/store.ts";
import type { Kernel } from "../netlink/kernel.ts";
import type { Counts } from "../observe/counts.ts";
import type { Health } from "../observe/health.ts";
import { Loops } from "../observe/loops.ts";
import type { Adaptation } from "./adapt.ts";
import { Journal } from "./journal.ts";
import { Probes } from "./probes.ts";
import { judgeReadiness, type ReadinessInput, type Reason } from "./readiness.ts";
import type { Session } from "./session.ts";
import type { Settings } from "./settings.ts";

/** Which build this is. */
export interface BuildIdentity {
  readonly version: string;
  /** Empty when unknown. */
  readonly commit: string;
}

/** Nothing is in the data path before there is a session. */
const NO_DATA_PATH: DataPathCounts = {
  wanted: 0,
  programmed: 0,
  refused: 0,
  unusable: 0,
  objects: 0,
  failing: 0,
};

/** What endpoints and commands see of the running daemon: filled in as the start proceeds, read when somebody asks. */
export class Observation {
  readonly build: BuildIdentity;
  readonly settings: Settings;
  readonly health: Health;
  readonly loops = new Loops();
  readonly journal = new Journal();
  readonly probes = new Probes();
  readonly dataplane: DataplaneStats = newDataplaneStats();
  /** Wall clock, ms since 1970. */
  readonly startedAt = Date.now();
  phase: ReadinessInput["phase"] = "starting";
  store: LeaseStore | undefined;
  kernel: Kernel | undefined;
  adaptation: Adaptation | undefined;
  /** Traffic rules that were missing or different and have been set right, by set; absent where none are kept. */
  ruleRepairs: (() => Counts) | undefined;

  /** Writes every finding into the journal from now on. */
  constructor(input: { build: BuildIdentity; settings: Settings; health: Health }) {
    this.build = input.build;
    this.settings = input.settings;
    this.health = input.health;
    this.journal.note("daemon", `flanneld ${input.build.version} started, pid ${process.pid}`);
    input.health.listen((change, { finding, subject }) => {
      const { code, severity, title, text } = finding;
      const keys = decodeKey(subject) ? [subject] : [];
      const about = subject === "" || keys.length > 0 ? "" : ` (${subject})`;
      const words = change === "over" ? `over: ${title}` : `${title}: ${text}`;
      this.journal.note("finding", `${severity} ${code}${about} ${words}`, keys);
    });
  }

  /** The session that runs now, undefined until the start is far enough. */
  get session(): Session | undefined {
    return this.adaptation?.session;
  }

  /** How the data path stands. */
  get dataPath(): DataPathCounts {
    return this.session?.prepared.driver.counts() ?? NO_DATA_PATH;
  }

  /** Why the node is not ready, empty when it is. */
  readiness(): readonly Reason[] {
    const { session } = this;
    return judgeReadiness({
      phase: this.phase,
      synced: session?.synced ?? false,
      lease: session?.lease,
      failing: this.dataPath.failing,
      findings: this.health.active(),
    });
  }
}
