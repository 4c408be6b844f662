/** Worker that imports one drop-in and tells what came of it; ended from outside when it never does. */
import { type DropIn, serveDropIn } from "./drop-in.ts";
import type { Problem } from "./entry.ts";
import { describeLoadError } from "./load-error.ts";

declare const self: Worker;

self.onmessage = async ({ data: dropIn }: MessageEvent<DropIn>) => {
  let problem: Problem | undefined;
  try {
    serveDropIn(dropIn);
    await import(dropIn.main);
  } catch (error) {
    problem = describeLoadError(error, dropIn.folder);
  }
  self.postMessage(problem ?? null);
};
