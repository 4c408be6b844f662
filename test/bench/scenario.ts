import type { FigureDefinition } from "./figures.ts";

/** An executable under measurement. */
export interface Subject {
  readonly file: string;
  /** Ours takes flags that flannel does not know; the other is driven by flannel's own flags alone. */
  readonly ours: boolean;
}

/** What a scenario is given. */
export interface Session {
  /** Ours first, then the other, if there is one. */
  readonly subjects: readonly Subject[];
  readonly runs: number;
  /** Small sizes and short windows. */
  readonly quick: boolean;
  /** Adds a sample to one of the scenario's figures. */
  record(id: string, subject: Subject, value: number): void;
  /** Adds a line below the scenario's table. */
  note(text: string): void;
  /** Says on standard error what is being done. */
  progress(text: string): void;
}

/** A question that the benchmark answers. */
export interface Scenario {
  readonly name: string;
  readonly title: string;
  figures(quick: boolean): readonly FigureDefinition[];
  /** Measures and records; throws when it cannot. */
  measure(session: Session): Promise<void>;
}

/**
 * Calls `measure` for each run and subject. The order turns with every run, so that what one leaves behind (warm
 * caches, a busy kernel) falls on both.
 */
export async function inTurns(
  { subjects, runs, progress }: Session,
  what: string,
  measure: (subject: Subject) => Promise<void>,
): Promise<void> {
  for (let run = 0; run < runs; run++) {
    for (const subject of run % 2 === 0 ? subjects : subjects.toReversed()) {
      progress(`${what}, run ${run + 1}/${runs}, ${subject.ours ? "ours" : "other"}`);
      await measure(subject);
    }
  }
}
