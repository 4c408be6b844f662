import {
  type DeclarativeBackend,
  defineBackend,
  type Finding,
  type HostFacts,
  type PeerFamily,
  type RouteObject,
} from "flannel/sdk";
import * as v from "valibot";

const TYPE = "host-gw";

/** Peers are reached by a plain route through their own address, which has to be on our link. */
export default defineBackend({
  optionNames: [],
  options: v.object({}),
  check: ({ facts }) => findNat(facts),
  configure: (): DeclarativeBackend => ({
    mode: "declarative",
    links: () => [],
    publish: () => ({ backendType: TYPE }),
    mtu: (facts) => facts.external.mtu,
    own: () => [],
    peer(peer, facts) {
      if (peer.backendType !== TYPE) {
        return { objects: [], problems: [`uses backend "${peer.backendType}", this node uses "${TYPE}"`] };
      }
      const families = [peer.ipv4, peer.ipv6].filter((family) => family !== undefined);
      return { objects: families.map((family) => routeThrough(family, facts)) };
    },
  }),
});

/** `ip route replace SUBNET via PUBLIC-IP dev EXTERNAL` */
function routeThrough(family: PeerFamily, facts: HostFacts): RouteObject {
  return { kind: "route", dst: family.subnet, via: family.publicIP, dev: facts.external.name };
}

/** Behind NAT a peer cannot use our published address as a next hop. */
function findNat({ external }: HostFacts): readonly Finding[] {
  const pairs = [
    [external.ipv4, external.publicIP, "--public-ip"],
    [external.ipv6, external.publicIPv6, "--public-ipv6"],
  ] as const;
  return pairs.flatMap(([own, published, flag]): Finding[] =>
    own === undefined || published === undefined || own === published
      ? []
      : [
          {
            code: "HOST_GW_NAT",
            severity: "error",
            title: "host-gw cannot work behind NAT",
            text: `${flag} is ${published}, but interface ${external.name} has ${own}`,
            fix: `Remove ${flag}, choose the interface with that address by --iface, or use the vxlan backend.`,
          },
        ],
  );
}
