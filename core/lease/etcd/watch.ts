import type { IKeyValue, IWatchResponse } from "etcd3";
import type { Fault } from "../../observe/fault.ts";
import { toFault } from "../../observe/fault.ts";
import type { EtcdClient, OpenStream } from "./client.ts";
import { classify, type Failure } from "./failure.ts";

/** What to watch: one key, or all keys in `[key, rangeEnd)`, from a revision on (0 = from now). */
export interface WatchRequest {
  readonly key: Buffer;
  readonly rangeEnd?: Buffer;
  readonly from: number;
}

/** What a watch tells while it lives. Handlers run inside the reader and must be quick. */
export interface WatchHandlers {
  /** etcd accepted the watch; `revision` is the store's at that moment, the backlog has not come yet. */
  created?(facts: { readonly revision: number; readonly clusterId: string }): void;
  /** Everything up to and including `revision` has been told. */
  events(events: readonly WatchEvent[], revision: number): void;
  /** Nothing happened up to `revision`. */
  progress?(revision: number): void;
}

export interface WatchEvent {
  readonly type: "put" | "delete";
  readonly kv: IKeyValue;
}

/** Why a watch ended. */
export type WatchEnd =
  | { readonly end: "aborted" }
  /** The revision asked for is gone: list anew. */
  | { readonly end: "compacted" }
  | { readonly end: "failed"; readonly fault: Fault };

/** etcd answers a new watch at once; a member that does not is passed over. */
const CREATE_TIMEOUT_MS = 3_000;

/**
 * Runs one watch until it ends, whatever the reason: abort, compaction, a refusal (etcd answers some with `created`
 * and `canceled` while the stream stays open), a lost stream. Never rejects, never reconnects: going on is the caller's
 * business, from the last revision told.
 */
export async function runWatch(
  client: EtcdClient,
  request: WatchRequest,
  handlers: WatchHandlers,
  signal: AbortSignal,
): Promise<WatchEnd> {
  let opened: OpenStream<"watch">;
  try {
    opened = await client.openWatch();
  } catch (error) {
    const fault = toFault(error, "ETCD_REQUEST", "etcd watch: ");
    return signal.aborted ? { end: "aborted" } : { end: "failed", fault };
  }
  const { stream } = opened;
  return await new Promise<WatchEnd>((resolve) => {
    let over = false;
    const finish = (end: WatchEnd) => {
      over = true;
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      resolve(end);
      stream.cancel();
    };
    const fail = (failure: Failure) => {
      if (!over) finish({ end: "failed", fault: client.fail(opened, failure) });
    };
    const abort = () => {
      if (!over) finish({ end: "aborted" });
    };
    const timer = setTimeout(() => fail({ kind: "timeout", reason: "no answer in time" }), CREATE_TIMEOUT_MS);
    stream.on("data", (response) => {
      if (over) return;
      if (response.created && !response.canceled) clearTimeout(timer);
      const ended = read(response, handlers);
      if (ended === "compacted") finish({ end: "compacted" });
      else if (ended) fail(ended);
    });
    stream.on("error", (error) => {
      const failure = classify(error);
      fail(
        failure.kind === "cancelled" ? { kind: "unreachable", reason: "the connection was lost" } : failure,
      );
    });
    stream.on("end", () => fail({ kind: "unreachable", reason: "the watch was ended by etcd" }));
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { once: true });
    stream.write({
      create_request: {
        key: request.key,
        ...(request.rangeEnd ? { range_end: request.rangeEnd } : {}),
        ...(request.from > 0 ? { start_revision: request.from } : {}),
        progress_notify: true,
      },
    });
  });
}

/**
 * Hands one response on. The header's revision may only be believed when a response has no events and is no answer
 * to the creation: while a backlog is sent it runs ahead of the events still to come.
 */
function read(response: IWatchResponse, handlers: WatchHandlers): "compacted" | Failure | undefined {
  if (Number(response.compact_revision) > 0) return "compacted";
  if (response.canceled) {
    const reason = response.cancel_reason || "etcd cancelled the watch without a reason";
    const failure = classify(new Error(reason));
    // etcd 3.4 words a refused token in several ways, down to a bare "rpc error: code = Unauthenticated".
    if (failure.kind === "other" && /unauthenticated/i.test(reason))
      return { kind: "token", reason: failure.reason };
    return failure.kind === "compacted" ? "compacted" : failure;
  }
  const revision = Number(response.header.revision);
  if (response.created) {
    handlers.created?.({ revision, clusterId: response.header.cluster_id });
    return undefined;
  }
  const last = response.events.at(-1);
  if (!last) {
    handlers.progress?.(revision);
    return undefined;
  }
  const events = response.events.map(
    ({ type, kv }) => ({ type: isDelete(type) ? "delete" : "put", kv }) as const,
  );
  handlers.events(events, Number(last.kv.mod_revision));
  return undefined;
}

/** etcd3 types the enum by its own names; the wire has `PUT` and `DELETE`. */
function isDelete(type: string): boolean {
  return type.toUpperCase() === "DELETE";
}
