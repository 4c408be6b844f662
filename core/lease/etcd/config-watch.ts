import { toFault } from "../../observe/fault.ts";
import type { Health } from "../../observe/health.ts";
import { Backoff, sleep } from "../../retry/backoff.ts";
import type { ConfigDocument } from "../store.ts";
import type { EtcdClient } from "./client.ts";
import type { Layout } from "./layout.ts";
import { Outage } from "./outage.ts";
import { runWatch } from "./watch.ts";

const GONE = "CONFIG_GONE";

/** Longest time a lost change of the config stays unseen while the watch is down, ms. */
const RETRY = { first: 500, max: 30_000 };

/**
 * Each later version of the network config, until aborted. A deleted config is a finding, not a change: the network
 * goes on as it is. Several writes in a row may give only the last one.
 */
export async function* watchConfig(
  client: EtcdClient,
  layout: Layout,
  health: Health,
  known: ConfigDocument,
  signal: AbortSignal,
): AsyncGenerator<ConfigDocument> {
  const outage = new Outage(health, "watching the network config");
  const backoff = new Backoff(RETRY);
  let revision = known.revision;
  try {
    while (!signal.aborted) {
      try {
        const { kvs, header } = await client.call("range", { key: Buffer.from(layout.config) }, signal);
        outage.clear();
        const [kv] = kvs;
        if (!kv) health.raise(goneFinding(layout));
        else {
          health.clear(GONE);
          if (Number(kv.mod_revision) !== revision) {
            revision = Number(kv.mod_revision);
            yield { text: kv.value.toString(), source: known.source, revision };
          }
        }
        await nextEvent(client, layout, Number(header.revision) + 1, backoff, signal);
      } catch (error) {
        if (signal.aborted) return;
        outage.raise(toFault(error, "ETCD_REQUEST", "etcd: "));
        await sleep(backoff.next(), signal);
      }
    }
  } finally {
    outage.clear();
  }
}

/** Returns when the key was written or deleted, or, after a pause, when the watch failed. */
async function nextEvent(
  client: EtcdClient,
  layout: Layout,
  from: number,
  backoff: Backoff,
  signal: AbortSignal,
): Promise<void> {
  const over = new AbortController();
  const { end } = await runWatch(
    client,
    { key: Buffer.from(layout.config), from },
    { events: () => over.abort() },
    AbortSignal.any([signal, over.signal]),
  );
  if (over.signal.aborted) backoff.reset();
  else if (end === "failed") await sleep(backoff.next(), signal);
}

function goneFinding(layout: Layout) {
  return {
    code: GONE,
    severity: "warning",
    title: "the network config was deleted",
    text: `etcd has no key ${layout.config} any more; this node goes on with the config it has`,
    fix: "Write it again: a node that starts now waits for it.",
  } as const;
}
