import { describeError, Fault } from "./fault.ts";
import { statusSocketOf } from "./status-socket.ts";

/** Time the daemon gets to answer, ms: a busy one may take seconds. */
const PATIENCE_MS = 10_000;

/**
 * Asks the daemon that keeps this subnet file; `path` is one of its routes: `/status`. Returns its JSON.
 * @throws Fault `DAEMON_NOT_RUNNING`, `DAEMON_SILENT`, `PRIVILEGE_MISSING`, or with the daemon's own code.
 */
export async function askDaemon(
  subnetFile: string,
  path: string,
  search: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  const socket = statusSocketOf(subnetFile);
  const url = `http://flanneld${path}?${new URLSearchParams(search)}`;
  let response: Response;
  let text: string;
  try {
    response = await fetch(url, { unix: socket, signal: AbortSignal.timeout(PATIENCE_MS) });
    text = await response.text();
  } catch (error) {
    throw explain(socket, error);
  }
  if (response.ok) return JSON.parse(text);
  throw new Fault("DAEMON_REFUSED", `flanneld at ${socket} answers ${response.status}: ${text.trim()}`, {
    hint: "Use the flanneld executable of the version that runs.",
  });
}

function explain(socket: string, error: unknown): Fault {
  const { code, name } = error as NodeJS.ErrnoException;
  if (code === "EACCES" || code === "EPERM") {
    return new Fault("PRIVILEGE_MISSING", `no permission to ask flanneld at ${socket}`, {
      hint: "Run it as root.",
      cause: error,
    });
  }
  if (name === "TimeoutError") {
    return new Fault("DAEMON_SILENT", `flanneld at ${socket} did not answer within ${PATIENCE_MS / 1000} s`, {
      hint: "Look whether it is stopped or starved of CPU; see its log.",
      cause: error,
    });
  }
  const isAbsent = code === "ENOENT" || code === "ECONNREFUSED";
  return new Fault(
    "DAEMON_NOT_RUNNING",
    `no flanneld answers at ${socket}${isAbsent ? "" : `: ${describeError(error)}`}`,
    {
      hint: "Start it, or name the -subnet-file that it was started with.",
      cause: error,
    },
  );
}
