/** Moves no packets; what it does wrong is said by files in the folder of its option. */
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type ActiveBackend, defineBackend } from "flannel/sdk";
import * as v from "valibot";

const options = v.object({ Folder: v.string() });

/** How often it looks at its folder, ms. */
const LOOK_MS = 50;

export default defineBackend<v.InferOutput<typeof options>>({
  optionNames: ["Folder"],
  options,
  configure: ({ options: { Folder } }): ActiveBackend => {
    const is = (what: string) => existsSync(join(Folder, what));
    const whileIs = async (what: string) => {
      while (is(what)) await Bun.sleep(LOOK_MS);
    };
    let synced = false;
    let timer: ReturnType<typeof setInterval> | undefined;
    return {
      mode: "active",
      stopPatience: 10_000,
      async prepare(host) {
        let seen = "";
        timer = setInterval(() => {
          if (is("throw-in-timer")) {
            rmSync(join(Folder, "throw-in-timer"));
            throw new Error("nobody catches this");
          }
          const now = readdirSync(Folder).join();
          if (now !== seen) host.wake();
          seen = now;
        }, LOOK_MS);
        return { backendType: "unruly" };
      },
      attach: async (_, { external }) => ({ mtu: external.mtu }),
      async sync() {
        if (!synced) await whileIs("first-sync-hangs");
        synced = true;
        if (is("sync-fails")) throw new Error("not today");
        return { failed: [] };
      },
      async health() {
        if (!is("unwell")) return [];
        return [{ code: "UNRULY_UNWELL", severity: "error", title: "t", text: "not well", fix: "none" }];
      },
      async stop() {
        await whileIs("stop-hangs");
        clearInterval(timer);
      },
      cleanup: async () => [],
    };
  },
});
