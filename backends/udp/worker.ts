/**
 * The thread that moves packets. While the loop runs it hears no messages: whoever posts one counts it in shared
 * memory and wakes the loop, and the loop does not begin again before all that were counted are handled.
 */
import { ForwardingLoop } from "./datapath/loop.ts";
import type { FromWorker, ToWorker } from "./datapath/messages.ts";

declare const self: Worker;

// The daemon is compiled for doing a little of everything; here a few functions run all the time.
Bun.unsafe.setJITPolicy(1);

let loop: ForwardingLoop | undefined;
let posted = new Int32Array(new SharedArrayBuffer(4));
let handled = 0;
let scheduled = false;

self.onmessage = ({ data }: MessageEvent<ToWorker>) => {
  handled += 1;
  try {
    if (data.kind === "start") {
      posted = new Int32Array(data.posted);
      loop = new ForwardingLoop(data);
    } else if (data.kind === "peers") loop?.setPeers(data);
    else loop = undefined;
    tell({ kind: "done", of: data.kind });
  } catch (error) {
    fail(error);
  }
  schedule();
};

function schedule(): void {
  if (scheduled || !loop || Atomics.load(posted, 0) > handled) return;
  scheduled = true;
  setImmediate(forward);
}

function forward(): void {
  scheduled = false;
  try {
    if (Atomics.load(posted, 0) <= handled) loop?.run();
  } catch (error) {
    fail(error);
  }
  schedule();
}

function fail(error: unknown): void {
  loop = undefined;
  tell({ kind: "failed", text: error instanceof Error ? error.message : String(error) });
}

function tell(message: FromWorker): void {
  self.postMessage(message);
}
