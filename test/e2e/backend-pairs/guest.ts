import { afterAll, beforeAll } from "bun:test";
import { IN_VM, type VmTests } from "../../lab/vm/vm.ts";
import { type Step, walkAll, withSignals } from "./steps.ts";
import type { Type } from "./traces.ts";
import { BackendWalk } from "./walk.ts";

/** Registers one walk through all these changes, from that backend on, for a guest. */
export function walkInGuest(vm: VmTests, start: Type, ways: readonly Step[]): void {
  let walk: BackendWalk;
  if (IN_VM) {
    beforeAll(async () => {
      walk = await BackendWalk.create({ mover: "kernel" });
      await walk.begin(start);
    });
    afterAll(() => walk?.[Symbol.asyncDispose]());
  }
  for (const [from, to, signal] of withSignals(walkAll(start, ways)))
    vm.test(`${from} to ${to} (${signal})`, () => walk.change(to, signal));
}
