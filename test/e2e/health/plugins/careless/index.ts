/** Plans nothing, or nonsense while a file of that name is in the folder of its option. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type DeclarativeBackend, defineBackend } from "flannel/sdk";
import * as v from "valibot";

const options = v.object({ Folder: v.string() });

export default defineBackend<v.InferOutput<typeof options>>({
  optionNames: ["Folder"],
  options,
  configure: ({ options: { Folder } }): DeclarativeBackend => ({
    mode: "declarative",
    links: () => [],
    publish: () => ({ backendType: "careless" }),
    own: () => [],
    mtu: (facts) => facts.external.mtu,
    peer: () => ({ objects: existsSync(join(Folder, "plan-nonsense")) ? [null as never] : [] }),
  }),
});
