import type { Figure, FigureDefinition } from "./figures.ts";
import type { Subject } from "./scenario.ts";

/** Collects the samples and notes of one scenario. */
export class Ledger {
  readonly #figures: readonly (FigureDefinition & { readonly ours: number[]; readonly other: number[] })[];
  readonly #notes: string[] = [];

  constructor(definitions: readonly FigureDefinition[]) {
    this.#figures = definitions.map((definition) => ({ ...definition, ours: [], other: [] }));
  }

  /** Adds a sample; throws for a figure that was not declared. */
  record(id: string, { ours }: Subject, value: number): void {
    const figure = this.#figures.find((each) => each.id === id);
    if (figure === undefined) throw new Error(`no figure is called ${id}`);
    figure[ours ? "ours" : "other"].push(value);
  }

  /** Adds a line below the table. */
  note(text: string): void {
    this.#notes.push(text);
  }

  /** All figures in the order of their declaration, also those without samples. */
  get figures(): readonly Figure[] {
    return this.#figures;
  }

  get notes(): readonly string[] {
    return this.#notes;
  }
}
