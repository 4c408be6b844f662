import type { Patch } from "./patch.ts";

/** Where pino's own files lie, as in the bundler's inputs. */
export const PINO_FOLDER = "/pino/lib/";

/** Patches for {@link patchPlugin}. */
export const PINO_PATCHES: readonly Patch[] = [
  {
    // Transports live in worker threads, which nobody here uses and which do not work in the executable; loading what
    // they need (worker_threads and more) is a tenth of the CPU time until the first log line.
    filter: /\/pino\/lib\/transport\.js$/,
    edits: [
      {
        find: "const ThreadStream = require('thread-stream')",
        replace: () =>
          "const ThreadStream = function (options) { return new (require('thread-stream'))(options) }",
      },
    ],
  },
];
