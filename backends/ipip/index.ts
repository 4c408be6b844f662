import {
  type DeclarativeBackend,
  defineBackend,
  type HostFacts,
  isOnLink,
  type PeerFamily,
  type RouteObject,
} from "flannel/sdk";
import * as v from "valibot";
import { DEVICE, findSmallMtu, podMtu, wantedDevice } from "./device.ts";

const TYPE = "ipip";

/** An absent or null key takes the default, as Go's decoder leaves the zero value alone on null. */
const flag = (name: string) => v.nullish(v.boolean(`${name} must be true or false`), false);

const options = v.object({
  DirectRouting: flag("DirectRouting"),
  MembersOnly: flag("MembersOnly"),
});

type Options = v.InferOutput<typeof options>;

/** IP-in-IP in the kernel: one device for all peers; the route to a peer's subnet names the peer as the far end. */
export default defineBackend<Options>({
  optionNames: ["DirectRouting", "MembersOnly"],
  options,
  check: ({ facts }) => findSmallMtu(facts),
  configure: ({ options }): DeclarativeBackend => ({
    mode: "declarative",
    usesRoutes: options.DirectRouting,
    ...(options.MembersOnly ? { membersOnly: [{ protocol: "ipip" }] } : {}),
    links: (facts) => [wantedDevice(facts)],
    publish: () => ({ backendType: TYPE }),
    mtu: podMtu,
    own({ subnets: { ipv4 } }) {
      if (ipv4 === undefined) return [];
      // The base address of the subnet with a host's length, so that no broadcast or connected route comes with it.
      return [{ kind: "address", dev: DEVICE, address: ipv4.replace(/\/.*/, "/32") }];
    },
    peer(peer, facts) {
      if (peer.backendType !== TYPE) {
        return { objects: [], problems: [`uses backend "${peer.backendType}", this node uses "${TYPE}"`] };
      }
      return { objects: peer.ipv4 ? [routeTo(peer.ipv4, options, facts)] : [] };
    },
  }),
});

/**
 * `ip route replace SUBNET via PUBLIC-IP dev flannel.ipip onlink`: the gateway is where the kernel sends the outer
 * packet. A peer on the own link is a gateway by itself with DirectRouting.
 */
function routeTo({ subnet, publicIP }: PeerFamily, options: Options, facts: HostFacts): RouteObject {
  const direct = options.DirectRouting ? isOnLink(facts, publicIP) : undefined;
  if (direct !== undefined) return { kind: "route", dst: subnet, via: publicIP, dev: direct };
  return { kind: "route", dst: subnet, via: publicIP, dev: DEVICE, onlink: true };
}
