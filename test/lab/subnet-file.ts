/** What a CNI plugin or Docker reads from the daemon's subnet file. */
export interface SubnetFile {
  /** FLANNEL_NETWORK, e.g. `10.244.0.0/16`. */
  readonly network?: string;
  /** FLANNEL_SUBNET: the bridge's address with the subnet's length, e.g. `10.244.7.1/24`. */
  readonly subnet?: string;
  /** FLANNEL_IPV6_NETWORK. */
  readonly ipv6Network?: string;
  /** FLANNEL_IPV6_SUBNET. */
  readonly ipv6Subnet?: string;
  /** FLANNEL_MTU in bytes. */
  readonly mtu: number;
  /** FLANNEL_IPMASQ. */
  readonly ipMasq: boolean;
}

/** Reads a subnet file; throws when it is missing or has no FLANNEL_MTU. */
export async function readSubnetFile(path: string): Promise<SubnetFile> {
  const text = await Bun.file(path).text();
  const values = new Map(
    text
      .split("\n")
      .filter((line) => line.includes("="))
      .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)] as const),
  );
  const mtu = Number(values.get("FLANNEL_MTU"));
  if (!Number.isInteger(mtu) || mtu <= 0)
    throw new Error(`${path} has no FLANNEL_MTU: ${JSON.stringify(text)}`);
  return {
    ...optional("network", values.get("FLANNEL_NETWORK")),
    ...optional("subnet", values.get("FLANNEL_SUBNET")),
    ...optional("ipv6Network", values.get("FLANNEL_IPV6_NETWORK")),
    ...optional("ipv6Subnet", values.get("FLANNEL_IPV6_SUBNET")),
    mtu,
    ipMasq: values.get("FLANNEL_IPMASQ") === "true",
  };
}

function optional<Name extends string>(name: Name, value: string | undefined): { [key in Name]?: string } {
  return value === undefined ? {} : ({ [name]: value } as { [key in Name]?: string });
}

/** The address after `gateway` in its subnet, with the same length: `10.244.7.1/24` gives `10.244.7.2/24`. */
export function nextAddress(gateway: string): string {
  const [address = "", length = ""] = gateway.split("/");
  const separator = address.includes(":") ? ":" : ".";
  const base = address.includes(":") ? 16 : 10;
  const cut = address.lastIndexOf(separator) + 1;
  const last = Number.parseInt(address.slice(cut) || "0", base) + 1;
  return `${address.slice(0, cut)}${last.toString(base)}/${length}`;
}
