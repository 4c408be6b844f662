import type { DropIn } from "./drop-in.ts";
import { probeModule } from "./embedded.ts";
import type { Problem } from "./entry.ts";
import { neverLoaded } from "./load-error.ts";

/**
 * Imports a drop-in in a worker and returns what went wrong, undefined when nothing did. Ends the worker in any
 * case, even out of an endless loop. This protects from mistakes, not from malice: plugin code runs as root.
 */
export async function tryInWorker(dropIn: DropIn, timeoutMs: number): Promise<Problem | undefined> {
  const worker = new Worker(probeModule());
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    return await new Promise<Problem | undefined>((settle) => {
      timer = setTimeout(() => settle(neverLoaded(dropIn.main, timeoutMs)), timeoutMs);
      worker.onmessage = ({ data }: MessageEvent<Problem | null>) => settle(data ?? undefined);
      worker.onerror = (event) => {
        event.preventDefault();
        settle(uncaught(dropIn.main, event.message));
      };
      worker.addEventListener("close", () => settle(exited(dropIn.main)));
      worker.postMessage(dropIn);
    });
  } finally {
    clearTimeout(timer);
    worker.terminate();
  }
}

/** Bun renders an uncaught error with source excerpt and stack; the line `error: …` is what counts. */
function uncaught(main: string, rendered: string): Problem {
  const line = /^(?:error|\w*Error): .*$/m.exec(rendered)?.[0] ?? rendered.trim().split("\n")[0] ?? "";
  return {
    what: `${main} threw outside of its own code flow while loading: ${line}`,
    fix: "tell its author, or install a version that works",
  };
}

function exited(main: string): Problem {
  return {
    what: `${main} ended its thread (process.exit) while loading`,
    fix: "tell its author: a module must do nothing while it loads",
  };
}
