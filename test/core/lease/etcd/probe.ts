import { type EtcdClient, type EtcdOptions, openEtcd } from "../../../../core/lease/etcd/client.ts";
import { Fault } from "../../../../core/observe/fault.ts";
import { PREFIX, RecordingLog } from "./node.ts";

/** A client that is closed at the end of the scope. */
export function open(
  options: Partial<EtcdOptions> & { endpoints: readonly string[] },
): EtcdClient & Disposable {
  const client = openEtcd({ log: new RecordingLog(), ...options });
  return Object.assign(client, { [Symbol.dispose]: () => client.close() });
}

/** The fault a call ends with, or "ok". */
export async function outcome(client: EtcdClient): Promise<Fault | "ok"> {
  try {
    await client.call("range", { key: Buffer.from(`${PREFIX}/config`) });
    return "ok";
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
}

/** What a promise rejects with. Bun's `rejects` blocks the event loop that the answer has to come by. */
export function refusalOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}
