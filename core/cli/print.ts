import { writeSync } from "node:fs";

/** Time between two tries to write where the reader is slow and the descriptor does not wait by itself, ms. */
const PAUSE_MS = 5;

/**
 * Writes all of a text to standard output before it returns. Exiting right after a stream's `write` loses what does
 * not fit into a pipe at once (64 KiB on Linux). A reader that went away (`| head`) is no error.
 */
export function print(text: string): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(1, bytes, at);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "EPIPE") return;
      if (code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
    }
  }
}
