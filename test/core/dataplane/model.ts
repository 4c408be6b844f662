import fc from "fast-check";
import type { ActualState } from "../../../core/dataplane/actual.ts";
import { equalObjects, identityOf } from "../../../core/dataplane/identity.ts";
import type { BatchObject, KernelChange } from "../../../core/netlink/kernel.ts";
import type { RouteState } from "../../../core/netlink/objects.ts";

/** A device name, an address and so on out of a few, so that random objects meet. */
const dev = fc.constantFrom("flannel.1", "eth0");
const mac = fc.constantFrom("02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:03");
const dst = fc.constantFrom("10.5.1.0/24", "10.5.2.0/24", "10.5.3.0/24", "fd00:5:1::/64");
const ip = fc.constantFrom("192.0.2.1", "192.0.2.2", "192.0.2.3");
const nexthopId = fc.constantFrom(1, 2, 3);
const metric = fc.constantFrom(undefined, 0, 50);

function optional<T>(key: string, value: T | undefined): object {
  return value === undefined ? {} : { [key]: value };
}

/** Any object that can be written in a batch, out of few identities. */
export const anyObject: fc.Arbitrary<BatchObject> = fc.oneof(
  fc
    .record({ dev, address: fc.constantFrom("10.5.0.0/32", "10.5.9.0/32") })
    .map((object): BatchObject => ({ kind: "address", ...object })),
  fc.record({ dev, ip, mac }).map((object): BatchObject => ({ kind: "neighbour", ...object })),
  fc.record({ dev, mac, dst: ip }).map((object): BatchObject => ({ kind: "fdb", ...object })),
  fc.record({ id: nexthopId, dev, via: ip }).map((object): BatchObject => ({ kind: "nexthop", ...object })),
  fc.record({ dst, nexthop: nexthopId, metric }).map(
    ({ metric, ...object }): BatchObject => ({
      kind: "nexthop-route",
      ...object,
      ...optional("metric", metric),
    }),
  ),
  fc.record({ dst, dev, via: fc.option(ip, { nil: undefined }), metric, onlink: fc.boolean() }).map(
    ({ metric, via, onlink, ...object }): BatchObject => ({
      kind: "route",
      ...object,
      ...optional("via", via),
      ...optional("metric", metric),
      ...(onlink ? { onlink } : {}),
    }),
  ),
);

/** Objects of which no two have one identity. */
export const distinctObjects = fc.uniqueArray(anyObject, { selector: identityOf, maxLength: 12 });

/** Objects as a kernel might hold them: by identity. */
export function indexed(objects: readonly BatchObject[]): Map<string, BatchObject> {
  return new Map(objects.map((object) => [identityOf(object), object]));
}

/** The kernel as a dump would show it. */
export function actualOf(objects: readonly BatchObject[], surplus: readonly BatchObject[] = []): ActualState {
  return { objects: indexed(objects), surplus, foreignNexthops: new Set() };
}

/**
 * What the kernel holds after each change, and what it would say no to: a delete must name an object that is there
 * as it is there, a nexthop a route points to must not go before the route.
 */
export class ModelKernel {
  readonly objects: Map<string, BatchObject>;

  constructor(objects: readonly BatchObject[] = []) {
    this.objects = indexed(objects);
  }

  apply(changes: readonly KernelChange[]): void {
    for (const { action, object } of changes) {
      const identity = identityOf(object);
      if (action === "put") {
        this.objects.set(identity, object);
        continue;
      }
      const held = this.objects.get(identity);
      if (!held || !equalObjects(held, object))
        throw new Error(`deletes what is not there: ${JSON.stringify(object)}`);
      if (object.kind === "nexthop" && this.#isUsed(object.id))
        throw new Error(`nexthop ${object.id} is still in use`);
      this.objects.delete(identity);
    }
  }

  /** All objects, sorted, for comparison. */
  list(): readonly BatchObject[] {
    return sorted(this.objects.values());
  }

  #isUsed(id: number): boolean {
    return [...this.objects.values()].some(
      (object) => object.kind === "nexthop-route" && object.nexthop === id,
    );
  }
}

/** Objects without what does not count (a metric of 0, `onlink: false`), in the order of their identities. */
export function sorted(objects: Iterable<BatchObject>): readonly BatchObject[] {
  return [...objects]
    .map(normalise)
    .sort((a, b) => (identityOf(a) < identityOf(b) ? -1 : identityOf(a) > identityOf(b) ? 1 : 0));
}

function normalise(object: BatchObject): BatchObject {
  if (object.kind === "route" || object.kind === "nexthop-route") {
    const { metric, ...rest } = object;
    return metric ? object : rest;
  }
  return object;
}

/** A main-table route as a dump shows it; ours unless said otherwise. */
export function routeState(state: Partial<RouteState>): RouteState {
  return {
    family: 4,
    dst: "10.5.1.0/24",
    onlink: false,
    metric: 0,
    protocol: 140,
    type: 1,
    scope: 0,
    dead: false,
    ...state,
  };
}
