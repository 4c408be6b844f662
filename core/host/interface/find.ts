import type { Families } from "../../lease/lease.ts";
import type { Kernel } from "../../netlink/kernel.ts";
import type { Fault } from "../../observe/fault.ts";
import type { Log } from "../../observe/log.ts";
import { Backoff, sleep } from "../../retry/backoff.ts";
import { type HostDump, isInner, listCandidates } from "./candidates.ts";
import {
  chooseInterface,
  type InterfaceChoice,
  type InterfaceDecision,
  type InterfaceWish,
} from "./choose.ts";

/** How long to wait for an address or a route at boot before giving up, ms. */
const PATIENCE_MS = 30_000;

/** The operator's wishes; `canReach` is an address or empty. */
export type InterfaceWishes = Omit<InterfaceWish, "canReach"> & { readonly canReach: string };

export interface FindInput {
  readonly kernel: Kernel;
  readonly wish: InterfaceWishes;
  readonly families: Families;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/**
 * Finds the external interface, waiting up to 30 s for what is still missing (a device, an address, a route).
 * Logs the candidates and the reason once. Throws Fault `INTERFACE_NONE`.
 */
export async function findInterface(input: FindInput): Promise<InterfaceChoice> {
  const { log, signal } = input;
  const backoff = new Backoff({ first: 200, max: 2_000 });
  const deadline = performance.now() + PATIENCE_MS;
  let told: string | undefined;
  for (;;) {
    const { decision, dump } = await look(input);
    if ("choice" in decision) {
      logChoice(log, decision.choice, dump);
      return decision.choice;
    }
    const { fault }: { fault: Fault } = decision;
    if (performance.now() > deadline || signal.aborted) throw fault;
    if (told !== fault.message) log.warn(`waiting for an interface: ${fault.message}`, { code: fault.code });
    told = fault.message;
    await sleep(backoff.next(), signal);
  }
}

/** One look at the host: what would be chosen now, and from what. */
export async function look({
  kernel,
  wish,
  families,
}: Pick<FindInput, "kernel" | "wish" | "families">): Promise<{
  decision: InterfaceDecision;
  dump: HostDump;
}> {
  const [links, addresses, ipv4, ipv6] = await Promise.all([
    kernel.links(),
    kernel.addresses(),
    families.ipv4 ? kernel.routes(4) : [],
    families.ipv6 ? kernel.routes(6) : [],
  ]);
  const dump: HostDump = { links, addresses, routes: [...ipv4, ...ipv6] };
  const { canReach, ...rest } = wish;
  const route = canReach ? await kernel.routeGet(canReach) : undefined;
  const target = canReach ? { canReach: { target: canReach, ...route } } : {};
  return { dump, decision: chooseInterface(dump, { ...rest, ...target }, families) };
}

function logChoice(log: Log, choice: InterfaceChoice, dump: HostDump): void {
  const others = listCandidates(dump).filter((one) => !one.link.loopback && !isInner(one.link));
  log.info(`external interface ${choice.candidate.link.name}`, {
    reason: choice.reason,
    ...(choice.ipv4 === undefined ? {} : { ipv4: choice.ipv4 }),
    ...(choice.ipv6 === undefined ? {} : { ipv6: choice.ipv6 }),
    mtu: choice.candidate.link.mtu,
    candidates: others.map((one) => one.link.name),
  });
}
