import { type DeclarativeBackend, defineBackend } from "flannel/sdk";
import * as v from "valibot";

/** Leases without a data path: the node gets its subnet and publishes its address, nothing is programmed. */
export default defineBackend({
  optionNames: [],
  options: v.object({}),
  configure: (): DeclarativeBackend => ({
    mode: "declarative",
    ignoresPeers: true,
    links: () => [],
    publish: () => ({ backendType: "" }),
    mtu: (facts) => facts.external.mtu,
    own: () => [],
    peer: () => ({ objects: [] }),
  }),
});
