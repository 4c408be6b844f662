/** The other end of ./remote.ts: runs one backend here, and does what the lines of standard input say. */
import type { ActiveBackend, BackendPlugin, Host } from "flannel/sdk";
import { RtnetlinkKernel } from "../../core/netlink/rtnetlink.ts";
import type { RemoteAnswer, RemoteCall, RemoteInput } from "./remote.ts";

// Not through ./plugins.ts, which loads all of them.
const { main, options, families, networks } = JSON.parse(process.argv[2] ?? "") as RemoteInput;
const { default: plugin } = (await import(main)) as { default: BackendPlugin };
const backend = plugin.configure({ options, families, networks, nodeId: "node-1" });
if (backend.mode !== "active") throw new Error("not active");

const host: Host = {
  kernel: new RtnetlinkKernel({}),
  log: { info() {}, warn() {} },
  run: () => Promise.reject(new Error("no commands here")),
  findLasting: () => [],
  keepRunning: () => {
    throw new Error("no processes here");
  },
  statePath: (name) => name,
  wake() {},
  signal: new AbortController().signal,
};

function call(active: ActiveBackend, { method, args }: RemoteCall): unknown {
  if (method === "prepare")
    return active.prepare(host, ...(args as [Parameters<ActiveBackend["prepare"]>[1]]));
  const member = active[method] as ((...args: readonly unknown[]) => unknown) | undefined;
  return member?.apply(active, args as unknown[]);
}

for await (const line of console) {
  let answer: RemoteAnswer;
  try {
    answer = { value: await call(backend, JSON.parse(line) as RemoteCall) };
  } catch (error) {
    const { message, code } = error as Error & { code?: string };
    answer = { error: message, ...(code === undefined ? {} : { code }) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
