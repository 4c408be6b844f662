/**
 * A complete backend to copy: one route per peer through the peer's own address, like host-gw, with a metric of the
 * operator's choice. Needs all hosts on one layer-2 link.
 */
import {
  type CheckInput,
  type ConfigureInput,
  type DeclarativeBackend,
  defineBackend,
  type Finding,
  type HostFacts,
  type Peer,
  type PeerPlan,
  type RouteObject,
} from "flannel/sdk";
import * as v from "valibot";

/** What peers see in our lease and we look for in theirs. */
const TYPE = "template";

/** Route metrics are unsigned 32-bit numbers (RTA_PRIORITY, linux/rtnetlink.h). */
const LARGEST_METRIC = 0xffff_ffff;

/** The keys of `Backend` in the network config, besides `Type`. */
const options = v.object({
  /** Metric of the routes; 0 leaves it to the kernel. */
  Metric: v.optional(
    v.pipe(
      v.number("must be a number"),
      v.integer("must be a whole number"),
      v.minValue(0, "must not be negative"),
      v.maxValue(LARGEST_METRIC, `must be at most ${LARGEST_METRIC}`),
    ),
    0,
  ),
});

type Options = v.InferOutput<typeof options>;

export default defineBackend<Options>({
  optionNames: ["Metric"],
  options,
  check: findMissingAddresses,
  configure,
});

/** Runs before anything is made: peers cannot route to a family of which we publish no address. */
function findMissingAddresses({ families, facts }: CheckInput<Options>): readonly Finding[] {
  const { name, publicIP, publicIPv6 } = facts.external;
  const lacking = [
    ...(families.ipv4 && publicIP === undefined ? ["IPv4"] : []),
    ...(families.ipv6 && publicIPv6 === undefined ? ["IPv6"] : []),
  ];
  return lacking.map((family) => ({
    code: "TEMPLATE_NO_ADDRESS",
    severity: "error",
    title: `no ${family} address to publish`,
    text: `the network config enables ${family}, but ${name} has no ${family} address that peers could route to`,
    fix: `give ${name} an ${family} address, or choose another interface with --iface`,
  }));
}

/** All functions of a declarative backend are pure: they say what should be, core makes it so and keeps it so. */
function configure({ options: { Metric } }: ConfigureInput<Options>): DeclarativeBackend {
  return {
    mode: "declarative",
    // Plain routes need no device of ours, nothing in the lease but our name, and nothing for our own subnet.
    links: () => [],
    publish: () => ({ backendType: TYPE }),
    own: () => [],
    // Nothing is wrapped around the packets, so pods may use the whole MTU of the underlay.
    mtu: (facts) => facts.external.mtu,
    peer: (peer, facts) => planPeer(peer, Metric, facts),
  };
}

/** One route per family that both nodes have: `ip route replace SUBNET via PUBLIC-IP dev EXTERNAL [metric METRIC]`. */
function planPeer(peer: Peer, metric: number, facts: HostFacts): PeerPlan {
  if (peer.backendType !== TYPE) {
    return { objects: [], problems: [`uses backend "${peer.backendType}", this node uses "${TYPE}"`] };
  }
  const families = [peer.ipv4, peer.ipv6].filter((family) => family !== undefined);
  return {
    objects: families.map(
      ({ subnet, publicIP }): RouteObject => ({
        kind: "route",
        dst: subnet,
        via: publicIP,
        dev: facts.external.name,
        ...(metric > 0 ? { metric } : {}),
      }),
    ),
  };
}
