const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  "\u00b5s": 1e-3,
  "\u03bcs": 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

const PART = /(\d+\.?\d*|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)/y;

/** Milliseconds of a duration in Go's notation (`1h30m`, `500ms`, `-1.5s`, `0`), undefined when it is none. */
export function parseDuration(text: string): number | undefined {
  const negative = text.startsWith("-");
  const body = /^[+-]/.test(text) ? text.slice(1) : text;
  if (body === "0") return 0;
  if (body === "") return undefined;
  let total = 0;
  PART.lastIndex = 0;
  for (let at = 0; at < body.length; at = PART.lastIndex) {
    const [, amount, unit] = PART.exec(body) ?? [];
    const factor = unit === undefined ? undefined : UNIT_MS[unit];
    if (factor === undefined) return undefined;
    total += Number(amount) * factor;
  }
  return negative ? -total : total;
}

/** A duration as people write it: `24h`, `1h30m`, `10s`, `1.5s`; whole milliseconds. */
export function formatDuration(ms: number): string {
  const whole = Math.round(Math.abs(ms));
  const hours = Math.floor(whole / 3_600_000);
  const minutes = Math.floor((whole % 3_600_000) / 60_000);
  const seconds = (whole % 60_000) / 1000;
  const text = `${hours ? `${hours}h` : ""}${minutes ? `${minutes}m` : ""}${seconds ? `${seconds}s` : ""}`;
  return `${ms < 0 && text ? "-" : ""}${text || "0s"}`;
}
