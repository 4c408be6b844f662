import { EADDRNOTAVAIL, EEXIST, EINVAL, ENODEV, EOPNOTSUPP, ESRCH, errnoOfText } from "../errno.ts";
import type { Refusal } from "../faults.ts";

/**
 * `ip` prints the kernel's extended ack in place of the errno. These texts carry an errno that matters for telling
 * "already so" from a failure; every other text is an EINVAL.
 */
const EXTENDED: readonly (readonly [pattern: RegExp, errno: number])[] = [
  [/address already assigned/i, EEXIST],
  [/address not found/i, EADDRNOTAVAIL],
  [/already exists/i, EEXIST],
  [/FIB table does not exist/i, ESRCH],
  [/unknown device type/i, EOPNOTSUPP],
  [/no such device|device does not exist/i, ENODEV],
];

/** What `ip` says of its own accord about a device that is not there. */
const NO_DEVICE = /^Cannot find (bridge )?device\b|^Device "[^"]*" does not exist|^can't find device/i;
const FAILED_LINE = /^Command failed .*:(\d+)$/;

/** The refusal in what `ip` or `bridge` printed to standard error. */
export function refusalOf(stderr: string): Refusal {
  const lines = stderr.split("\n").map((line) => line.trim());
  for (const line of lines) {
    const answer = /^RTNETLINK answers: (.+)$/.exec(line)?.[1];
    if (answer !== undefined) return { errno: errnoOfText(answer) ?? EINVAL, text: "" };
    const acknowledged = /^Error: (.+?)\.?$/.exec(line)?.[1];
    if (acknowledged !== undefined) {
      const known = EXTENDED.find(([pattern]) => pattern.test(acknowledged));
      return { errno: known?.[1] ?? EINVAL, text: acknowledged };
    }
    if (NO_DEVICE.test(line)) return { errno: ENODEV, text: line };
    const errno = errnoOfText(line.slice(line.lastIndexOf(":") + 1));
    if (errno !== undefined) return { errno, text: line };
  }
  return {
    errno: EINVAL,
    text: lines.find((line) => line !== "" && !FAILED_LINE.test(line)) ?? "no reason given",
  };
}

/**
 * The refusals of a `-force -batch -` run by line number (from 1): each `Command failed -:N` closes the lines that
 * say why. `rest` is what was said after the last of them: a warning, or why the tool gave up.
 */
export function batchRefusals(stderr: string): { refusals: Map<number, Refusal>; rest: string } {
  const refusals = new Map<number, Refusal>();
  let reasons: string[] = [];
  for (const line of stderr.split("\n")) {
    const number = FAILED_LINE.exec(line.trim())?.[1];
    if (number === undefined) {
      reasons.push(line);
      continue;
    }
    refusals.set(Number(number), refusalOf(reasons.join("\n")));
    reasons = [];
  }
  return { refusals, rest: reasons.join("\n").trim() };
}
