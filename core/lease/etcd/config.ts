import { Fault, toFault } from "../../observe/fault.ts";
import type { Health } from "../../observe/health.ts";
import { Backoff, sleep } from "../../retry/backoff.ts";
import type { ConfigDocument } from "../store.ts";
import type { EtcdClient } from "./client.ts";
import type { Layout } from "./layout.ts";
import { Outage } from "./outage.ts";
import { runWatch } from "./watch.ts";

const CODE = "CONFIG_MISSING";

/**
 * Waits until the network config can be read. A missing one is a finding, and is watched for: it is read within
 * moments of being written, and from time to time should the watch fail.
 * @throws Fault `CONFIG_ABORTED` on abort, nothing else.
 */
export async function readConfig(
  client: EtcdClient,
  layout: Layout,
  health: Health,
  signal: AbortSignal,
): Promise<ConfigDocument> {
  const outage = new Outage(health, "reading the network config");
  const trouble = new Backoff({ first: 200, max: 2_000 });
  const missing = new Backoff({ first: 1_000, max: 30_000 });
  try {
    while (!signal.aborted) {
      try {
        const { kvs, header } = await client.call("range", { key: Buffer.from(layout.config) }, signal);
        outage.clear();
        trouble.reset();
        const [kv] = kvs;
        if (kv) {
          return {
            text: kv.value.toString(),
            source: `etcd key ${layout.config}`,
            revision: Number(kv.mod_revision),
          };
        }
        raiseMissing(health, layout);
        await waitForKey(client, layout, Number(header.revision) + 1, missing.next(), signal);
      } catch (error) {
        if (signal.aborted) break;
        outage.raise(toFault(error, "ETCD_REQUEST", "etcd: "));
        await sleep(trouble.next(), signal);
      }
    }
    throw new Fault("CONFIG_ABORTED", "stopped while waiting for the network config");
  } finally {
    outage.clear();
    health.clear(CODE);
  }
}

function raiseMissing(health: Health, layout: Layout): void {
  health.raise({
    code: CODE,
    severity: "error",
    title: "no network config",
    text: `etcd has no key ${layout.config}; waiting for it`,
    fix:
      `write it: etcdctl put ${layout.config} '{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan"}}'. ` +
      "If it was written before: the v2 API (ETCDCTL_API=2) has keys of its own that v3 does not see, " +
      "and --etcd-prefix must be the same",
  });
}

/** Returns when the key is written, the watch fails or `ms` have passed, whichever is first. */
async function waitForKey(
  client: EtcdClient,
  layout: Layout,
  from: number,
  ms: number,
  signal: AbortSignal,
): Promise<void> {
  const over = new AbortController();
  const both = AbortSignal.any([signal, over.signal]);
  const timeout = sleep(ms, both);
  const watch = runWatch(
    client,
    { key: Buffer.from(layout.config), from },
    { events: () => over.abort() },
    both,
  ).then(({ end }) => (end === "failed" ? timeout : undefined));
  await Promise.race([timeout, watch]);
  over.abort();
  await watch;
}
