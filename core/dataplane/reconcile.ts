import type { BatchObject, ChangeFailure, Kernel } from "../netlink/kernel.ts";
import { type ActualState, type OwnedScope, readActual } from "./actual.ts";
import { equalObjects, identityOf } from "./identity.ts";
import { orderChanges } from "./order.ts";
import type { WantedState } from "./wanted.ts";

/** Entries compared between two yields to the event loop. */
const SLICE = 4_000;

/** What a reconcile found and did. */
export interface Reconciled {
  /** Objects written because they were missing or different, by kind. */
  readonly written: number;
  /** Objects removed because nobody wants them. */
  readonly removed: number;
  readonly failures: readonly ChangeFailure[];
  readonly foreignNexthops: ReadonlySet<number>;
}

/** What has to change so that the actual state becomes the wanted one. Pure; yields to the event loop in between. */
export async function diffStates(
  wanted: WantedState,
  actual: ActualState,
): Promise<{ put: BatchObject[]; gone: BatchObject[] }> {
  const put: BatchObject[] = [];
  const gone: BatchObject[] = [];
  let seen = 0;
  for (const [identity, object] of wanted.entries()) {
    const has = actual.objects.get(identity);
    if (!has || !equalObjects(has, object)) put.push(object);
    if (++seen % SLICE === 0) await yieldToLoop();
  }
  for (const [identity, object] of actual.objects) {
    if (wanted.get(identity) === undefined) gone.push(object);
    if (++seen % SLICE === 0) await yieldToLoop();
  }
  return { put, gone };
}

/** Reads the actual state, compares it with the wanted one and applies the difference in one ordered batch. */
export async function reconcile(kernel: Kernel, wanted: WantedState, scope: OwnedScope): Promise<Reconciled> {
  const actual = await readActual(kernel, scope);
  const { put, gone } = await diffStates(wanted, actual);
  const changes = orderChanges(put, gone);
  const failures = changes.length > 0 ? await kernel.apply(changes) : [];
  return { written: put.length, removed: gone.length, failures, foreignNexthops: actual.foreignNexthops };
}

/** Identities a failed batch leaves unwritten. */
export function failedIdentities(failures: readonly ChangeFailure[]): readonly string[] {
  return failures.map((failure) => identityOf(failure.change.object));
}

/** Lets timers, signals and sockets have their turn. */
export function yieldToLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
