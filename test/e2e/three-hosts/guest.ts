import { afterAll, beforeAll, describe } from "bun:test";
import { Cluster } from "../../lab/cluster.ts";
import { IN_VM, type VmTests } from "../../lab/vm/vm.ts";
import type { BackendCase } from "./backends.ts";
import { Overlay } from "./overlay.ts";
import { SCENARIO } from "./scenario.ts";

/** Registers the scenario for a guest, with backends that follow one another on the same hosts. */
export function testInGuest(vm: VmTests, backends: readonly BackendCase[]): void {
  let cluster: Cluster;
  if (IN_VM) {
    beforeAll(async () => {
      cluster = await Cluster.create({ hosts: 3, config: null });
    });
    afterAll(() => cluster[Symbol.asyncDispose]());
  }

  describe.each(backends)("$name", (backend) => {
    let overlay: Overlay;
    if (IN_VM) {
      beforeAll(async () => {
        overlay = await Overlay.create(cluster, backend);
      });
      afterAll(() => overlay[Symbol.asyncDispose]());
    }
    for (const [name, run] of SCENARIO) vm.test(`${backend.name}: ${name}`, () => run(overlay));
  });
}
