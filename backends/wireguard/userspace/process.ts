import { setTimeout as sleep } from "node:timers/promises";
import { Fault, type Host } from "flannel/sdk";
import { readUserspace } from "./socket.ts";

/** The program that makes a WireGuard device where the kernel cannot. */
const PROGRAM = "wireguard-go";
/** Longest time until it listens, ms; usually 40. */
const START_MS = 10_000;
const LOOK_EVERY_MS = 20;

/**
 * `wireguard-go DEV`: puts itself into the background and lives until the device is deleted, whatever becomes of us.
 * Resolves when it listens. Throws Fault `WIREGUARD_UNSUPPORTED` when it is not installed, `WIREGUARD_USERSPACE` when
 * it does not start.
 */
export async function startUserspace({ run, log, signal }: Host, dev: string): Promise<void> {
  try {
    // With a level it would go on writing to our log.
    await run(PROGRAM, [dev], { timeout: START_MS, env: { LOG_LEVEL: "" } });
  } catch (error) {
    throw isMissing(error) ? unsupported(dev) : notStarted(dev, error);
  }
  const end = performance.now() + START_MS;
  while (performance.now() < end && !signal.aborted) {
    if (await readUserspace(dev)) {
      log.info(`the kernel has no WireGuard: ${PROGRAM} makes ${dev}`);
      return;
    }
    await sleep(LOOK_EVERY_MS);
  }
  throw notStarted(dev, "it does not listen");
}

function isMissing(error: unknown): boolean {
  return typeof error === "object" && error !== null && "code" in error && error.code === "EXEC_MISSING";
}

function unsupported(dev: string): Fault {
  return new Fault(
    "WIREGUARD_UNSUPPORTED",
    `cannot create "${dev}": the kernel has no WireGuard, and ${PROGRAM} is not installed`,
    {
      hint: `Load the module with \`modprobe wireguard\` (Linux 5.6 or newer has it, in some distributions in a package such as linux-modules-extra), or install ${PROGRAM}.`,
    },
  );
}

function notStarted(dev: string, error: unknown): Fault {
  const why = complaintOf(error) ?? (error instanceof Error ? error.message : String(error));
  return new Fault("WIREGUARD_USERSPACE", `${PROGRAM} cannot make "${dev}": ${why}`, {
    hint: `Try it by hand: LOG_LEVEL=verbose ${PROGRAM} -f ${dev}`,
  });
}

/** Its own error line: standard error holds a notice that the kernel's WireGuard is better, whatever is wrong. */
function complaintOf(error: unknown): string | undefined {
  const cause = error instanceof Error ? error.cause : undefined;
  if (typeof cause !== "object" || cause === null || !("stdout" in cause)) return undefined;
  return /^ERROR: .*?\d\d:\d\d:\d\d (.*)$/m.exec(String(cause.stdout))?.[1];
}
