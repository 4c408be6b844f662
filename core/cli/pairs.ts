import { escapeControls } from "../observe/printable.ts";

/** Names with their values, one per line; a value that is undefined is left out. */
export function renderPairs(pairs: readonly (readonly [name: string, value: string | undefined])[]): string {
  const shown = pairs.filter(([, value]) => value !== undefined);
  const width = Math.max(0, ...shown.map(([name]) => name.length));
  return shown
    .map(([name, value = ""]) => `${name.padEnd(width)}  ${escapeControls(value)}`.trimEnd())
    .map((line) => `${line}\n`)
    .join("");
}

/** Seconds for people: `45 s`, `12 min`, `3 h 5 min`, `12 d 4 h`. */
export function renderSeconds(seconds: number): string {
  if (seconds < 120) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
