import {
  type DeclarativeBackend,
  defineBackend,
  type Finding,
  type HostFacts,
  type KernelObject,
  type OffloadObject,
} from "flannel/sdk";
import { deviceName, familiesOf, podMtu, wantedDevice } from "./devices.ts";
import { deriveMac } from "./mac.ts";
import { type Options, options } from "./options.ts";
import { baseAddress, planPeer, TYPE, VTEP_LENGTH } from "./peer.ts";

/** What the kernel takes where no port is said (drivers/net/vxlan: vxlan_port). */
const DEFAULT_PORT = 8472;

/** VXLAN in the kernel: one device per family, static neighbour and forwarding entries, routes over the tunnel. */
export default defineBackend<Options>({
  optionNames: ["VNI", "Port", "MTU", "GBP", "Learning", "DirectRouting", "MembersOnly", "ChecksumOffload"],
  options,
  check: ({ options, facts }) => findOversizedMtu(options, facts),
  configure: ({ options, families, nodeId }): DeclarativeBackend => ({
    mode: "declarative",
    usesRoutes: options.DirectRouting,
    ...(options.MembersOnly ? { membersOnly: [{ udpPort: options.Port || DEFAULT_PORT }] } : {}),
    links: (facts) => familiesOf(families).map((family) => wantedDevice(family, options, facts, nodeId)),
    publish(facts) {
      const data = familiesOf(families).map((family) => {
        const name = deviceName(family, options.VNI);
        // What the kernel has, not what was asked for: udev may have rewritten the address meanwhile.
        const mac = facts.links[name]?.mac ?? deriveMac(nodeId, name);
        return [family, { VNI: options.VNI, VtepMAC: mac }] as const;
      });
      return { backendType: TYPE, ...Object.fromEntries(data) };
    },
    mtu: (facts) => podMtu(families, options, facts),
    own(lease) {
      return familiesOf(families).flatMap((family): KernelObject[] => {
        const subnet = lease.subnets[family];
        const dev = deviceName(family, options.VNI);
        if (subnet === undefined) return [];
        return [
          { kind: "sysctl", path: `net/ipv6/conf/${dev}/accept_ra`, value: "0" },
          { kind: "address", dev, address: `${baseAddress(subnet)}/${VTEP_LENGTH[family]}` },
          ...offload(options, dev),
        ];
      });
    },
    peer: (peer, facts) => planPeer(peer, options, facts),
  }),
});

/** `ethtool -K DEV tx-checksum-ip-generic on|off`; with `auto` the device is left as the kernel has it. */
function offload({ ChecksumOffload }: Options, dev: string): readonly OffloadObject[] {
  if (ChecksumOffload === "auto") return [];
  return [{ kind: "offload", dev, feature: "tx-checksum-ip-generic", on: ChecksumOffload === "on" }];
}

function findOversizedMtu(options: Options, { external }: HostFacts): readonly Finding[] {
  if (options.MTU <= external.mtu) return [];
  return [
    {
      code: "VXLAN_MTU_CLAMPED",
      severity: "warning",
      title: "Backend MTU is larger than the interface carries",
      text: `"MTU" is ${options.MTU}, but ${external.name} carries ${external.mtu}; ${external.mtu} is used`,
      fix: `Raise the MTU of ${external.name} or lower "MTU" (it is the MTU of the underlay, not of pods).`,
    },
  ];
}
