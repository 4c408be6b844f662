/** What a VICI message holds: text, a list of texts, or a section. Names are unique within a section. */
export type ViciValue = string | readonly string[] | ViciMessage;

/** A VICI message, or a section of one, by name. */
export interface ViciMessage {
  readonly [name: string]: ViciValue;
}

/** Text below a name; undefined when there is none. */
export function textOf(message: ViciMessage | undefined, name: string): string | undefined {
  const value = message?.[name];
  return typeof value === "string" ? value : undefined;
}

/** The list below a name; empty when there is none. */
export function listOf(message: ViciMessage | undefined, name: string): readonly string[] {
  const value = message?.[name];
  return Array.isArray(value) ? value : [];
}

/** The section below a name; undefined when there is none. */
export function sectionOf(message: ViciMessage | undefined, name: string): ViciMessage | undefined {
  return asSection(message?.[name]);
}

/** The sections of a message, by name. */
export function sectionsOf(message: ViciMessage | undefined): readonly (readonly [string, ViciMessage])[] {
  return Object.entries(message ?? {}).flatMap(([name, value]) => {
    const section = asSection(value);
    return section === undefined ? [] : [[name, section] as const];
  });
}

function asSection(value: ViciValue | undefined): ViciMessage | undefined {
  return typeof value === "object" && !Array.isArray(value) ? (value as ViciMessage) : undefined;
}
