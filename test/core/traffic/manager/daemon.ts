import { Health } from "../../../../core/observe/health.ts";
import { type Log, silentLog } from "../../../../core/observe/log.ts";
import type { TrafficHost } from "../../../../core/traffic/host.ts";
import type { TrafficIntent } from "../../../../core/traffic/intent.ts";
import { TrafficManager } from "../../../../core/traffic/manager.ts";
import { INTENT, type Machine } from "../machine.ts";

const RESYNC = 1_000;
const { ipv6: _, ...only4 } = INTENT;
export const ONLY_4: TrafficIntent = only4;
export const NFT: TrafficIntent = { ...INTENT, kind: "nftables" };
/** No iptables-legacy, so that the variant is clear. */
export const NO_LEGACY = /legacy/;
export const ONLY_LEGACY = /iptables-nft|ip6tables-nft|^ip6?tables(-save|-restore)?$/;

/** A running manager; `lines` is its log. */
export function start(
  host: TrafficHost,
  options: { resync?: number; previous?: { ipv4: boolean; ipv6: boolean } } = {},
) {
  const lines: string[] = [];
  const note = (message: string) => void lines.push(message);
  const log: Log = { ...silentLog, info: note, warn: note, error: note, child: () => log };
  const health = new Health(log);
  const manager = new TrafficManager({ host, health, log, resync: RESYNC, ...options });
  const stop = new AbortController();
  let running: Promise<void> | undefined;
  return {
    manager,
    health,
    lines,
    run: () => {
      running = manager.run(stop.signal);
    },
    codes: () => health.list().map(({ code, severity }) => `${severity} ${code}`),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}

/** A manager on the same machine that misses other tools. */
export async function openOnSame(machine: Machine, missing: RegExp) {
  return start({
    ...machine.host,
    has: (command) => !missing.test(command) && machine.host.has(command),
  });
}
