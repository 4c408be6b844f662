/**
 * `bun join-probe.ts ENDPOINT COUNT`, run inside a host's namespace: writes COUNT leases one after the other, waits
 * for the route to each, deletes them again, and prints the milliseconds of each as JSON. Writer and observer are one
 * process, so that there is one clock.
 */
import { Etcd3 } from "etcd3";
import { RtnetlinkKernel } from "../../core/netlink/rtnetlink.ts";
import { PREFIX } from "../lab/cluster.ts";
import { joiner } from "./leases.ts";

/** Longest wait for one route, ms. */
const PATIENCE_MS = 10_000;
/** Pause between two joins, ms, drawn at random so that nothing falls into step. */
const PAUSE = { least: 5, span: 30 };

const [endpoint = "", count = "0"] = process.argv.slice(2);
const client = new Etcd3({ hosts: endpoint });
const kernel = new RtnetlinkKernel();
const ending = new AbortController();
const awaited = new Map<string, () => void>();
const listening = listen();
const latencies: number[] = [];

for (let n = 0; n < Number(count); n++) latencies.push(await join(n));
for (let n = 0; n < Number(count); n++) await client.delete().key(`${PREFIX}/subnets/${joiner(n).key}`);
ending.abort();
await listening;
kernel.close();
client.close();
console.log(JSON.stringify(latencies));
process.exit(0);

async function listen(): Promise<void> {
  for await (const notices of kernel.notices(ending.signal)) {
    for (const notice of notices) {
      if (notice.kind === "route" && notice.action === "put") awaited.get(notice.route.dst)?.();
    }
  }
}

/** Milliseconds from the write's being sent to the notice of the route. */
async function join(n: number): Promise<number> {
  const { subnet, key, value } = joiner(n);
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const timer = setTimeout(
    () => reject(new Error(`no route to ${subnet} within ${PATIENCE_MS} ms`)),
    PATIENCE_MS,
  );
  awaited.set(subnet, () => resolve(performance.now()));
  const sent = performance.now();
  await client.put(`${PREFIX}/subnets/${key}`).value(value);
  const seen = await promise;
  clearTimeout(timer);
  awaited.delete(subnet);
  await Bun.sleep(PAUSE.least + Math.random() * PAUSE.span);
  return seen - sent;
}
