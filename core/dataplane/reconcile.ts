import type { BatchObject, ChangeFailure, Kernel, KernelChange } from "../netlink/kernel.ts";
import { Pace } from "../retry/pace.ts";
import type { ActualState } from "./actual.ts";
import { equalObjects, identityOf } from "./identity.ts";
import { orderChanges } from "./order.ts";
import type { WantedState } from "./wanted.ts";

/** Entries compared between two looks at the clock. */
const STEP = 100;

/** What a reconcile found and did. */
export interface Reconciled {
  /** Objects written because they were missing or different. */
  readonly written: number;
  /** Objects removed because nobody wants them. */
  readonly removed: number;
  /** All of them in the order they were tried; those that failed included. */
  readonly changes: readonly KernelChange[];
  readonly failures: readonly ChangeFailure[];
}

/** What has to change so that the actual state becomes the wanted one. Pure; yields to the event loop in between. */
export async function diffStates(
  wanted: WantedState,
  actual: ActualState,
): Promise<{ put: BatchObject[]; gone: BatchObject[] }> {
  const put: BatchObject[] = [];
  const gone: BatchObject[] = [];
  const { settled, surplus } = sortSurplus(wanted, actual.surplus);
  gone.push(...surplus);
  const pace = new Pace();
  let seen = 0;
  for (const [identity, { object }] of wanted.entries()) {
    const has = actual.objects.get(identity);
    if (!settled.has(identity) && (!has || !equalObjects(has, object))) put.push(object);
    if (++seen % STEP === 0 && pace.isDue(STEP)) await pace.rest();
  }
  for (const [identity, object] of actual.objects) {
    if (settled.has(identity) || wanted.get(identity) === undefined) gone.push(object);
    if (++seen % STEP === 0 && pace.isDue(STEP)) await pace.rest();
  }
  return { put, gone };
}

/** Of several objects of one identity the kernel may list the wanted one second: the first is surplus then. */
function sortSurplus(wanted: WantedState, objects: readonly BatchObject[]) {
  const settled = new Set<string>();
  const surplus: BatchObject[] = [];
  for (const object of objects) {
    const identity = identityOf(object);
    const wish = wanted.get(identity);
    if (wish && equalObjects(object, wish)) settled.add(identity);
    else surplus.push(object);
  }
  return { settled, surplus };
}

/** Compares the actual state with the wanted one and applies the difference in one ordered batch. */
export async function reconcile(
  kernel: Kernel,
  wanted: WantedState,
  actual: ActualState,
): Promise<Reconciled> {
  const { put, gone } = await diffStates(wanted, actual);
  const changes = orderChanges(put, gone);
  const failures = changes.length > 0 ? await kernel.apply(changes) : [];
  return { written: put.length, removed: gone.length, changes, failures };
}
