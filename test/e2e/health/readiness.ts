import { expect, test } from "bun:test";
import { findValue, type ParsedMetric, parseExposition } from "../../core/observe/exposition.ts";
import type { Daemon } from "../../lab/daemon.ts";
import type { Host } from "../../lab/host.ts";
import { until } from "../../lab/until.ts";
import { askHttp, command, readStatus } from "../ask.ts";

/** Takes the VNI and port of flannel.1 for another device, however fast the daemon makes it again (a shell command). */
export const BLOCK_DEVICE =
  "until ip link add blocker type vxlan id 1 dstport 8472 2>/dev/null; do ip link delete flannel.1 2>/dev/null || true; done";

/** The flag of every daemon here: the health server on the port that {@link askHttp} asks. */
export const HEALTH_FLAG = "--healthz-port=8081";

/** A reason has to show within this time, and to go again, ms. */
export const DEADLINE = 10_000;

/** For one test, ms. */
export const TIMEOUT = 90_000;

/** A daemon with a health server, and where it runs. */
export interface Subject {
  readonly host: Host;
  readonly daemon: Daemon;
}

/** One reason not to be ready: how it comes about on a running daemon, and how it is mended. */
export interface Breakage {
  readonly what: string;
  readonly code: string;
  readonly breakIt: () => unknown;
  readonly repairIt: () => unknown;
  /** Time until the reason shows, and again until it is over, where {@link DEADLINE} is too short, ms. */
  readonly deadline?: number;
  /** Follows from how the node stands, without a finding. */
  readonly judged?: boolean;
}

/** Whether a host's daemon says that it is ready. */
export async function isReady(host: Host): Promise<boolean> {
  return (await askHttp(host, "/readyz")).status === 200;
}

/** The metrics of a host's daemon. */
export async function readMetrics(host: Host): Promise<readonly ParsedMetric[]> {
  return parseExposition((await askHttp(host, "/metrics")).body);
}

/** Waits until a host is ready. */
export function untilReady({ host, daemon }: Subject, deadline = 2 * DEADLINE): Promise<boolean> {
  return until(() => isReady(host), {
    message: () => `${host.name} is not ready\n${daemon.tail()}`,
    deadline,
  });
}

/** One test for each: the reason shows everywhere it has to, and is gone once it is repaired. */
export function testBreakages(subject: () => Subject, breakages: readonly Breakage[]): void {
  test.each(breakages.map((breakage) => [breakage.what, breakage.code, breakage] as const))(
    "%s: %s, until it is repaired",
    (_, __, breakage) => breakAndRepair(subject(), breakage),
    TIMEOUT,
  );
}

/** Breaks what is in order, sees the reason in `/readyz`, `status` and the metrics, repairs, and sees it go. */
export async function breakAndRepair(subject: Subject, breakage: Breakage): Promise<void> {
  const { host, daemon } = subject;
  const { code, breakIt, repairIt, deadline = DEADLINE } = breakage;
  await untilReady(subject);
  try {
    await breakIt();
    await expectUnready(subject, breakage);
  } finally {
    await repairIt();
  }
  await until(() => isReady(host), {
    message: () => `never ready again after ${code}\n${daemon.tail()}`,
    deadline: Math.max(deadline, 2 * DEADLINE),
  });
  expect((await command(host, "status")).exitCode).toBe(0);
  expect(daemon.running).toBe(true);
}

/** The reason is told in full by each who can be asked. */
async function expectUnready({ host, daemon }: Subject, breakage: Breakage): Promise<void> {
  const { code, deadline = DEADLINE, judged = false } = breakage;
  const answer = await until(
    async () => {
      const given = await askHttp(host, "/readyz");
      return given.status === 503 && given.body.includes(`"${code}"`) ? given : undefined;
    },
    { message: () => `never unready for ${code}\n${daemon.tail()}`, deadline },
  );
  expect(answer.type).toBe("application/json");
  const { ready, reasons } = JSON.parse(answer.body);
  expect(ready).toBe(false);
  for (const reason of reasons) {
    for (const part of ["code", "title", "text", "fix"]) expect(reason[part]).not.toBe("");
  }
  // The process lives: a restart would mend none of this.
  expect((await askHttp(host, "/livez")).status).toBe(200);
  const status = await command(host, "status");
  expect(status.exitCode).toBe(1);
  expect(status.stdout).toMatch(new RegExp(`^STATE +not ready: .*${code}`));
  const metrics = await readMetrics(host);
  expect(findValue(metrics, "flannel_ready")).toBe(0);
  const told = findValue(metrics, "flannel_findings", { code, severity: "error" }) ?? 0;
  expect({ code, told: told > 0 }).toEqual({ code, told: !judged });
}

/** Waits until a code keeps a host from being ready, by `flanneld status`; returns what it says. */
export function untilReason(
  host: Host,
  code: string,
  deadline = 4 * DEADLINE,
): Promise<{ readonly text: string; readonly fix: string }> {
  return until(async () => (await readStatus(host)).reasons.find((reason) => reason.code === code), {
    message: async () => `${host.name} is not unready for ${code}: ${await shownReasons(host)}`,
    deadline,
    interval: 100,
  });
}

/** Waits until nothing keeps a host from being ready, by `flanneld status`. */
export function untilNoReason(host: Host, deadline = 4 * DEADLINE): Promise<boolean> {
  return until(async () => (await readStatus(host)).ready, {
    message: async () => `${host.name} is not ready: ${await shownReasons(host)}`,
    deadline,
    interval: 100,
  });
}

async function shownReasons(host: Host): Promise<string> {
  return JSON.stringify((await readStatus(host)).reasons);
}
