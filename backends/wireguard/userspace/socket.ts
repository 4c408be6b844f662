import { connect } from "node:net";
import { Fault, type WireguardChange, type WireguardState } from "flannel/sdk";
import { type Answer, decodeAnswer, encodeSet, GET, isWhole } from "./protocol.ts";

/** Where WireGuard in user space listens (wireguard.com/xplatform); the folder is the same for all of them. */
export function socketPath(dev: string): string {
  return `/var/run/wireguard/${dev}.sock`;
}

/** Longest time for an answer, ms: thousands of peers take some hundred. */
const PATIENCE_MS = 5_000;

/** `wg show DEV dump`; undefined when nobody listens. Throws Fault `WIREGUARD_USERSPACE`. */
export async function readUserspace(dev: string): Promise<WireguardState | undefined> {
  const answer = await ask(dev, GET);
  if (answer === undefined) return undefined;
  if (answer.errno !== 0) throw refusal(dev, "tell its state", answer.errno);
  return answer.state;
}

/** `wg set DEV …`. Throws Fault `WIREGUARD_USERSPACE`. */
export async function writeUserspace(dev: string, change: WireguardChange): Promise<void> {
  const answer = await ask(dev, encodeSet(change));
  if (answer === undefined) throw fault(`nobody listens on ${socketPath(dev)}`);
  if (answer.errno !== 0) throw refusal(dev, "take its configuration", answer.errno);
}

/** EADDRINUSE (asm-generic/errno.h). */
const EADDRINUSE = 98;

function refusal(dev: string, what: string, errno: number): Fault {
  return fault(
    `WireGuard in user space does not ${what} (${dev}): ${errno === EADDRINUSE ? "EADDRINUSE" : `errno ${errno}`}`,
  );
}

/** One request and its answer; undefined when nobody listens. */
function ask(dev: string, request: string): Promise<Answer | undefined> {
  const path = socketPath(dev);
  return new Promise((resolve, reject) => {
    let text = "";
    const socket = connect(path);
    const timer = setTimeout(() => fail(`no answer within ${PATIENCE_MS} ms`), PATIENCE_MS);
    const settle = (settled: () => void) => {
      clearTimeout(timer);
      socket.destroy();
      settled();
    };
    const fail = (why: string) => settle(() => reject(fault(`${path}: ${why}`)));
    socket.setEncoding("utf8");
    socket.on("connect", () => socket.write(request));
    socket.on("data", (chunk: string) => {
      text += chunk;
      if (isWhole(text)) settle(() => finish(text, resolve, reject, path));
    });
    socket.on("end", () => fail("it was closed in the middle of an answer"));
    socket.on("error", (error: Error & { code?: string }) => {
      // Not there, or left by a process that is gone.
      if (error.code === "ENOENT" || error.code === "ECONNREFUSED") settle(() => resolve(undefined));
      else fail(error.message);
    });
  });
}

function finish(
  text: string,
  resolve: (answer: Answer) => void,
  reject: (reason: Fault) => void,
  path: string,
): void {
  try {
    resolve(decodeAnswer(text));
  } catch (error) {
    reject(fault(`${path}: ${error instanceof Error ? error.message : String(error)}`));
  }
}

function fault(message: string): Fault {
  return new Fault("WIREGUARD_USERSPACE", message, {
    hint: "Look for its process (`pgrep -a wireguard-go`); `ip link delete` of the device ends it, and a new one is started.",
  });
}
