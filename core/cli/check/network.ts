import { isInner } from "../../host/interface/candidates.ts";
import type { Families, Subnets } from "../../lease/lease.ts";
import { containsAddress, containsPrefix, type Prefix, parsePrefix } from "../../net/prefix.ts";
import type { AddressState, LinkState, RouteState, WantedLink, WantedVxlan } from "../../netlink/objects.ts";
import type { Finding } from "../../observe/finding.ts";
import { type CheckItem, item } from "./item.ts";

/** The host as the kernel has it. */
export interface NetworkDump {
  readonly links: readonly LinkState[];
  readonly addresses: readonly AddressState[];
  /** Main-table routes of both families. */
  readonly routes: readonly RouteState[];
}

/** The default port of vxlan in Linux (drivers/net/vxlan), where a device names none. */
const VXLAN_PORT = 8472;
/** RTN_UNICAST (linux/rtnetlink.h). */
const UNICAST = 1;

/**
 * Whether hosts and other networks lie in the cluster network: packets to them would go to nodes, or come from
 * containers that use the same addresses.
 */
export function checkOverlap(networks: Subnets, dump: NetworkDump, etcdHosts: readonly string[]): CheckItem {
  const prefixes = [networks.ipv4, networks.ipv6].flatMap((text) => (text && parsePrefix(text)) || []);
  const inner = new Set(dump.links.filter(isInner).map(({ name }) => name));
  const inside = (cidr: string) => {
    const prefix = parsePrefix(cidr);
    return prefix !== undefined && prefixes.some((network) => containsPrefix(network, prefix));
  };
  const covers = (address: string) => prefixes.some((network: Prefix) => containsAddress(network, address));
  const addresses = dump.addresses.filter(
    ({ dev, address }) => !inner.has(dev) && covers(address.slice(0, address.indexOf("/"))),
  );
  const routes = dump.routes.filter(
    ({ dst, dev, type, protocol }) =>
      type === UNICAST && protocol !== 140 && dev !== undefined && !inner.has(dev) && inside(dst),
  );
  const findings: Finding[] = [
    ...addresses.map(({ dev, address }) =>
      overlapFinding(
        "error",
        `${dev} has ${address}, which lies in the cluster network ${describe(networks)}`,
      ),
    ),
    ...etcdHosts
      .filter(covers)
      .map((host) =>
        overlapFinding("error", `etcd at ${host} lies in the cluster network ${describe(networks)}`),
      ),
    // The connected route of an address that is named already adds nothing.
    ...routes
      .filter(({ dev }) => !addresses.some((address) => address.dev === dev))
      .map(({ dst, dev, via }) =>
        overlapFinding(
          "warning",
          `the route ${dst}${via === undefined ? "" : ` via ${via}`} dev ${dev} lies in the cluster network ${describe(networks)}`,
        ),
      ),
  ];
  return item("overlap", describe(networks), findings);
}

function describe({ ipv4, ipv6 }: Subnets): string {
  return [ipv4, ipv6].filter((text) => text !== undefined).join(" and ");
}

function overlapFinding(severity: "warning" | "error", text: string): Finding {
  return {
    code: "NETWORK_OVERLAP",
    severity,
    title: "the cluster network overlaps another network",
    text,
    fix: 'Choose a "Network" that no host, route or VPN uses.',
  };
}

/**
 * Whether the devices that the backend wants can be made: VNI and port are free, and what exists fits. `ports`: of the
 * UDP sockets that are bound.
 */
export function checkDevices(
  wanted: readonly WantedLink[],
  links: readonly LinkState[],
  ports: readonly number[],
): CheckItem {
  const findings = wanted.flatMap((device): Finding[] => {
    const same = links.find((link) => link.name === device.name && link.type !== device.type);
    return [
      ...(device.type === "vxlan" ? findTaken(device, links, ports) : []),
      ...(same
        ? [deviceFinding("DEVICE_NAME_TAKEN", `${same.name} exists as a ${same.type ?? "physical"} device`)]
        : []),
    ];
  });
  return item("devices", wanted.map(describeDevice).join("; ") || "none needed", dropDoubles(findings));
}

/** Another device that holds the VNI on that port, and a process that holds the port. */
function findTaken(
  { name, vxlan }: WantedVxlan,
  links: readonly LinkState[],
  ports: readonly number[],
): readonly Finding[] {
  const port = vxlan.port ?? VXLAN_PORT;
  const overIPv6 = vxlan.local?.includes(":") === true;
  const holder = links.find(
    (link) =>
      link.name !== name &&
      link.vxlan?.vni === vxlan.vni &&
      (link.vxlan.port ?? VXLAN_PORT) === port &&
      (link.vxlan.local?.includes(":") === true) === overIPv6,
  );
  return [
    ...(holder
      ? [deviceFinding("VNI_TAKEN", `device ${holder.name} has VNI ${vxlan.vni} on port ${port}`)]
      : []),
    // A vxlan device shares its port with others of its kind, and with nobody else.
    ...(ports.includes(port) && !links.some((link) => link.vxlan && (link.vxlan.port ?? VXLAN_PORT) === port)
      ? [deviceFinding("PORT_BUSY", `a process listens on UDP port ${port}: see ss -lunp sport = :${port}`)]
      : []),
  ];
}

function describeDevice(device: WantedLink): string {
  if (device.type !== "vxlan") return device.name;
  return `${device.name}, VNI ${device.vxlan.vni}, UDP port ${device.vxlan.port ?? VXLAN_PORT}`;
}

function deviceFinding(code: string, text: string): Finding {
  return {
    code,
    severity: "error",
    title: "a device that is needed cannot be made",
    text,
    fix: 'Remove what is in the way, or choose another "VNI" or "Port" in the Backend, the same on all nodes.',
  };
}

/** Both families' devices share a port: what is in its way is said once. */
function dropDoubles(findings: readonly Finding[]): readonly Finding[] {
  return findings.filter((finding, at) => findings.findIndex(({ text }) => text === finding.text) === at);
}

/** RFC 8200 §5: what every link that carries IPv6 must take. */
const LEAST_IPV6_MTU = 1_280;
/** RFC 791 §3.2: what every host must be able to receive. */
const LEAST_IPV4_MTU = 576;

/** Whether containers get an MTU that their protocols can live with. */
export function checkMtu(underlay: LinkState, pods: number, families: Families): CheckItem {
  const least = families.ipv6 ? LEAST_IPV6_MTU : LEAST_IPV4_MTU;
  const findings: Finding[] =
    pods >= least
      ? []
      : [
          {
            code: "MTU_SMALL",
            severity: "error",
            title: "the MTU is too small",
            text: `${underlay.name} carries ${underlay.mtu}, which leaves ${pods} for containers; IPv${families.ipv6 ? 6 : 4} needs ${least}`,
            fix: `Raise the MTU of ${underlay.name} to at least ${underlay.mtu - pods + least}.`,
          },
        ];
  const overhead = underlay.mtu - pods;
  return item(
    "mtu",
    `${underlay.name} ${underlay.mtu} − overhead ${overhead} = containers ${pods}`,
    findings,
  );
}
