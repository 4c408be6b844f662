import { expect } from "bun:test";
import fc from "fast-check";
import type {
  DeclarativeBackend,
  Families,
  HostFacts,
  LeaseData,
  LinkState,
  OwnLease,
  Peer,
  PeerFamily,
  WantedLink,
} from "flannel/sdk";

/** Freezes a value and everything in it, so that changing it throws. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) deepFreeze(inner);
  }
  return value;
}

/** Any JSON value as a config or a lease can hold it: -0 is written as 0. */
export const anyJson = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as unknown);

/** Plain data: comes back equal from JSON and from `structuredClone`, so it holds no undefined, class or function. */
export function expectPlain(value: unknown): void {
  expect(JSON.parse(JSON.stringify(value))).toStrictEqual(value as never);
  expect(structuredClone(value)).toStrictEqual(value as never);
}

/** What a host looks like to a backend before its devices are made. */
export function bareFacts(mtu = 1500): HostFacts {
  return deepFreeze({
    external: {
      name: "eth0",
      index: 2,
      mtu,
      mac: "02:00:00:00:00:01",
      ipv4: "192.0.2.1",
      ipv6: "2001:db8::1",
      publicIP: "192.0.2.1",
      publicIPv6: "2001:db8::1",
    },
    links: {},
    routes: [
      { dst: "0.0.0.0/0", dev: "eth0", via: "192.0.2.254" },
      { dst: "192.0.2.0/24", dev: "eth0" },
      { dst: "2001:db8::/64", dev: "eth0" },
    ],
  });
}

/** The host after core made the devices as wanted. */
export function readyFacts(backend: DeclarativeBackend, mtu = 1500): HostFacts {
  const facts = bareFacts(mtu);
  const links = Object.fromEntries(
    backend.links(facts).map((link, at) => [link.name, madeLink(link, at + 10)]),
  );
  return deepFreeze({ ...facts, links });
}

function madeLink(link: WantedLink, index: number): LinkState {
  return { ...link, index, up: true, running: true, loopback: false };
}

/** Node n's subnets, in the enabled families. */
export function subnetsOf(n: number, families: Families): OwnLease["subnets"] {
  return {
    ...(families.ipv4 ? { ipv4: `10.5.${n}.0/24` } : {}),
    ...(families.ipv6 ? { ipv6: `fd00:5:${n}::/64` } : {}),
  };
}

/** Node n as another one sees it, out of what its backend published. */
export function peerFrom(n: number, published: LeaseData, families: Families): Peer {
  const { ipv4, ipv6 } = subnetsOf(n, families);
  const half = (subnet: string | undefined, publicIP: string, data: unknown): PeerFamily | undefined =>
    subnet === undefined ? undefined : { subnet, publicIP, ...(data === undefined ? {} : { data }) };
  const v4 = half(ipv4, `192.0.2.${n}`, published.ipv4);
  const v6 = half(ipv6, `2001:db8::${n}`, published.ipv6);
  return deepFreeze({
    key: `10.5.${n}.0-24`,
    backendType: published.backendType,
    nodeId: `node-${n}`,
    ...(v4 ? { ipv4: v4 } : {}),
    ...(v6 ? { ipv6: v6 } : {}),
  });
}

/** JSON that no backend ever wrote into a lease. */
export const anyBackendData = fc.oneof(
  anyJson,
  fc.record({
    VNI: anyJson,
    VtepMAC: fc.oneof(anyJson, fc.constantFrom("", "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff", "zz")),
    PublicKey: anyJson,
  }),
);
