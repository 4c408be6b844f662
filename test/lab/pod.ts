import type { Host } from "./host.ts";
import { Namespace } from "./namespace.ts";
import { nextAddress, readSubnetFile, type SubnetFile } from "./subnet-file.ts";

/** The bridge a CNI plugin (or Docker's `--bridge`) makes on a host. */
export const POD_BRIDGE = "cni0";

/**
 * A container on a host, wired as the bridge CNI plugin would from the host's subnet file: `cni0` on the host has
 * FLANNEL_SUBNET's address, the pod has the ones after it, its default routes and FLANNEL_MTU.
 */
export class Pod implements AsyncDisposable {
  readonly namespace: Namespace;
  readonly host: Host;
  /** Position on the host, from 1. */
  readonly number: number;
  readonly #addresses: { readonly ipv4?: string; readonly ipv6?: string };

  private constructor(
    namespace: Namespace,
    host: Host,
    number: number,
    addresses: { readonly ipv4?: string; readonly ipv6?: string },
  ) {
    this.namespace = namespace;
    this.host = host;
    this.number = number;
    this.#addresses = addresses;
  }

  /**
   * Wires pod `number` (default 1) of a host. `subnets` defaults to what the host's subnet file says now; the
   * bridge is made with the first pod and left as it is by later ones.
   */
  static async create(host: Host, options: { number?: number; subnets?: SubnetFile } = {}): Promise<Pod> {
    const { number = 1, subnets = await readSubnetFile(host.subnetFile) } = options;
    await using stack = new AsyncDisposableStack();
    const namespace = stack.use(
      await Namespace.create(`p${host.switch.segment.number}-${host.number}-${number}`),
    );
    const gateways = [subnets.subnet, subnets.ipv6Subnet].filter((gateway) => gateway !== undefined);
    const port = `pod${number}`;
    await host.namespace.exec(
      "sh",
      "-ec",
      [
        `if ! ip link show ${POD_BRIDGE} >/dev/null 2>&1; then`,
        `ip link add ${POD_BRIDGE} type bridge`,
        `ip link set ${POD_BRIDGE} mtu ${subnets.mtu} up`,
        ...gateways.map((gateway) => `ip address add ${gateway} dev ${POD_BRIDGE} ${nodad(gateway)}`),
        "fi",
        `ip link add eth0 netns ${namespace.name} mtu ${subnets.mtu} type veth peer name ${port}`,
        `ip link set ${port} mtu ${subnets.mtu} master ${POD_BRIDGE} up`,
      ].join("\n"),
    );
    await namespace.exec(
      "sh",
      "-ec",
      [
        "ip link set eth0 up",
        ...gateways.flatMap((gateway) => [
          `ip address add ${nthAddress(gateway, number)} dev eth0 ${nodad(gateway)}`,
          `ip route add default via ${withoutLength(gateway)} dev eth0`,
        ]),
      ].join("\n"),
    );
    stack.move();
    return new Pod(namespace, host, number, {
      ...(subnets.subnet === undefined ? {} : { ipv4: withoutLength(nthAddress(subnets.subnet, number)) }),
      ...(subnets.ipv6Subnet === undefined
        ? {}
        : { ipv6: withoutLength(nthAddress(subnets.ipv6Subnet, number)) }),
    });
  }

  /** IPv4 address without prefix length; throws when the pod has none. */
  get ipv4(): string {
    if (this.#addresses.ipv4 === undefined)
      throw new Error(`the pod of ${this.host.name} has no IPv4 address`);
    return this.#addresses.ipv4;
  }

  /** As {@link ipv4}, for IPv6. */
  get ipv6(): string {
    if (this.#addresses.ipv6 === undefined)
      throw new Error(`the pod of ${this.host.name} has no IPv6 address`);
    return this.#addresses.ipv6;
  }

  /** The addresses the pod has, IPv4 first. */
  get addresses(): readonly string[] {
    return [this.#addresses.ipv4, this.#addresses.ipv6].filter((address) => address !== undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.namespace[Symbol.asyncDispose]();
  }
}

function nthAddress(gateway: string, n: number): string {
  return n === 0 ? gateway : nthAddress(nextAddress(gateway), n - 1);
}

function withoutLength(cidr: string): string {
  return cidr.split("/")[0] ?? cidr;
}

function nodad(cidr: string): string {
  return cidr.includes(":") ? "nodad" : "";
}
