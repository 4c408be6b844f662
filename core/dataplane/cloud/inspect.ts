import type { CloudBackend } from "../../../plugins/sdk/cloud.ts";
import type { HostFacts } from "../../../plugins/sdk/facts.ts";
import type { Log } from "../../observe/log.ts";
import type { LeaseRange } from "./plan.ts";
import { CloudTables } from "./tables.ts";

/** A cloud backend as a command looks at it. */
export interface CloudSubject {
  readonly backend: CloudBackend;
  readonly ranges: readonly LeaseRange[];
  /** The host, with the interface whose address the instance has. */
  readonly facts: HostFacts;
  /** `timeouts.sync` of the plugin's manifest, ms. */
  readonly timeout: number;
  readonly log: Log;
}

/** The tables of a cloud, for one look by a command. */
export function openTables({ backend, log, timeout }: CloudSubject): CloudTables {
  const { signal } = new AbortController();
  return new CloudTables({ backend, host: { log, signal }, log, timeout });
}
