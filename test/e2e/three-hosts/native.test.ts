/** Three hosts, of which one comes and goes, with each backend that this machine's kernel has; see scenario.ts. */
import { afterAll, beforeAll, describe, test } from "bun:test";
import { Cluster } from "../../lab/cluster.ts";
import { NATIVE } from "./backends.ts";
import { Overlay } from "./overlay.ts";
import { SCENARIO } from "./scenario.ts";

const TIMEOUT = 90_000;

describe.each(NATIVE)("$name, $family", (backend) => {
  const stack = new AsyncDisposableStack();
  let overlay: Overlay;

  beforeAll(async () => {
    const { family } = backend;
    const cluster = stack.use(await Cluster.create({ hosts: 3, family, config: null }));
    overlay = stack.use(await Overlay.create(cluster, backend));
  }, TIMEOUT);
  afterAll(() => stack.disposeAsync(), TIMEOUT);

  for (const [name, run] of SCENARIO) test(name, () => run(overlay), TIMEOUT);
});
