import { chmodSync, lstatSync, mkdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { Backoff, sleep } from "../retry/backoff.ts";
import type { Routes } from "./answer.ts";
import { describeError, Fault } from "./fault.ts";
import type { Health } from "./health.ts";
import { type Listening, listen } from "./server.ts";

/** The socket beside a subnet file, on which its daemon answers root. */
export function statusSocketOf(subnetFile: string): string {
  return `${subnetFile}.sock`;
}

/** How often is looked whether the socket is still there (its folder may be wiped), ms. */
const LOOK_EVERY_MS = 15_000;

export interface StatusSocketInput {
  readonly path: string;
  readonly routes: Routes;
  readonly health: Health;
  /** ms between two looks whether the socket is still there; default 15 s. */
  readonly lookEvery?: number;
}

/**
 * Serves the routes on a unix socket that only root may use, until aborted; then it is gone. One that a crash left
 * is replaced. What keeps it from listening is the finding `STATUS_SOCKET`, tried again with growing pauses: without
 * it `flanneld status` does not work, and nothing else suffers.
 */
export async function serveStatus(
  { path, routes, health, lookEvery = LOOK_EVERY_MS }: StatusSocketInput,
  signal: AbortSignal,
): Promise<void> {
  const backoff = new Backoff({ first: 1_000, max: 60_000 });
  while (!signal.aborted) {
    try {
      await using stack = new AsyncDisposableStack();
      const server = await open(path, routes);
      stack.defer(() => server.stop());
      health.clear("STATUS_SOCKET");
      const inode = inodeOf(path);
      while (!signal.aborted && inodeOf(path) === inode) await sleep(lookEvery, signal);
    } catch (error) {
      health.raise({
        code: "STATUS_SOCKET",
        severity: "warning",
        title: "this daemon cannot be asked for its status",
        text: `${path}: ${describeError(error)}`,
        fix: error instanceof Fault ? error.hint : "It is tried again by itself.",
      });
      await sleep(backoff.next(), signal);
    }
  }
}

async function open(path: string, routes: Routes): Promise<Listening> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
  await removeStale(path);
  // The socket must not be open to others for even a moment between bind(2) and chmod(2).
  const former = process.umask(0o177);
  try {
    const server = listen({ unix: path }, routes);
    chmodSync(path, 0o600);
    return server;
  } finally {
    process.umask(former);
  }
}

/** Removes the socket that a crashed daemon left. Throws when the path belongs to somebody else. */
async function removeStale(path: string): Promise<void> {
  const known = lstatSync(path, { throwIfNoEntry: false });
  if (!known) return;
  if (!known.isSocket()) {
    throw new Fault("STATUS_SOCKET", "a file of that name is in the way", {
      hint: "Look at it, and remove it if nobody needs it.",
    });
  }
  if (await isAnswered(path)) {
    throw new Fault("STATUS_SOCKET", "another process answers on it", {
      hint: "Two daemons on one host need a -subnet-file each.",
    });
  }
  rmSync(path, { force: true });
}

async function isAnswered(path: string): Promise<boolean> {
  try {
    const socket = await Bun.connect({ unix: path, socket: { data() {} } });
    socket.end();
    return true;
  } catch {
    return false;
  }
}

function inodeOf(path: string): number | undefined {
  return lstatSync(path, { throwIfNoEntry: false })?.ino;
}
