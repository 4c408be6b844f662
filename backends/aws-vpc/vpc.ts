import type { EC2, Filter, Instance, InstanceNetworkInterface, RouteTable } from "@aws-sdk/client-ec2";
import {
  type CloudChange,
  CloudError,
  type CloudHost,
  type CloudPlace,
  type CloudReading,
  type HostFacts,
} from "flannel/sdk";
import { codeOf, toCloudError } from "./errors.ts";
import { identify } from "./metadata.ts";
import type { Options } from "./options.ts";
import { destinationOf, toTable } from "./table.ts";

/** A call gives up after this, ms; the SDK makes up to three tries of it with pauses between. */
const CONNECT_MS = 3_000;
const ANSWER_MS = 10_000;
const TRIES = 3;

const CHECK = "source/destination check";

/** What discovery found. */
interface Place {
  readonly ec2: EC2;
  readonly signal: AbortSignal;
  readonly instanceId: string;
  readonly addresses: readonly string[];
  readonly interfaceId: string;
  readonly subnetId: string;
  readonly vpcId: string;
}

/** The route tables of the VPC this instance is in, through the official SDK. */
export class Vpc {
  readonly #options: Options;
  #place: Place | undefined;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Metadata → region and instance → network interface that has the node's address. */
  async discover({ signal }: CloudHost, { external }: HostFacts): Promise<CloudPlace> {
    this.#place?.ec2.destroy();
    this.#place = undefined;
    const { instanceId, region } = await identify(this.#options.AllowIMDSv1, signal);
    const ec2 = await openEc2(region);
    const addresses = [external.ipv4, external.ipv6].filter((address) => address !== undefined);
    try {
      const instance = await describeInstance(ec2, instanceId, signal);
      const found = findInterface(instance, addresses);
      const place = { ec2, signal, instanceId, addresses, ...found };
      this.#place = place;
      const summary = `${await ec2.config.region()} ${found.vpcId} ${instanceId} ${found.interfaceId}`;
      return { summary, self: found.interfaceId };
    } catch (error) {
      ec2.destroy();
      throw error;
    }
  }

  /** The source/destination check of our interface, and the tables the options name. */
  async read(): Promise<CloudReading> {
    const { ec2, instanceId, addresses, signal, interfaceId, ...place } = this.#here();
    const instance = await describeInstance(ec2, instanceId, signal);
    const { checked } = findInterface(instance, addresses);
    const tables = await this.#tables(ec2, place, signal);
    const setting = { name: CHECK, subject: interfaceId, wanted: "off", actual: checked ? "on" : "off" };
    return {
      settings: [setting],
      tables: tables.map((table) => toTable(table, this.#options.RouteLimit)),
    };
  }

  /** One call; a route that is to be deleted may be gone already. */
  async apply(change: CloudChange): Promise<void> {
    const { ec2, signal } = this.#here();
    const options = { abortSignal: signal };
    if (change.action === "set") {
      const input = { NetworkInterfaceId: change.setting.subject, SourceDestCheck: { Value: false } };
      await call("ModifyNetworkInterfaceAttribute", () =>
        ec2.modifyNetworkInterfaceAttribute(input, options),
      );
      return;
    }
    const route = { RouteTableId: change.table, ...destinationOf(change.dst) };
    if (change.action === "create") {
      const input = { ...route, NetworkInterfaceId: change.target };
      await call("CreateRoute", () => ec2.createRoute(input, options));
    } else if (change.action === "replace") {
      const input = { ...route, NetworkInterfaceId: change.target };
      await call("ReplaceRoute", () => ec2.replaceRoute(input, options));
    } else {
      try {
        await ec2.deleteRoute(route, options);
      } catch (error) {
        if (codeOf(error) !== "InvalidRoute.NotFound") throw toCloudError(error, "DeleteRoute");
      }
    }
  }

  /** By id, by tags, by the subnet of the interface, else the main table of the VPC. */
  async #tables(
    ec2: EC2,
    { subnetId, vpcId }: Pick<Place, "subnetId" | "vpcId">,
    signal: AbortSignal,
  ): Promise<readonly RouteTable[]> {
    const { RouteTableID, RouteTableFilter } = this.#options;
    if (RouteTableID.length > 0) return describeTables(ec2, { RouteTableIds: RouteTableID }, signal);
    const ofVpc = { Name: "vpc-id", Values: [vpcId] };
    if (RouteTableFilter.length > 0) {
      const tables = await describeTables(
        ec2,
        { Filters: [ofVpc, ...RouteTableFilter.map(toFilter)] },
        signal,
      );
      if (tables.length > 0) return tables;
      throw missing(`no route table of ${vpcId} has the tags ${RouteTableFilter.join(", ")}`);
    }
    const ofSubnet = { Name: "association.subnet-id", Values: [subnetId] };
    const explicit = await describeTables(ec2, { Filters: [ofSubnet] }, signal);
    if (explicit.length > 0) return explicit;
    const main = { Name: "association.main", Values: ["true"] };
    const fallback = await describeTables(ec2, { Filters: [main, ofVpc] }, signal);
    if (fallback.length > 0) return fallback;
    throw missing(`${subnetId} has no route table, and ${vpcId} has no main one`);
  }

  #here(): Place {
    if (!this.#place) throw new CloudError("refused", "aws-vpc", "nothing is discovered yet", "");
    return this.#place;
  }
}

/** Credentials are the SDK's own chain, and so is the region where it tells one; `AWS_ENDPOINT_URL_EC2` is honoured. */
async function openEc2(region: string): Promise<EC2> {
  const { EC2 } = await import("@aws-sdk/client-ec2");
  const options = {
    maxAttempts: TRIES,
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      requestTimeout: ANSWER_MS,
      throwOnRequestTimeout: true,
    },
  };
  const ec2 = new EC2(options);
  try {
    await ec2.config.region();
    return ec2;
  } catch {
    ec2.destroy();
    return new EC2({ ...options, region });
  }
}

async function call<T>(action: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toCloudError(error, action);
  }
}

async function describeInstance(ec2: EC2, id: string, signal: AbortSignal): Promise<Instance> {
  const { Reservations = [] } = await call("DescribeInstances", () =>
    ec2.describeInstances({ InstanceIds: [id] }, { abortSignal: signal }),
  );
  const instance = Reservations.flatMap(({ Instances = [] }) => Instances)[0];
  if (instance) return instance;
  throw new CloudError("missing", "ec2:DescribeInstances", `no instance ${id}`, "Check the region.");
}

/** All pages. */
async function describeTables(
  ec2: EC2,
  query: { readonly RouteTableIds?: string[]; readonly Filters?: Filter[] },
  signal: AbortSignal,
): Promise<readonly RouteTable[]> {
  const tables: RouteTable[] = [];
  let token: string | undefined;
  do {
    const page = await call("DescribeRouteTables", () =>
      ec2.describeRouteTables(token === undefined ? query : { ...query, NextToken: token }, {
        abortSignal: signal,
      }),
    );
    tables.push(...(page.RouteTables ?? []));
    token = page.NextToken || undefined;
  } while (token !== undefined);
  return tables;
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
