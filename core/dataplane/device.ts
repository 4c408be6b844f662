import type { Kernel } from "../netlink/kernel.ts";
import type { IpipAttrs, LinkState, VxlanAttrs, WantedLink } from "../netlink/objects.ts";
import { Fault } from "../observe/fault.ts";
import type { Log } from "../observe/log.ts";
import { looksLikeOurs } from "./device-name.ts";

/** What to do about a device a backend wants. */
export type DevicePlan =
  | { readonly action: "create" }
  | { readonly action: "recreate"; readonly differences: readonly string[]; readonly mac?: string }
  | { readonly action: "adopt"; readonly mtu?: number; readonly raise: boolean }
  /** A stranger of another kind has the name. */
  | { readonly action: "refuse"; readonly kind: string };

/**
 * Decides by upstream's rule: a device is adopted, with its MAC, unless kind, VNI, underlay, local address, group,
 * port (each only where both sides say), l2miss, GBP or learning differ; of ipip the ends. MTU and up are set on an adopted
 * one; one that is made anew gets its MAC back, since peers know it. The name `flannel.ipip` on a device of another
 * kind is refused, as upstream refuses it.
 *
 * @param formerMtu the MTU wanted at the last look: a device that has it got it from us.
 */
export function planDevice(
  wanted: WantedLink,
  actual: LinkState | undefined,
  formerMtu?: number,
): DevicePlan {
  if (!actual) return { action: "create" };
  if (wanted.type !== "vxlan" && actual.type !== wanted.type) {
    return { action: "refuse", kind: actual.type ?? "physical" };
  }
  const differences = compareDevice(wanted, actual);
  if (differences.length > 0) {
    const mac = wanted.type === "vxlan" && actual.type === "vxlan" ? actual.mac : undefined;
    return { action: "recreate", differences, ...(mac === undefined ? {} : { mac }) };
  }
  return {
    action: "adopt",
    ...(keepsMtu(wanted, actual, formerMtu) ? {} : { mtu: wanted.mtu }),
    raise: !actual.up,
  };
}

/** The lower MTU of an ipip device is the operator's, as upstream has it; but for one of ours that is outdated. */
function keepsMtu(wanted: WantedLink, actual: LinkState, formerMtu: number | undefined): boolean {
  if (actual.mtu === wanted.mtu) return true;
  return wanted.type === "ipip" && actual.mtu > 0 && actual.mtu < wanted.mtu && actual.mtu !== formerMtu;
}

function compareDevice(wanted: WantedLink, actual: LinkState): readonly string[] {
  if (actual.type !== wanted.type) return [`kind ${actual.type ?? "none"}, wanted ${wanted.type}`];
  if (wanted.type === "vxlan") return compareVxlan(wanted.vxlan, actual.vxlan);
  return wanted.type === "ipip" ? compareIpip(wanted.ipip, actual.ipip) : [];
}

function compareIpip(want: IpipAttrs, has: IpipAttrs | undefined): readonly string[] {
  if (!has) return ["its ipip attributes cannot be read"];
  return (["local", "remote"] as const).flatMap((end) =>
    has[end] === want[end] ? [] : [`${end} ${has[end] ?? "any"}, wanted ${want[end] ?? "any"}`],
  );
}

function compareVxlan(want: VxlanAttrs, has: VxlanAttrs | undefined): readonly string[] {
  if (!has) return ["its vxlan attributes cannot be read"];
  const differences: string[] = [];
  const note = (name: string, is: unknown, should: unknown) =>
    differences.push(`${name} ${is}, wanted ${should}`);
  if (has.vni !== want.vni) note("VNI", has.vni, want.vni);
  if (has.underlay !== want.underlay) note("underlay", has.underlay ?? "none", want.underlay ?? "none");
  if (has.local && want.local && has.local !== want.local) note("local", has.local, want.local);
  if (has.group && want.group && has.group !== want.group) note("group", has.group, want.group);
  if (has.port && want.port && has.port !== want.port) note("port", has.port, want.port);
  for (const flag of ["l2miss", "gbp", "learning"] as const) {
    if (Boolean(has[flag]) !== Boolean(want[flag])) note(flag, Boolean(has[flag]), Boolean(want[flag]));
  }
  return differences;
}

/**
 * Makes the device be as wanted and up: `ip link add …`, `ip link set NAME mtu MTU up`. Returns whether it was made
 * anew. Throws Fault `LINK_FOREIGN` when a device of another kind has the name, and one that names the device when the
 * kernel refuses.
 */
export async function ensureDevice(
  kernel: Kernel,
  wanted: WantedLink,
  log: Log,
  formerMtu?: number,
): Promise<boolean> {
  const plan = planDevice(wanted, await kernel.link(wanted.name), formerMtu);
  if (plan.action === "refuse") throw foreignFault(wanted, plan.kind);
  if (plan.action === "adopt") {
    if (plan.mtu !== undefined || plan.raise) {
      await kernel.setLink(wanted.name, {
        ...(plan.mtu === undefined ? {} : { mtu: plan.mtu }),
        ...(plan.raise ? { up: true } : {}),
      });
      log.info(`adjusted device ${wanted.name}`, { ...(plan.mtu ? { mtu: plan.mtu } : {}), up: true });
    }
    return false;
  }
  let made = wanted;
  if (plan.action === "recreate") {
    log.warn(`making device ${wanted.name} anew`, { differences: plan.differences });
    await kernel.deleteLink(wanted.name);
    if (wanted.type === "vxlan") made = { ...wanted, mac: plan.mac ?? wanted.mac };
  }
  await kernel.createLink(made);
  await kernel.setLink(wanted.name, { up: true });
  const { name, type, ...attributes } = made;
  log.info(`made device ${name}`, { kind: type, ...attributes });
  return true;
}

function foreignFault({ name, type }: WantedLink, kind: string): Fault {
  return new Fault("LINK_FOREIGN", `device "${name}" is there, but of kind ${kind}, not ${type}`, {
    hint: `Find out whose it is (\`ip -d link show dev ${name}\`), then remove it (\`ip link delete ${name}\`) or rename it.`,
  });
}

/**
 * Devices left by an earlier configuration (another VNI, another backend): named and made like ours, not
 * wanted now, and holding an address of one of our networks, so that another daemon's device is never meant.
 */
export function findStaleDevices(
  links: readonly LinkState[],
  wanted: ReadonlySet<string>,
  devicesInOurNetworks: ReadonlySet<string>,
): readonly string[] {
  return links
    .filter(looksLikeOurs)
    .filter((link) => !wanted.has(link.name) && devicesInOurNetworks.has(link.name))
    .map((link) => link.name);
}
