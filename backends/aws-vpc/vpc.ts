import type { Filter, Instance, InstanceNetworkInterface, RouteTable } from "@aws-sdk/client-ec2";
import {
  type CloudChange,
  CloudError,
  type CloudHost,
  type CloudPlace,
  type CloudReading,
  type HostFacts,
} from "flannel/sdk";
import type { Ec2 } from "./ec2.ts";
import { identify } from "./metadata.ts";
import type { Options } from "./options.ts";
import { destinationOf, toTable } from "./table.ts";

const CHECK = "source/destination check";

/** What discovery found. */
interface Place {
  readonly ec2: Ec2;
  readonly instanceId: string;
  readonly addresses: readonly string[];
  readonly interfaceId: string;
  readonly subnetId: string;
  readonly vpcId: string;
}

/** The route tables of the VPC this instance is in. */
export class Vpc {
  readonly #options: Options;
  #place: Place | undefined;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Metadata → region and instance → network interface that has the node's address. */
  async discover({ signal }: CloudHost, { external }: HostFacts): Promise<CloudPlace> {
    this.#place?.ec2.close();
    this.#place = undefined;
    const { instanceId, region } = await identify(this.#options.AllowIMDSv1, signal);
    const { Ec2 } = await import("./ec2.ts");
    const ec2 = await Ec2.open(region, signal);
    const addresses = [external.ipv4, external.ipv6].filter((address) => address !== undefined);
    try {
      const found = findInterface(await ec2.instance(instanceId), addresses);
      this.#place = { ec2, instanceId, addresses, ...found };
      const summary = `${ec2.region} ${found.vpcId} ${instanceId} ${found.interfaceId}`;
      return { summary, self: found.interfaceId };
    } catch (error) {
      ec2.close();
      throw error;
    }
  }

  /** The source/destination check of our interface, and the tables the options name. */
  async read(): Promise<CloudReading> {
    const place = this.#here();
    const { checked } = findInterface(await place.ec2.instance(place.instanceId), place.addresses);
    const actual = checked ? "on" : "off";
    const tables = await this.#tables(place);
    return {
      settings: [{ name: CHECK, subject: place.interfaceId, wanted: "off", actual }],
      tables: tables.map((table) => toTable(table, this.#options.RouteLimit)),
    };
  }

  /** One call. */
  async apply(change: CloudChange): Promise<void> {
    const { ec2 } = this.#here();
    if (change.action === "set") return ec2.stopChecking(change.setting.subject);
    // Routes here carry no mark, and are never planned to get one.
    if (change.action === "mark") return;
    const route = { RouteTableId: change.table, ...destinationOf(change.dst) };
    if (change.action === "delete") return ec2.deleteRoute(route);
    const whole = { ...route, NetworkInterfaceId: change.target };
    return change.action === "create" ? ec2.createRoute(whole) : ec2.replaceRoute(whole);
  }

  /** By id, by tags, by the subnet of the interface, else the main table of the VPC. */
  async #tables({ ec2, subnetId, vpcId }: Place): Promise<readonly RouteTable[]> {
    const { RouteTableID, RouteTableFilter } = this.#options;
    if (RouteTableID.length > 0) return ec2.tables({ RouteTableIds: RouteTableID });
    const ofVpc = { Name: "vpc-id", Values: [vpcId] };
    if (RouteTableFilter.length > 0) {
      const tables = await ec2.tables({ Filters: [ofVpc, ...RouteTableFilter.map(toFilter)] });
      if (tables.length > 0) return tables;
      throw missing(`no route table of ${vpcId} has the tags ${RouteTableFilter.join(", ")}`);
    }
    const explicit = await ec2.tables({ Filters: [{ Name: "association.subnet-id", Values: [subnetId] }] });
    if (explicit.length > 0) return explicit;
    const main = { Name: "association.main", Values: ["true"] };
    const fallback = await ec2.tables({ Filters: [main, ofVpc] });
    if (fallback.length > 0) return fallback;
    throw missing(`${subnetId} has no route table, and ${vpcId} has no main one`);
  }

  #here(): Place {
    if (!this.#place) throw new CloudError("refused", "aws-vpc", "nothing is discovered yet", "");
    return this.#place;
  }
}

/** The interface of an instance that has one of the node's own addresses: an instance may have several. */
function findInterface(instance: Instance, addresses: readonly string[]) {
  const has = ({ PrivateIpAddresses = [], Ipv6Addresses = [] }: InstanceNetworkInterface) =>
    PrivateIpAddresses.some(({ PrivateIpAddress = "" }) => addresses.includes(PrivateIpAddress)) ||
    Ipv6Addresses.some(({ Ipv6Address = "" }) => addresses.includes(Ipv6Address));
  const found = instance.NetworkInterfaces?.find(has);
  if (found?.NetworkInterfaceId === undefined) {
    throw new CloudError(
      "missing",
      "ec2:DescribeInstances",
      `no network interface of ${instance.InstanceId} has ${addresses.join(" or ")}`,
      "Choose the interface whose private address the instance has: --iface.",
    );
  }
  return {
    interfaceId: found.NetworkInterfaceId,
    subnetId: found.SubnetId ?? "",
    vpcId: found.VpcId ?? "",
    checked: found.SourceDestCheck !== false,
  };
}

function toFilter(text: string): Filter {
  const at = text.indexOf("=");
  return { Name: text.slice(0, at), Values: [text.slice(at + 1)] };
}

function missing(message: string): CloudError {
  const fix =
    "Set RouteTableID or RouteTableFilter in the Backend, or make a table (VPC console → Route tables).";
  return new CloudError("missing", "ec2:DescribeRouteTables", message, fix);
}
