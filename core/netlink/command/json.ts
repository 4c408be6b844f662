/** One record of `ip -j`: foreign JSON, so every field is looked at before it is used. */
export type Json = Readonly<Record<string, unknown>>;

/** A text, undefined when absent or something else. */
export function textOf(record: Json, key: string): string | undefined {
  const value = record[key];
  return typeof value === "string" ? value : undefined;
}

/** A number, also when printed as text (`ip -N` prints protocols and scopes so). */
export function numberOf(record: Json, key: string): number | undefined {
  const value = record[key];
  const number = typeof value === "string" && value !== "" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : undefined;
}

/** A switch: `ip` prints it as true, or leaves it out. */
export function flagOf(record: Json, key: string): boolean {
  return record[key] === true;
}

/** A list of words, e.g. flags; empty when absent. */
export function wordsOf(record: Json, key: string): readonly string[] {
  const value = record[key];
  return Array.isArray(value) ? value.filter((word): word is string => typeof word === "string") : [];
}

/** A list of records, undefined when absent. */
export function recordsOf(record: Json, key: string): readonly Json[] | undefined {
  const value = record[key];
  return Array.isArray(value)
    ? value.filter((item): item is Json => typeof item === "object" && item !== null)
    : undefined;
}

/** A record inside, empty when absent. */
export function recordOf(record: Json, key: string): Json {
  const value = record[key];
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}
