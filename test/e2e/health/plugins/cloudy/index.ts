/** A cloud with one table, which is in here; what goes wrong is said by a file in the folder of its option. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type CloudBackend,
  CloudError,
  type CloudErrorKind,
  type CloudRoute,
  defineBackend,
} from "flannel/sdk";
import * as v from "valibot";

const options = v.object({ Folder: v.string() });

const SELF = "this-node";

export default defineBackend<v.InferOutput<typeof options>>({
  optionNames: ["Folder"],
  options,
  configure: ({ options: { Folder } }): CloudBackend => {
    const file = join(Folder, "fault");
    /** A kind of error, or one of the words below; empty when all is well. */
    const fault = () => (existsSync(file) ? readFileSync(file, "utf8") : "");
    const routes = new Map<string, CloudRoute>();
    let own = "";
    let strays = 0;
    return {
      mode: "cloud",
      interval: 500,
      publish: () => ({ backendType: "cloudy" }),
      discover: async () => ({ summary: "in the clouds", self: SELF }),
      async read() {
        const word = fault();
        while (word !== "" && fault() === "hangs") await Bun.sleep(50);
        if (word === "taken") {
          const route = { dst: own, target: "somebody", kind: "foreign", state: "active" } as const;
          return { tables: [{ id: "table", routes: [route] }] };
        }
        if (word === "forgets") return { tables: [{ id: "table", routes: [] }] };
        const kept = [...routes.values()];
        if (word === "strays") {
          strays = (strays % 100) + 1;
          kept.push({ dst: `10.244.${strays}.0/24`, target: SELF, kind: "node", state: "active" });
        } else if (word !== "" && word !== "hangs") {
          throw new CloudError(word as CloudErrorKind, "cloudy:Read", "it does not work", "wait");
        }
        return { tables: [{ id: "table", routes: kept }] };
      },
      async apply(change) {
        if (change.action === "set") return;
        if (change.action === "delete") {
          routes.delete(change.dst);
          return;
        }
        own = change.dst;
        routes.set(own, { dst: own, target: SELF, kind: "node", state: "active" });
      },
    };
  },
});
