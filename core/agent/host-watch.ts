import type { InterfaceChoice } from "../host/interface/choose.ts";
import { type InterfaceWishes, look } from "../host/interface/find.ts";
import { isDowngrade, isUpgrade, stillHolds } from "../host/interface/keep.ts";
import type { Families } from "../lease/lease.ts";
import type { Kernel, Notice } from "../netlink/kernel.ts";
import type { Health } from "../observe/health.ts";
import type { Pulse } from "../observe/loops.ts";
import { sleep } from "../retry/backoff.ts";

export interface HostWatchInput {
  readonly kernel: Kernel;
  readonly wish: InterfaceWishes;
  readonly health: Health;
  readonly pulse: Pulse;
  readonly signal: AbortSignal;
  /** The interface in use, and the families it has to carry. */
  readonly current: () => { readonly choice: InterfaceChoice; readonly families: Families };
  /** The choice does not hold any more and this one takes its place. */
  readonly changed: (choice: InterfaceChoice) => Promise<void>;
}

/** An address that is back within this time was never away (a flap, a DHCP renewal), ms. */
const SETTLE_MS = 1_500;
/** How often to look without a notice, ms. */
const LOOK_EVERY_MS = 60_000;
/** How often to look while there is no usable interface, ms. */
const LOOK_WHILE_LOST_MS = 5_000;

/** Follows the host: when interface or address of the choice are gone for good, makes a new choice. Until aborted. */
export async function followHost(input: HostWatchInput): Promise<void> {
  const { kernel, pulse, signal } = input;
  let wake = new AbortController();
  const listen = async () => {
    for await (const batch of kernel.notices(signal)) {
      if (batch.some(concernsInterfaces)) wake.abort();
    }
  };
  const act = async () => {
    let lost = false;
    while (!signal.aborted) {
      pulse(LOOK_EVERY_MS);
      await sleep(lost ? LOOK_WHILE_LOST_MS : LOOK_EVERY_MS, AbortSignal.any([signal, wake.signal]));
      if (signal.aborted) return;
      if (wake.signal.aborted) {
        wake = new AbortController();
        await sleep(SETTLE_MS, signal);
      }
      if (!signal.aborted) lost = await reconsider(input);
    }
  };
  await Promise.race([listen(), act()]);
}

function concernsInterfaces(notice: Notice): boolean {
  if (notice.kind === "address" || notice.kind === "link") return true;
  return notice.kind === "route" && (notice.route.dst === "0.0.0.0/0" || notice.route.dst === "::/0");
}

/** Looks once; returns whether there is no usable interface. */
async function reconsider({
  kernel,
  wish,
  health,
  pulse,
  current,
  changed,
}: HostWatchInput): Promise<boolean> {
  const { choice, families } = current();
  const { decision, dump } = await look({ kernel, wish, families });
  const next = "choice" in decision ? decision.choice : undefined;
  if (stillHolds(choice, dump) && !(next && isUpgrade(choice, next))) {
    health.clear("INTERFACE_LOST");
    return false;
  }
  if (next && !isDowngrade(choice, next)) {
    health.clear("INTERFACE_LOST");
    // The new address is tried until it works.
    pulse(Number.POSITIVE_INFINITY);
    await changed(next);
    return false;
  }
  health.raise({
    code: "INTERFACE_LOST",
    severity: "error",
    title: "the interface to other hosts is lost",
    text:
      `${choice.candidate.link.name} ${choice.ipv4 ?? ""} ${choice.ipv6 ?? ""}`.trim() +
      `: ${"fault" in decision ? decision.fault.message : "only a link-local address is left"}`,
    fix:
      "fault" in decision
        ? decision.fault.hint
        : "It is followed as soon as the interface has an address again.",
  });
  return true;
}
