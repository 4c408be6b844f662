import type {
  AddressObject,
  Families,
  Finding,
  HostFacts,
  HostKernel,
  OwnLease,
  RouteObject,
  Subnets,
} from "flannel/sdk";
import { Fault } from "flannel/sdk";
import { FAMILIES, type Family } from "./packet/address.ts";
import { DEVICE } from "./system/tun.ts";

/** Outer IP and UDP header. */
const OVERHEAD = { ipv4: 28, ipv6: 48 } as const;
/** Smallest MTU of a link that carries a family: RFC 791 (and the kernel's own limit), RFC 8200 §5. */
const LEAST_MTU = { ipv4: 68, ipv6: 1_280 } as const;

/** The families that are on. */
export function familiesOf(families: Families): readonly Family[] {
  return FAMILIES.filter((family) => families[family]);
}

/** MTU of the device and of pods: what fits into a datagram of every enabled family. */
export function tunnelMtu(families: Families, { external }: HostFacts): number {
  return external.mtu - Math.max(...familiesOf(families).map((family) => OVERHEAD[family]));
}

/** `UDP_MTU_TOO_SMALL` when the interface has no room for a packet. */
export function findSmallMtu(families: Families, facts: HostFacts): readonly Finding[] {
  const mtu = tunnelMtu(families, facts);
  const least = Math.max(...familiesOf(families).map((family) => LEAST_MTU[family]));
  if (mtu >= least) return [];
  const { name, mtu: outer } = facts.external;
  return [
    {
      code: "UDP_MTU_TOO_SMALL",
      severity: "error",
      title: "the MTU of the interface is too small for the udp backend",
      text: `${name} carries ${outer} bytes, which leaves ${mtu} for packets; ${least} is the least`,
      fix: `Raise the MTU of ${name} to at least ${least + outer - mtu}.`,
    },
  ];
}

/**
 * `ip address add BASE/32 dev flannel0` (or /128) and `ip route replace NETWORK dev flannel0`: what the device has to
 * carry. The whole network goes through it; the own subnet is nearer, on the pods' bridge.
 */
export function deviceObjects(
  { subnets }: OwnLease,
  networks: Subnets,
): readonly (AddressObject | RouteObject)[] {
  return FAMILIES.flatMap((family): (AddressObject | RouteObject)[] => {
    const subnet = subnets[family];
    const network = networks[family];
    if (subnet === undefined || network === undefined) return [];
    const length = family === "ipv4" ? 32 : 128;
    return [
      { kind: "address", dev: DEVICE, address: `${baseAddress(subnet)}/${length}` },
      { kind: "route", dst: network, dev: DEVICE },
    ];
  });
}

/** The address part of CIDR text. */
export function baseAddress(cidr: string): string {
  return cidr.slice(0, cidr.indexOf("/"));
}

/** RT_SCOPE_LINK: addresses that the kernel gives by itself. */
const SCOPE_LINK = 253;
/** RTPROT_* of routes that core and backends make. */
const OUR_PROTOCOL = 140;

/**
 * `ip link set flannel0 mtu MTU up`, and exactly these objects on it: writes only what is missing or too much. Throws
 * Fault `UDP_DEVICE_REFUSED` with the kernel's words.
 */
export async function keepDevice(
  kernel: HostKernel,
  mtu: number,
  wanted: readonly (AddressObject | RouteObject)[],
): Promise<void> {
  const link = await kernel.link(DEVICE);
  if (!link) {
    throw new Fault("UDP_DEVICE_REFUSED", `device ${DEVICE} is gone`, {
      hint: "It is made again by itself.",
    });
  }
  if (link.mtu !== mtu || !link.up) await kernel.setLink(DEVICE, { mtu, up: true });
  const present = await listObjects(kernel);
  const keys = new Set(present.map(keyOf));
  const wantedKeys = new Set(wanted.map(keyOf));
  const failures = await kernel.apply([
    ...present
      .filter((each) => !wantedKeys.has(keyOf(each)))
      .map((object) => ({ action: "delete", object }) as const),
    ...wanted.filter((each) => !keys.has(keyOf(each))).map((object) => ({ action: "put", object }) as const),
  ]);
  const [failure] = failures;
  if (!failure) return;
  const { object } = failure.change;
  throw new Fault("UDP_DEVICE_REFUSED", `the kernel refuses ${object.kind} on ${DEVICE}: ${failure.text}`, {
    hint: "It is tried again by itself.",
  });
}

/** Addresses of the device, and routes over it that carry our mark. */
async function listObjects(kernel: HostKernel): Promise<readonly (AddressObject | RouteObject)[]> {
  const addresses = await kernel.addresses(DEVICE);
  const filter = { dev: DEVICE, protocol: OUR_PROTOCOL };
  const routes = [...(await kernel.routes(4, filter)), ...(await kernel.routes(6, filter))];
  return [
    ...addresses
      .filter(({ scope }) => scope !== SCOPE_LINK)
      .map(({ address }) => ({ kind: "address", dev: DEVICE, address }) as const),
    ...routes.map(({ dst }) => ({ kind: "route", dst, dev: DEVICE }) as const),
  ];
}

function keyOf(object: AddressObject | RouteObject): string {
  return object.kind === "address" ? object.address : `to ${object.dst}`;
}
