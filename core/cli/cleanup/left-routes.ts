import { existsSync } from "node:fs";
import { forgetLeftRoutes, leftRoutesFile, readLeftRoutes } from "../../dataplane/cloud/left-routes.ts";
import type { CleanupPart } from "./parts.ts";

/** The routes in the cloud, and with them the file that says that they are there. */
export function withNote(part: CleanupPart, subnetFile: string): CleanupPart {
  const file = leftRoutesFile(subnetFile);
  return {
    kind: part.kind,
    look: async () => [...(await part.look()), ...(existsSync(file) ? [`file ${file}`] : [])],
    async remove() {
      await part.remove();
      forgetLeftRoutes(file);
    },
  };
}

/**
 * Routes in a cloud whose backend is not the one that is asked now: nobody knows the options any more with which they
 * could be removed.
 */
export function findLeftRoutes(subnetFile: string, asked: string | undefined): readonly string[] {
  const file = leftRoutesFile(subnetFile);
  const left = readLeftRoutes(file);
  if (left === undefined || left.backend === asked) return [];
  const { backend, place, routes } = left;
  return [`routes of ${backend} at ${place}: ${routes.join(", ")}; remove them in its console, then ${file}`];
}
