import type { Host } from "flannel/sdk";

/** What a host offers a backend that starts nothing on it. */
export const NO_PROCESSES: Pick<Host, "run" | "findLasting" | "keepRunning"> = {
  run: () => Promise.reject(new Error("no commands here")),
  findLasting: () => [],
  keepRunning: () => {
    throw new Error("no processes here");
  },
};
