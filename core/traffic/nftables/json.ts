/** An object of foreign JSON. */
export type Json = Readonly<Record<string, unknown>>;

/** What `nft -j list …` printed, entry by entry; none when it is no such JSON. */
export function parseEntries(text: string): readonly Json[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return [];
  }
  const list = recordOf(parsed).nftables;
  return Array.isArray(list) ? list.map(recordOf) : [];
}

/** The value as an object, an empty one when it is none. */
export function recordOf(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}
