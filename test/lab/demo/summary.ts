import type { Cluster } from "../cluster.ts";
import { PREFIX } from "../cluster.ts";
import type { Host } from "../host.ts";
import { dumpKernel } from "../oracle/actual.ts";
import { readSubnetFile } from "../subnet-file.ts";
import { endpointFor } from "../switch-etcd.ts";
import { renderTable } from "./table.ts";

/** The table of hosts: what each daemon wrote to its subnet file and how many peers the kernel knows. */
export async function renderHosts(hosts: readonly Host[]): Promise<string> {
  const rows = await Promise.all(hosts.map(describeHost));
  return renderTable([["host", "address", "subnet", "device", "MTU", "peers"], ...rows]);
}

async function describeHost(host: Host): Promise<string[]> {
  const [file, dump] = await Promise.all([readSubnetFile(host.subnetFile), dumpKernel(host)]);
  const routes = dump.routes.filter((route) => route.protocol === "140" && route.dev !== undefined);
  const families = [
    ...(file.subnet === undefined ? [] : [{ subnet: file.subnet, address: host.ipv4 }]),
    ...(file.ipv6Subnet === undefined ? [] : [{ subnet: file.ipv6Subnet, address: host.ipv6 }]),
  ].map(({ subnet, address }) => {
    const same = routes.filter((route) => route.dst.includes(":") === subnet.includes(":"));
    return {
      subnet,
      address,
      devices: [...new Set(same.map((route) => route.dev))].join(" "),
      peers: same.length,
    };
  });
  return [
    host.name,
    families.map(({ address }) => address).join("\n"),
    families.map(({ subnet }) => subnet).join("\n"),
    families.map(({ devices }) => devices).join("\n"),
    String(file.mtu),
    families.map(({ peers }) => String(peers)).join("\n"),
  ];
}

/** How to enter and how to remove a demo that was kept. */
export function renderEntrance(cluster: Cluster): string {
  const inside = (name: string) => `ip netns exec ${name}`;
  const [host] = cluster.hosts;
  const [pod, other] = cluster.pods;
  const lines = [
    "The demo is left standing. To look around:",
    ...cluster.hosts.map((each, index) => {
      const its = cluster.pods[index];
      return `  ${inside(each.namespace.name)} bash   # ${each.name}${its ? `; its pod: ${inside(its.namespace.name)} bash` : ""}`;
    }),
    ...(host === undefined
      ? []
      : [
          "For example:",
          `  ${inside(host.namespace.name)} ip route show proto 140`,
          `  ${inside(cluster.switch.namespace.name)} env ETCDCTL_API=3 etcdctl --endpoints ${endpointFor(host)} get --prefix ${PREFIX}`,
          `  tail -f ${cluster.daemons[0]?.logPath}`,
        ]),
    ...(pod === undefined || other === undefined
      ? []
      : [`  ${inside(pod.namespace.name)} ping ${other.addresses[0]}`]),
    "To remove it:",
    "  npm run demo -- --teardown",
  ];
  return lines.join("\n");
}
